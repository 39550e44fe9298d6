"""Draws the picture of ``gsample bench`` from a recorded table."""

from pathlib import Path
from types import SimpleNamespace

from draw_paper import read_table
from picture_style import picture_style

from torch_gsample.bench.picture import draw


def draw_bench(path: Path) -> None:
    """Writes the picture of the newest table of ratios."""
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for cells in read_table('task', 'peer', 'threads', 'ratio'):
        key = cells['task'], int(cells['threads'])
        ratio = float(cells['ratio'].removesuffix('x'))
        rows.setdefault(key, {})[cells['peer']] = ratio
    title = '2026-11-22, AMD EPYC, 2 cores, torch 2.13.0+cpu'
    shown = [
        SimpleNamespace(task=task, threads=threads, ratios=ratios)
        for (task, threads), ratios in rows.items()
    ]
    with picture_style():
        draw(path, title, shown)


if __name__ == '__main__':
    draw_bench(Path(__file__).parent / 'images' / 'bench.svg')
