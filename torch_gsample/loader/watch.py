"""Counts batches on their way to the caller, and the use of buckets.

The batches of an epoch pass through unchanged, in the caller's thread.
"""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

from torch_geometric.data import Data, HeteroData

from torch_gsample.loader.batch_edge_index import mark_batch
from torch_gsample.loader.batch_shape import BatchShape
from torch_gsample.loader.epochs import Place
from torch_gsample.loader.late_values import stored
from torch_gsample.loader.static_shapes import StaticShapes
from torch_gsample.samplers.counts import Counts

#: Attributes of a batch with counts of nodes and edges, by precedence: hops
#: without padding, hops with padding, totals.
_NODES = 'num_real_nodes', 'num_sampled_nodes', 'num_nodes'
_EDGES = 'num_real_edges', 'num_sampled_edges', 'num_edges'


class BatchWatch:
    """Counters of the batches that a loader handed out.

    Args:
        name (str): The loader, for errors.
        counts (Counts): The counters of batches.
        shapes (StaticShapes, optional): The shapes of batches.
    """

    def __init__(self, name: str, counts: Counts, shapes: StaticShapes | None):
        self._name, self._counts, self._shapes = name, counts, shapes
        self._uses: Counter[BatchShape] = Counter()

    def see(self, batch: Any, seconds: float) -> int:
        """Counts a batch and the caller's waiting time.

        Returns:
            int: Number of edges of the batch.
        """
        if not isinstance(batch, (Data, HeteroData)):
            self._counts.add_seconds('wait', seconds)
            return 0
        nodes = [_hops(s, _NODES) for s in batch.node_stores]
        edges = [_hops(s, _EDGES) for s in batch.edge_stores]
        self._counts.add(nodes, edges, wait=seconds)
        mark_batch(batch)
        if self._shapes is not None:
            self._see_shape(batch)
        return sum(map(sum, edges))

    def stats(self) -> dict[str, Any]:
        """Returns the counters; see :meth:`KeyedLoader.stats`."""
        out = self._counts.stats()
        if self._shapes is None:
            return out
        uses = dict.fromkeys(self._shapes.buckets, 0) | self._uses
        sizes = {
            'nodes': sum(s.num_nodes * n for s, n in uses.items()),
            'edges': sum(s.num_edges * n for s, n in uses.items()),
        }
        out['buckets'] = [
            {'nodes': s.num_nodes, 'edges': s.num_edges, 'batches': n}
            for s, n in uses.items()
        ]
        out['padding'] = {
            key: size / max(sum(out[key]), 1) - 1 if size else 0.0
            for key, size in sizes.items()
        }
        return out

    def _see_shape(self, batch: Data | HeteroData) -> None:
        assert self._shapes is not None
        shape = BatchShape(
            {s._key: _places(s, 'nodes') for s in batch.node_stores},
            {s._key: _places(s, 'edges') for s in batch.edge_stores},
        )
        if shape not in self._uses and shape not in self._shapes.buckets:
            warnings.warn(
                f'{self._name}: a batch did not fit the largest bucket and '
                f'got a new one of {shape.num_nodes} nodes and '
                f"{shape.num_edges} edges; see 'static_shapes'",
                stacklevel=2,
            )
        self._uses[shape] += 1


class Watched:
    """The batches of an epoch, counted as they are handed out.

    Args:
        batches (Iterator): The batches.
        see (Callable): Called with each batch and its waiting time in seconds;
            returns its number of edges.
        check (Callable, optional): Called before each batch; raises in a
            process that cannot get it.
        place (Place, optional): Position of the caller in the epoch.
    """

    #: Number of edges of the last batch.
    num_edges = 0

    def __init__(
        self,
        batches: Iterator[Any],
        see: Callable[[Any, float], int],
        check: Callable[[], None] | None = None,
        place: Place | None = None,
    ):
        self._batches, self._see, self._check = batches, see, check
        self._place = place

    def __iter__(self) -> 'Watched':
        return self

    def __next__(self) -> Any:
        if self._check is not None:
            self._check()
        start = perf_counter()
        place = self._place
        try:
            batch = next(self._batches)
        except StopIteration:
            if place is not None:
                place.end()
            raise
        if place is not None:
            place.advance()
        self.num_edges = self._see(batch, perf_counter() - start)
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)


def check_process(name: str, process: int) -> None:
    """Checks that this process has the threads and workers of an iterator.

    A forked child has neither, and would wait forever.

    Args:
        name (str): The loader, for errors.
        process (int): The process that created the iterator.

    Raises:
        RuntimeError: If this is another process.
    """
    if os.getpid() != process:
        raise RuntimeError(
            f'{name}: an iterator must be used in the process that created '
            f'it ({process}) (got {os.getpid()}); a forked process '
            'needs its own loader'
        )


def _hops(store: Any, names: tuple[str, str, str]) -> Sequence[int]:
    """Returns the nodes or edges of each hop, without padding."""
    known = store._mapping
    counts = stored(known, names[0])
    if counts is None:
        counts = stored(known, names[1])
    return [getattr(store, names[2]) or 0] if counts is None else counts


def _places(store: Any, level: str) -> tuple[int, ...]:
    """Returns the numbers of nodes or edges of hops, with padding."""
    counts = store.get(f'num_sampled_{level}')
    return tuple(counts or [getattr(store, f'num_{level}')])
