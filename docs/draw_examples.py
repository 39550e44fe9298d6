"""Draws what each sampler gains in its example, from a recorded table."""

from itertools import groupby
from pathlib import Path

from draw_paper import COMPILED, EAGER, Rows, read_table
from matplotlib.figure import Figure
from picture_style import INK, ON_DARK, picture_style, save

#: The columns to draw, and their titles.
PANELS = {
    'test': 'test score',
    'largest batch, rows': 'rows of the largest batch',
    'processor s': 'processor seconds of training',
}
#: Methods in gray: what a sampler is compared with.
BASELINES = ('NeighborLoader', 'LinkNeighborLoader', 'GAT, PyG')


def draw_examples(rows: Rows, seeds: Rows) -> Figure:
    """Draws a bar for each method, in a panel a column.

    Args:
        rows (List[Dict[str, str]]): The table of ``benchmark/examples.py``.
        seeds (List[Dict[str, str]]): Scores of several seeds, which become
            points on the bars of the scores.
    """
    labels, heights, titles, colors = [], [], {}, []
    for example, group in groupby(rows, lambda row: row['example']):
        top = len(labels) + 1.2 * len(titles)
        group = list(group)
        titles[top] = f'{example} ({group[0]["metric"]})'
        for i, row in enumerate(group):
            heights.append(top + 0.8 + i)
            labels.append(row['method'])
            known = row['steps'] == '-' or 'only' in row['method']
            plain = known or row['method'] in BASELINES
            special = not plain and 'uniform' not in row['method']
            colors.append(COMPILED if special else EAGER)
    scores = {
        (row['example'], row['method']): [
            float(text) for name, text in row.items() if name[:5] == 'seed '
        ]
        for row in seeds
    }
    figure = Figure(figsize=(10, 0.24 * heights[-1]))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for ax, (column, title) in zip(panels, PANELS.items(), strict=True):
        ax.set_title(title, fontsize=9)
        ax.set_xticks([])
        ax.spines[:].set_visible(False)
        ax.tick_params(left=False)
        for y, row, color in zip(heights, rows, colors, strict=True):
            text = row[column]
            value = float(text.replace(',', '').replace('-', '0'))
            ax.barh(y, value, color=color)
            key = row['example'], row['method']
            marks = scores.get(key, []) if column == 'test' else []
            ax.plot(marks, [y] * len(marks), 'o', color=ON_DARK, mec=INK, ms=4)
            end = max([value, *marks])
            ax.text(end, y, f'  {text}', va='center', fontsize=7)
        ax.margins(x=0.2, y=0.01)
    ax = panels[0]
    ax.set_yticks(heights, labels, fontsize=8)
    for y, title in titles.items():
        ax.text(0, y, title, fontsize=8, weight='bold', va='center')
    ax.set_ylim(heights[-1] + 0.8, -0.8)
    figure.tight_layout()
    return figure


def main(path: Path) -> None:
    """Writes the picture of the newest tables."""
    rows = read_table('example', 'method', 'test', 'steps')
    seeds = read_table('example', 'method', 'seed 0', 'seed 1')
    with picture_style():
        save(draw_examples(rows, seeds), path)


if __name__ == '__main__':
    main(Path(__file__).parent / 'images' / 'examples.svg')
