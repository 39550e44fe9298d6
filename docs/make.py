"""Draws the pictures of the documentation, and builds its site.

    python docs/make.py

Pictures are made from real runs: the same seeds give the same pictures. The
tests run the examples.
"""

import shutil
import sys
from pathlib import Path

from draw_ablation import draw_ablation
from draw_bench import draw_bench
from draw_examples import main as draw_examples
from draw_paper import draw_paper
from draw_samples import draw_samples
from draw_storage import draw_storage
from make_pages import explain_ladies, public_modules, public_names
from make_pages import main as make_pages
from picture_style import picture_style
from sphinx.cmd.build import main as sphinx_build
from sphinx.util.inventory import InventoryFile

DOCS = Path(__file__).resolve().parent
SITE = DOCS.parent / 'build' / 'docs'


def draw_pictures() -> None:
    """Writes ``docs/images``."""
    folder = DOCS / 'images'
    folder.mkdir(exist_ok=True)
    with picture_style():
        draw_samples(folder)
        draw_ablation(folder / 'ablation.svg')
        draw_storage(folder / 'storage.svg')
        draw_paper(folder)
        draw_bench(folder / 'bench.svg')
        draw_examples(folder / 'examples.svg')


def write_explanation() -> None:
    """Writes the report of ``explain`` for a program, with closed parts."""
    shown = (
        explain_ladies()._repr_html_().replace('<details open>', '<details>')
    )
    folder = SITE.parent
    folder.mkdir(exist_ok=True)
    (folder / 'explain.html').write_text(f'<div>{shown}</div>\n')


def build_site() -> None:
    """Writes ``build/docs``; a warning is an error."""
    shutil.rmtree(DOCS / 'api/generated', ignore_errors=True)
    arguments = ['-q', '-W', '--keep-going', '-c', str(DOCS)]
    doctrees = str(SITE.with_name('doctrees'))
    failed = sphinx_build(
        [*arguments, '-d', doctrees, str(DOCS.parent), str(SITE)]
    )
    if failed:
        sys.exit('Sphinx warned')
    (SITE / 'index.html').write_text(
        '<meta http-equiv="refresh" content="0; url=docs/index.html">\n'
    )


def check_reference() -> None:
    """Fails if a public name is missing in the reference."""
    inventory = InventoryFile.loads(
        (SITE / 'objects.inv').read_bytes(), uri=''
    )
    found = {
        name
        for kind, names in inventory.data.items()
        if kind.startswith('py:')
        for name in names
    }
    missing = [
        f'{module}.{name}'
        for module in public_modules()
        if module != 'torch_gsample'  # its page is a list of these
        for name in public_names(module)
        if f'{module}.{name}' not in found
    ]
    if missing:
        sys.exit(f'not in the reference: {", ".join(missing)}')


def main() -> None:
    draw_pictures()
    make_pages()
    write_explanation()
    build_site()
    check_reference()
    print(f'the site is {SITE / "docs" / "index.html"}')


if __name__ == '__main__':
    main()
