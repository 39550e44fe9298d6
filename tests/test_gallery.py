"""The gallery's notebooks run from top to bottom."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sphinx_gallery.notebook import jupyter_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

TOP = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(TOP.glob('examples/gallery/plot_*.py'))


def cells_of(path: Path) -> list[dict]:
    """The cells of the notebook that the page offers."""
    _, blocks = split_code_and_text_blocks(str(path))
    conf = {
        'promote_jupyter_magic': False,
        'first_notebook_cell': None,
        'last_notebook_cell': None,
        'notebook_images': False,
        'pypandoc': False,
    }
    made = jupyter_notebook(blocks, conf, str(path.parent))
    return json.loads(json.dumps(made))['cells']


@pytest.mark.parametrize('path', PROGRAMS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, capsys):
    plt.switch_backend('agg')
    names = {'__name__': '__main__'}
    cells = cells_of(path)
    assert cells[0]['cell_type'] == 'markdown'  # its title
    for cell in cells:
        if cell['cell_type'] == 'code':
            exec(compile(''.join(cell['source']), path.name, 'exec'), names)
    plt.close('all')
    assert capsys.readouterr().out
