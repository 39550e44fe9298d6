"""The ratios as a picture."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch_gsample.bench.tasks import Row

_FASTER, _SLOWER = '#2a7f62', '#b5523b'
_TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)


def draw(path: str | Path, title: str, rows: Sequence[Row]) -> None:
    """Draws how many times as fast ours is, a bar for each peer.

    Args:
        path (str or Path): The picture.
        title (str): What it says of the machine.
        rows (Sequence[Row]): What was measured.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure  # needs no display

    groups: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        threads = f'{row.threads} thread{"s" * (row.threads > 1)}'
        groups.setdefault(row.task, []).extend(
            (f'{name}, {threads}', ratio) for name, ratio in row.ratios.items()
        )
    groups = {task: bars for task, bars in groups.items() if bars}
    height = sum(len(bars) + 1.5 for bars in groups.values())
    figure = Figure((8, 1.6 + 0.27 * height), dpi=120, layout='constrained')
    axes = figure.subplots()
    places, labels, place = [], [], 0.0
    for task, bars in groups.items():
        axes.annotate(
            task,
            (0, place),
            (-4, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords='offset points',
            weight='bold',
            ha='right',
            va='center',
        )
        for label, ratio in bars:
            place += 1
            _bar(axes, place, ratio)
            places.append(place)
            labels.append(label)
        place += 1.5
    ratios = [r for bars in groups.values() for _, r in bars] or [1.0]
    axes.set_xscale('log')
    axes.set_xlim(min(0.7, 0.7 * min(ratios)), max(2, 2 * max(ratios)))
    low, high = axes.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f'{tick:g}x' for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(places, labels)
    axes.set_ylim(place - 0.5, -0.8)
    axes.tick_params('y', length=0)
    ink = mpl.rcParams['axes.edgecolor']
    axes.axvline(1, color=ink, linewidth=0.8)
    axes.spines[['top', 'right', 'left']].set_visible(False)
    axes.set_xlabel('\n'.join(textwrap.wrap(title, 95)), fontsize=8)
    figure.suptitle('How many times as fast torch_gsample is', weight='bold')
    figure.savefig(path)


def _bar(axes: Any, place: float, ratio: float) -> None:
    color = _FASTER if ratio >= 1 else _SLOWER
    axes.barh(place, ratio - 1, left=1, color=color, height=0.72)
    axes.annotate(
        f'{ratio:.1f}x',
        (max(ratio, 1), place),
        (4, 0),
        textcoords='offset points',
        va='center',
        fontsize=9,
    )
