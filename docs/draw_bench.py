"""Draws the picture of ``gsample bench`` from its newest recorded run.

To record a run, copy the ``bench.json`` of ``gsample bench --output`` to
``benchmark/results/<date>-bench.json``.
"""

import json
from pathlib import Path
from types import SimpleNamespace

from draw_paper import RESULTS
from picture_style import picture_style

from torch_gsample.bench.picture import draw


def draw_bench(path: Path) -> None:
    """Writes the picture of the newest run."""
    newest = max(RESULTS.glob('*-bench.json'))
    run = json.loads(newest.read_text())
    rows = [SimpleNamespace(**row) for row in run['rows']]
    title = f'{newest.name.removesuffix("-bench.json")}, {run["machine"]}'
    with picture_style():
        draw(path, title, rows)


if __name__ == '__main__':
    draw_bench(Path(__file__).parent / 'images' / 'bench.svg')
