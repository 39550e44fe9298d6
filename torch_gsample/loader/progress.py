"""A progress bar of a loader's epoch, with sampled edges per second.

Batches pass through unchanged.
"""

import time
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from torch_gsample.loader.watch import Watched


def shown(batches: Watched, loader: Any) -> Iterator[Any]:
    """Shows a bar for the batches of a loader.

    Only if standard error is a terminal.

    Args:
        batches (Watched): The batches of an epoch.
        loader (DataLoader): Their loader.
    """
    try:
        total: int | None = len(loader)
    except TypeError:  # an index sampler has no length
        total = None
    start, edges = time.perf_counter(), 0
    with tqdm(total=total, unit='batch', disable=None, leave=False) as bar:
        for batch in batches:
            edges += batches.num_edges
            rate = edges / max(time.perf_counter() - start, 1e-9)
            bar.set_postfix_str(f'{rate:,.0f} edges/s', refresh=False)
            bar.update()
            yield batch
