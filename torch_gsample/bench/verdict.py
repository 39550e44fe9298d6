"""The verdict of a benchmark: a sentence for each peer."""

import statistics
from collections.abc import Sequence

from torch_gsample.bench.tasks import Row

#: Ratios this close to one say nothing on a machine that is not idle.
_TIE = 1.05


def verdict(rows: Sequence[Row]) -> list[str]:
    """Returns a sentence for each peer, the slowest first.

    Args:
        rows (Sequence[Row]): What was measured.
    """
    ratios: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        threads = f'{row.threads} thread{"s" * (row.threads > 1)}'
        for peer, ratio in row.ratios.items():
            found = ratios.setdefault(peer, [])
            found.append((ratio, f'{row.task}, {threads}'))
    means = {
        peer: statistics.geometric_mean([ratio for ratio, _ in found])
        for peer, found in ratios.items()
    }
    order = sorted(means, key=lambda peer: -means[peer])
    return [_sentence(p, means[p], ratios[p]) for p in order]


def _sentence(
    peer: str, mean: float, ratios: Sequence[tuple[float, str]]
) -> str:
    """Which is faster than the other, on average and where it is not."""
    counts = f'{len(ratios)} row{"s" * (len(ratios) > 1)}'
    if mean >= _TIE:
        text = f'{mean:.1f}x as fast as {peer}'
    elif mean <= 1 / _TIE:
        text = f'slower than {peer}, which is {1 / mean:.1f}x as fast'
    else:
        text = f'as fast as {peer}'
    text = f'torch_gsample is {text} (geometric mean, {counts})'
    worst, where = min(ratios)
    if worst <= 1 / _TIE and len(ratios) > 1:
        text += f'; slower in {where}: {worst:.2f}x'
    return f'{text}.'
