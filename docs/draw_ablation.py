"""Draws what groups of passes gain, from the newest recorded table."""

import itertools
from pathlib import Path

from matplotlib.figure import Figure
from picture_style import BARS, save

RESULTS = Path(__file__).resolve().parent.parent / 'benchmark' / 'results'


def read_ablation() -> dict[str, dict[str, float]]:
    """Reads the newest recorded table: times of a sampler by passes."""
    for page in sorted(RESULTS.glob('*.md'), reverse=True):
        lines = page.read_text().splitlines()
        for i, line in enumerate(lines):
            if '| ablation of |' in line:
                table = itertools.takewhile(str.strip, lines[i + 2 :])
                head, *rows = (
                    [c.strip() for c in x.split('|')[2:-1]]
                    for x in (line, *table)
                )
                return {
                    name: {
                        k: float(t)
                        for k, t in zip(head[1:], times, strict=True)
                        if t != '-'
                    }
                    for name, *times in rows
                }
    raise FileNotFoundError(f'no table of benchmark/ablation.py in {RESULTS}')


def draw_ablation(path: Path) -> None:
    """Draws how much faster than eager each group of passes makes samplers."""
    table = read_ablation()
    ax = Figure(figsize=(9, 3.6)).subplots()
    steps = [k for k in max(table.values(), key=len) if k != 'eager']
    for i, (step, shade) in enumerate(zip(steps, BARS, strict=False)):
        bars = [
            (x + 0.2 * i, times['eager'] / times[step])
            for x, times in enumerate(table.values())
            if step in times
        ]
        label = step if i == 0 else f'+ {step}'
        ax.bar(*zip(*bars, strict=True), width=0.2, color=shade, label=label)
    ax.set_yscale('log', base=2)
    ax.yaxis.set_major_formatter('{x:g}x')
    ax.axhline(1, color='#888888', lw=0.8)
    ax.set_ylabel('times as fast as eager')
    places = [x + 0.3 for x in range(len(table))]
    ax.set_xticks(places, list(table), fontsize=8)
    ax.legend(
        frameon=False,
        ncols=len(steps),
        loc='lower center',
        bbox_to_anchor=(0.5, 1.0),
    )
    save(ax.figure, path)
