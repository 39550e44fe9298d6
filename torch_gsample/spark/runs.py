"""Samples epochs into a folder, with resumption after the loss of a driver.

The input is a stored graph and seeds; the output is packed batches of each
epoch. Files record the progress: a record for each range of batches, an index
for each epoch.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from typing_extensions import Unpack

from torch_gsample.ops import _check
from torch_gsample.spark.batches import SHARD_BYTES, EdgeType
from torch_gsample.spark.frames import DataFrame, F, checked_frame
from torch_gsample.spark.hops import neighbor_sample
from torch_gsample.spark.run_folder import (
    read_record,
    run_folder,
    write_record,
)
from torch_gsample.spark.shard_files import (
    INDEX,
    PackedBatches,
    file_system,
    num_batches,
    write_index,
)
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.format import malformed

_OP = 'sample_epochs'

#: Seeds, as :func:`neighbor_sample` takes them.
Seeds = DataFrame | tuple[str, DataFrame]


class SampleOptions(TypedDict, total=False):
    """Options of :func:`neighbor_sample`."""

    weighted: bool
    timed: bool
    time_window: int | None
    temporal_strategy: str
    replace: bool
    disjoint: bool
    split: Literal['batches', 'nodes']


def sample_epochs(
    graph: ChunkedGraph,
    seeds: Seeds | Callable[[int], Seeds],
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
    path: str | Path,
    *,
    batch_size: int,
    seed: int,
    epochs: int = 1,
    features: DataFrame | Mapping[str, DataFrame] | None = None,
    edge_features: DataFrame | Mapping[EdgeType, DataFrame] | None = None,
    batches_per_job: int = 1024,
    shard_bytes: int = SHARD_BYTES,
    **options: Unpack[SampleOptions],
) -> None:
    """Samples the batches of epochs, and resumes after an interruption.

    Batches are those of :func:`neighbor_sample`. ``path`` has ``run.json``
    with the arguments, and a folder for each epoch, which
    :class:`SampledParquetLoader` can read once it has its index. A call with
    the same arguments samples the ranges of batches without a record. To
    extend a complete run, increase ``epochs``.

    Args:
        graph (ChunkedGraph): See :func:`prepare_adjacency`.
        seeds (DataFrame or Tuple or Callable): See :func:`neighbor_sample`; or
            a function of the epoch that returns them, for other positions of
            seeds in each epoch. Their number must not change.
        fanouts (List[int] or Dict): See :func:`neighbor_sample`.
        path (str or Path): A folder in a file system with locks, shared by
            executors and driver.
        batch_size (int): Number of seeds per batch.
        seed (int): Seed of all draws.
        epochs (int, optional): Number of epochs, from 0 on.
        features (DataFrame or Dict, optional): See
            :meth:`SampledBatches.write`.
        edge_features (DataFrame or Dict, optional): Likewise.
        batches_per_job (int, optional): Number of batches sampled and recorded
            together: the maximum loss with a driver.
        shard_bytes (int, optional): See :meth:`SampledBatches.write`.
        **options (optional): ``weighted``, ``timed``, ``time_window``,
            ``temporal_strategy``, ``replace``, ``disjoint`` and ``split`` of
            :func:`neighbor_sample`.

    Raises:
        RuntimeError: If another driver writes to ``path``.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is out of range, or ``path`` is a run with
            other arguments; the error names the first that differs.

    Example:
        >>> import tempfile, torch
        >>> from torch_gsample.spark import SampledParquetLoader, local_session
        >>> spark = local_session()
        >>> seeds = spark.createDataFrame([(0, 0)], ['position', 'id'])
        >>> edge_index = torch.tensor([[1], [0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph = ChunkedGraph.write(f'{folder}/graph', edge_index)
        ...     run = f'{folder}/run'
        ...     sample_epochs(graph, seeds, [2], run, batch_size=1, seed=0)
        ...     [batch.n_id.tolist() for batch in SampledParquetLoader(run)]
        [[0, 1]]
    """
    if not isinstance(graph, ChunkedGraph):
        raise TypeError(
            f"{_OP}: 'graph' must be a ChunkedGraph, see 'prepare_adjacency' "
            f'(got {type(graph).__name__})'
        )
    _check.count(_OP, 'epochs', epochs)
    _check.count(_OP, 'batches_per_job', batches_per_job)
    if type(seed) is not int:
        raise TypeError(f"{_OP}: 'seed' must be an integer (got {seed!r})")
    unknown = {*options} - {*SampleOptions.__annotations__}
    if unknown:
        raise TypeError(f'{_OP}: unknown option {min(unknown)!r}')
    arguments = {
        'graph': f'{graph.meta.generation:016x}',
        'fanouts': _plain(fanouts),
        'batch_size': batch_size,
        'seed': seed,
        'features': _schemas(features),
        'edge_features': _schemas(edge_features),
        **options,
    }
    arguments.pop('split', None)  # samples do not depend on it
    with run_folder(_OP, path, arguments) as folder:
        for epoch in range(epochs):
            own = seeds(epoch) if callable(seeds) else seeds
            job = _Epoch(folder / f'epoch-{epoch}', epoch, _digest(own))
            if job.is_done():
                continue
            for batches in job.missing(batches_per_job, batch_size):
                sample = neighbor_sample(
                    graph,
                    own,
                    fanouts,
                    batch_size=batch_size,
                    seed=seed,
                    epoch=epoch,
                    batches=batches,
                    **options,
                )
                try:
                    facts, rows = sample._to_write(features, edge_features)
                    shards = sample._write_shards(
                        str(job.folder), facts, rows, shard_bytes
                    )
                finally:
                    sample.close()
                job.record(batches, facts, shards)
            job.finish()


class _Epoch:
    """The folder of an epoch: records of what is done, or an index.

    Args:
        folder (Path): The folder.
        epoch (int): The epoch.
        seeds (List[int]): The number and a hash of its seeds.
    """

    def __init__(self, folder: Path, epoch: int, seeds: list[int]):
        self.folder, self._seeds = folder, seeds
        folder.mkdir(exist_ok=True)
        self._done: list[Any] = []
        for path in sorted(folder.glob('done-*.json')):
            record = read_record(_OP, path)
            if record['seeds'] != seeds:
                raise ValueError(
                    f"{_OP}: 'seeds' must not change during epoch {epoch} "
                    f'(got {seeds[0]} other seeds)'
                )
            self._done.append(record)

    def is_done(self) -> bool:
        """Whether the epoch is complete; its index is read."""
        if not (self.folder / INDEX).exists():
            return False
        PackedBatches(str(self.folder))
        return True

    def missing(self, at_once: int, batch_size: int) -> Iterator[range]:
        """Yields the ranges of batches that have no record."""
        total, first = -(-self._seeds[0] // batch_size), 0
        done = sorted((r['first'], r['stop']) for r in self._done)
        for begin, end in [*done, (total, total)]:
            while first < begin:
                stop = min(first + at_once, begin)
                yield range(first, stop)
                first = stop
            first = max(first, end)

    def record(
        self, batches: range, facts: dict[str, Any], shards: list[Any]
    ) -> None:
        """Records that a range is done."""
        fields = {
            'first': batches.start,
            'stop': batches.stop,
            'seeds': self._seeds,
            'facts': facts,
            'shards': shards,
        }
        write_record(self.folder / f'done-{batches.start:08d}.json', fields)
        self._done.append(json.loads(json.dumps(fields)))

    def finish(self) -> None:
        """Writes the index, and removes what is not in it."""
        shards = [shard for record in self._done for shard in record['shards']]
        facts = self._done[0]['facts']
        for shard in shards:
            size = (self.folder / shard['file']).stat().st_size
            if size != shard['bounds'][-1]:
                malformed(
                    self.folder / shard['file'],
                    min(size, shard['bounds'][-1]),
                    f'its size must be {shard["bounds"][-1]} (got {size})',
                    _OP,
                )
        assert sum(len(s['bounds']) - 2 for s in shards) == num_batches(facts)
        system, root = file_system(self.folder)
        write_index(system, root, facts, shards)
        kept = {INDEX, *(shard['file'] for shard in shards)}
        for path in self.folder.iterdir():
            if path.name not in kept:
                path.unlink(missing_ok=True)


def _digest(seeds: Seeds) -> list[int]:
    """Returns the number of seeds, and a hash of all."""
    frame = seeds[1] if isinstance(seeds, tuple) else seeds
    frame = checked_frame(_OP, 'seeds', frame, ['position', 'id'])
    wanted = [c for c in ('position', 'id', 'time') if c in frame.columns]
    columns = [F.col(name).cast('bigint') for name in wanted]
    row = frame.agg(
        F.count(F.lit(1)), F.bit_xor(F.xxhash64(*columns))
    ).collect()[0]
    return [row[0], row[1] or 0]


def _plain(fanouts: Any) -> Any:
    if isinstance(fanouts, Mapping):
        return [[list(t), list(f)] for t, f in fanouts.items()]
    return list(fanouts)


def _schemas(tables: Any) -> Any:
    """Returns the columns of tables of features."""
    if isinstance(tables, Mapping):
        return [[str(t), _schemas(table)] for t, table in tables.items()]
    return None if tables is None else [list(pair) for pair in tables.dtypes]
