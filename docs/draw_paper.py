"""Draws the figures and tables of gSampler's paper, from recorded tables."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from picture_style import BARS, ON_DARK, ON_LIGHT, picture_style, save

RESULTS = Path(__file__).resolve().parent.parent / 'benchmark' / 'results'
EAGER, COMPILED = '#999999', '#2a788e'

Rows = list[dict[str, str]]


def read_table(*columns: str) -> Rows:
    """Reads the newest recorded table that has some columns.

    Returns:
        List[Dict[str, str]]: The cells of each row by their column; nothing
        if there is no such table.
    """
    for page in sorted(RESULTS.glob('*.md'), reverse=True):
        lines = page.read_text().splitlines()
        for i, line in enumerate(lines):
            head = [cell.strip() for cell in line.split('|')[1:-1]]
            if head and {*columns} <= {*head}:
                cells = (
                    [cell.strip() for cell in row.split('|')[1:-1]]
                    for row in itertools.takewhile(str.strip, lines[i + 2 :])
                )
                return [dict(zip(head, row, strict=True)) for row in cells]
    return []


def draw_sizes(rows: Rows) -> Figure:
    """Draws Figure 6: the time of a seed by the size of a batch."""
    names = list(dict.fromkeys(_sampler(row) for row in rows))
    figure = Figure(figsize=(10, 4))
    panels = figure.subplots(2, -(-len(names) // 2), sharex=True)
    for name, ax in zip(names, panels.flat, strict=False):
        for row in rows:
            if _sampler(row) == name:
                points = [
                    (int(k), float(v)) for k, v in row.items() if k.isdigit()
                ]
                eager = row['way'] == 'eager'
                color = EAGER if eager else COMPILED
                ax.plot(*zip(*points, strict=True), '.-', color=color)
        ax.set_xscale('log', base=4)
        ax.set_yscale('log')
        ax.set_title(name, fontsize=9)
        ax.tick_params(labelsize=7, which='both')
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter('{x:g}')
        ax.xaxis.set_major_formatter('{x:g}')
    for ax in panels.flat[len(names) :]:
        ax.remove()
    panels[0, 0].legend(['eager', 'compiled'], frameon=False, fontsize=7)
    figure.supxlabel('seeds of a batch', fontsize=9)
    figure.supylabel('microseconds a seed', fontsize=9)
    figure.tight_layout()
    return figure


def draw_without(rows: Rows) -> Figure:
    """Draws Figure 10: how much longer a batch takes without each pass."""
    passes = [
        name
        for name in rows[0]
        if name not in ('graph', 'left out of', 'all ms')
        and any(row[name] != '-' for row in rows)
    ]
    ratio = torch.tensor(
        [[_ratio(row[name]) for name in passes] for row in rows]
    )
    ax = Figure(figsize=(9, 3.6)).subplots()
    shown = ratio.log2().nan_to_num(0).clamp(-3, 3)
    ax.imshow(shown, cmap='RdBu_r', vmin=-3, vmax=3, aspect='auto')
    for y, x in itertools.product(*map(range, ratio.shape)):
        text = rows[y][passes[x]]
        dark = abs(float(shown[y, x])) > 2
        color = ON_DARK if dark else ON_LIGHT
        ax.text(x, y, text, ha='center', va='center', fontsize=7, color=color)
    ax.set_xticks(range(len(passes)), passes, rotation=30, ha='right')
    ax.set_yticks(range(len(rows)), [row['left out of'] for row in rows])
    ax.tick_params(labelsize=8)
    ax.set_title('times as long without the pass', fontsize=9)
    return ax.figure


def draw_layouts(rows: Rows) -> Figure:
    """Draws Table 5: the time of an operation by the layout of its matrix."""
    return _bars(
        {row['operation']: [float(row[k]) for k in LAYOUTS] for row in rows},
        LAYOUTS,
        'ms',
    )


def draw_memory(rows: Rows) -> Figure:
    """Draws Table 9: the most memory that a sampler takes at once."""
    return _bars(
        {
            row['sampler']: [max(float(row[k]), 0.5) for k in MEMORY]
            for row in rows
        },
        MEMORY,
        'MiB beyond the graph',
    )


def draw_accuracy(rows: Rows) -> Figure:
    """Draws Tables 1 and 8: the time of training until an accuracy."""
    reached: dict[str, dict[str, float]] = {}
    for row in rows:
        way = row['sampled by']
        way = way if way in ('eager', 'compiled') else 'PyG or PyTorch'
        time = row['s to accuracy']
        seconds = reached.setdefault(row['sampler'], {})
        seconds[way] = float('nan') if time == '-' else float(time)
    ways = list(dict.fromkeys(way for v in reached.values() for way in v))
    return _bars(
        {
            name: [v.get(w, float('nan')) for w in ways]
            for name, v in reached.items()
        },
        ways,
        's to accuracy',
    )


LAYOUTS = ['CSC', 'CSR', 'COO']
MEMORY = ['eager, first', 'eager, later', 'compiled, first', 'compiled, later']
#: What each picture is drawn of: the columns of its table.
PICTURES: dict[str, tuple[Callable[[Rows], Figure], list[str]]] = {
    'figure6': (draw_sizes, ['way', '16', '4096']),
    'figure10': (draw_without, ['left out of', 'all ms']),
    'table5': (draw_layouts, ['operation', *LAYOUTS]),
    'table8': (draw_accuracy, ['sampled by', 's to accuracy']),
    'table9': (draw_memory, ['sampler', *MEMORY]),
}


def draw_paper(folder: Path) -> list[Path]:
    """Draws all of them whose tables are recorded, and returns their files."""
    drawn = []
    for name, (draw, columns) in PICTURES.items():
        rows = read_table(*columns)
        if rows:
            drawn.append(folder / f'{name}.svg')
            save(draw(rows), drawn[-1])
    return drawn


def _sampler(row: dict[str, str]) -> str:
    return row.get('batch size of') or row['sampler']


def _ratio(cell: str) -> float:
    return float('nan') if cell == '-' else float(cell.removesuffix('x'))


def _bars(
    groups: dict[str, list[float]], labels: list[str], unit: str
) -> Figure:
    """Bars side by side for each name, on a scale of powers."""
    ax: Any = Figure(figsize=(9, 3.2)).subplots()
    width = 0.8 / len(labels)
    for i, (label, shade) in enumerate(zip(labels, BARS, strict=False)):
        heights = [values[i] for values in groups.values()]
        places = [x + width * i for x in range(len(groups))]
        ax.bar(places, heights, width=width, color=shade, label=label)
    ax.set_yscale('log')
    ax.yaxis.set_major_formatter('{x:g}')
    ax.set_ylabel(unit)
    middle = width * (len(labels) - 1) / 2
    ax.set_xticks([x + middle for x in range(len(groups))], list(groups))
    ax.tick_params(labelsize=7)
    ax.legend(
        frameon=False,
        ncols=len(labels),
        loc='lower center',
        bbox_to_anchor=(0.5, 1.0),
    )
    return ax.figure


if __name__ == '__main__':
    images = Path(__file__).resolve().parent / 'images'
    with picture_style():
        print(*draw_paper(images), sep='\n')
