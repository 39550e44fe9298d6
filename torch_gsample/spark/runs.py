"""Samples epochs into a folder, with resumption after the loss of a driver.

The input is a stored graph and seeds; the output is packed batches of each
epoch. Files record the progress: a record for each range of batches, an index
for each epoch.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from typing_extensions import Unpack

from torch_gsample import rng
from torch_gsample.graph_sampling.draws import checked_seed
from torch_gsample.ops import _check
from torch_gsample.spark.batch_types import EdgeType
from torch_gsample.spark.batches import SHARD_BYTES
from torch_gsample.spark.feature_tables import checked_tables
from torch_gsample.spark.frames import DataFrame
from torch_gsample.spark.hops import neighbor_sample, sample_counted
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.run_folder import (
    read_record,
    run_folder,
    write_record,
)
from torch_gsample.spark.sample_arguments import (
    SampleArguments,
    checked_arguments,
    checked_relations,
    count_seeds,
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


_PARAMETERS = inspect.signature(neighbor_sample).parameters
_DEFAULTS = {n: _PARAMETERS[n].default for n in SampleOptions.__annotations__}


@operation
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
    _check.count(_OP, 'epochs', epochs)
    _check.count(_OP, 'batches_per_job', batches_per_job)
    _check.count(_OP, 'shard_bytes', shard_bytes)
    rng.check_key(_OP, seed)
    unknown = {*options} - {*SampleOptions.__annotations__}
    if unknown:
        raise TypeError(f'{_OP}: unknown option {min(unknown)!r}')
    types, _ = checked_relations(_OP, graph, fanouts)
    checked_tables(_OP, features, edge_features, types)

    def checked(own: Any) -> SampleArguments:
        return checked_arguments(
            _OP, graph, own, fanouts, batch_size=batch_size, **options
        )

    if not callable(seeds):
        checked(seeds)
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
    with run_folder(_OP, path, arguments, _DEFAULTS) as folder:
        known: dict[str, Any] | None = None
        for epoch in range(epochs):
            own = checked(seeds(epoch) if callable(seeds) else seeds)
            counted = count_seeds(own, graph)
            found = [counted.size, counted.digest]
            job = _Epoch(folder / f'epoch-{epoch}', epoch, found)
            known = known or job.facts
            if job.is_done():
                continue
            for batches in job.missing(batches_per_job, batch_size):
                sample = sample_counted(
                    own,
                    graph,
                    counted,
                    batch_size=batch_size,
                    key=(checked_seed(_OP, seed), epoch, rng.EPOCH_SCOPE),
                    batches=batches,
                    **{**_DEFAULTS, **options},
                )
                try:
                    facts, rows = sample._to_write(features, edge_features)
                    known = _same(facts, known)
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
        self.folder, self._epoch, self._seeds = folder, epoch, seeds
        folder.mkdir(exist_ok=True)
        done = sorted(folder.glob('done-*.json'))
        self._done: list[Any] = [read_record(_OP, path) for path in done]
        self._packed: PackedBatches | None = None
        if (folder / INDEX).exists():
            self._packed = PackedBatches(str(folder))
        shards = [s for record in self._done for s in record.get('shards', [])]
        self._check_files(self._packed.shards if self._packed else shards)
        before = [record['seeds'] for record in self._done]
        epochs = [record.get('epoch') for record in self._done]
        if self._packed is not None:
            before.append(self._packed.seeds)
            epochs.append(self._packed.epoch)
        # Files of earlier releases have none.
        if any(other not in (epoch, None) for other in epochs):
            raise ValueError(
                f'{_OP}: {str(folder)!r} must have epoch {epoch} (got '
                f'{epochs})'
            )
        if any(other not in (seeds, None) for other in before):
            raise ValueError(
                f"{_OP}: 'seeds' must not change during epoch {epoch} "
                f'(got {seeds[0]} other seeds)'
            )

    @property
    def facts(self) -> dict[str, Any] | None:
        """The facts of the batches so far, if there are any."""
        if self._packed is not None:
            return self._packed.facts
        return self._done[0]['facts'] if self._done else None

    def is_done(self) -> bool:
        """Whether the epoch is complete."""
        if self._packed is not None:
            self._sweep(self._packed.shards)
        return self._packed is not None

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
            'epoch': self._epoch,
            'seeds': self._seeds,
            'facts': facts,
            'shards': shards,
        }
        write_record(self.folder / f'done-{batches.start:08d}.json', fields)
        self._done.append(json.loads(json.dumps(fields)))

    def finish(self) -> None:
        """Writes the index."""
        shards = [shard for record in self._done for shard in record['shards']]
        facts = self._done[0]['facts']
        self._check_files(shards)
        assert sum(len(s['bounds']) - 2 for s in shards) == num_batches(facts)
        system, root = file_system(self.folder)
        write_index(system, root, facts, shards, self._seeds, self._epoch)
        self._sweep(shards)

    def _check_files(self, shards: list[Any]) -> None:
        """Checks that all files of batches are there, of the right size."""
        for shard in shards:
            path, rule = self.folder / shard['file'], shard['bounds'][-1]
            size = path.stat().st_size if path.exists() else 0
            if size != rule:
                malformed(
                    path,
                    min(size, rule),
                    f'its size must be {rule} (got '
                    f'{size if path.exists() else "no file"}); without the '
                    f'folder {self.folder.name!r}, the epoch is sampled again',
                    _OP,
                )

    def _sweep(self, shards: list[Any]) -> None:
        """Removes what is not in the index."""
        kept = {INDEX, *(shard['file'] for shard in shards)}
        for path in self.folder.iterdir():
            if path.name not in kept:
                path.unlink(missing_ok=True)


def _same(facts: dict[str, Any], known: Any) -> dict[str, Any]:
    """Checks that batches have the types and widths of earlier ones."""
    plain: dict[str, Any] = json.loads(json.dumps(facts))
    for name, value in (known or plain).items():
        if plain[name] != value:
            raise ValueError(
                f"{_OP}: 'seeds' and 'features' must have the same types and "
                f'widths in the whole run: {name!r} was {value!r} (got '
                f'{plain[name]!r})'
            )
    return plain


def _plain(fanouts: Any) -> Any:
    if isinstance(fanouts, Mapping):
        return [[list(t), list(f)] for t, f in fanouts.items()]
    return list(fanouts)


def _schemas(tables: Any) -> Any:
    """Returns the columns of tables of features."""
    if isinstance(tables, Mapping):
        return [[str(t), _schemas(table)] for t, table in tables.items()]
    return None if tables is None else [list(pair) for pair in tables.dtypes]
