"""Draws what each sampler gains in its example, from a recorded table."""

from itertools import groupby
from pathlib import Path

from draw_paper import COMPILED, EAGER, Rows, read_table
from matplotlib.figure import Figure
from picture_style import picture_style, save

#: The columns to draw, and their titles.
PANELS = {
    'test': 'test score',
    'largest batch, rows': 'rows of the largest batch',
    'processor s': 'processor seconds of training',
}
#: Methods in gray: what a sampler is compared with.
BASELINES = ('NeighborLoader', 'LinkNeighborLoader', 'GAT, PyG')


def draw_examples(rows: Rows) -> Figure:
    """Draws a bar for each method, in a panel a column.

    Args:
        rows (List[Dict[str, str]]): The table of ``benchmark/examples.py``.
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
    figure = Figure(figsize=(10, 0.24 * heights[-1]))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for ax, (column, title) in zip(panels, PANELS.items(), strict=True):
        texts = [row[column] for row in rows]
        values = [float(t.replace(',', '').replace('-', '0')) for t in texts]
        ax.barh(heights, values, color=colors)
        for y, value, text in zip(heights, values, texts, strict=True):
            ax.text(value, y, f' {text}', va='center', fontsize=7)
        ax.set_title(title, fontsize=9)
        ax.set_xticks([])
        ax.margins(x=0.2, y=0.01)
        ax.spines[:].set_visible(False)
        ax.tick_params(left=False)
    ax = panels[0]
    ax.set_yticks(heights, labels, fontsize=8)
    for y, title in titles.items():
        ax.text(0, y, title, fontsize=8, weight='bold', va='center')
    ax.invert_yaxis()
    figure.tight_layout()
    return figure


def main(path: Path) -> None:
    """Writes the picture of the newest table, if there is one."""
    rows = read_table('example', 'method', 'largest batch, rows')
    with picture_style():
        save(draw_examples(rows), path)


if __name__ == '__main__':
    main(Path(__file__).parent / 'images' / 'examples.svg')
