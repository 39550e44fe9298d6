"""Reads batches written by Spark for training."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Data, HeteroData
from typing_extensions import Unpack

from torch_gsample.loader.base import KeyedLoader
from torch_gsample.loader.blocks import add_blocks, drop_stale
from torch_gsample.loader.epochs import OrderedBatches
from torch_gsample.loader.numbering import number_of
from torch_gsample.ops._check import count, plain_number
from torch_gsample.options import WorkerOptions, checked_names
from torch_gsample.path_argument import path_argument
from torch_gsample.rng import check_key
from torch_gsample.spark.shard_files import (
    RUN,
    PackedBatches,
    file_system,
    num_batches,
)

#: Errors raised by invalid values in a file.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


class SampledParquetLoader(KeyedLoader):
    """Loads mini-batches of :meth:`SampledBatches.write`, or of a run.

    Batches equal those of :class:`torch_gsample.loader.NeighborLoader`, with
    the same fields. It needs pyarrow, but not Spark. A worker reads a batch
    and checks its checksum when the batch is due. From a folder of
    :func:`sample_epochs`, each epoch reads its own batches.

    Args:
        path (str or Path): The folder: a path, or a URL of ``fsspec``.
        rank (int, optional): The rank of this process in distributed training.
            Each of ``world_size`` processes reads every ``world_size``-th
            batch.
        world_size (int, optional): The number of processes.
        drop_last (bool, optional): Whether to drop the last batches, so that
            all ranks have the same number.
        transform (Callable, optional): Applied to each batch after it is read.
        sampler (Iterable[int], optional): The order of batches.
        seed (int, optional): The seed of a shuffled order, which is then a
            function of (seed, epoch); required with ``world_size``.
        window (int, optional): With ``shuffle`` and ``seed``, files are
            shuffled, and batches are shuffled among this number of files at a
            time.
        wait (float, optional): Seconds to wait for an incomplete epoch, which
            Spark may sample while the previous one is read.
        **options (optional): Of :class:`torch.utils.data.DataLoader`:
            ``shuffle`` (the order of batches), ``num_workers``, ...

    Raises:
        ImportError: If pyarrow is not installed.
        FileNotFoundError: If the folder does not exist or is incomplete.
        IndexError: If ``sampler`` has a batch that does not exist.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is out of range, or a file is damaged.

    An example is in :func:`neighbor_sample`.
    """

    @checked_names
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        transform: Callable[[Any], Any] | None = None,
        sampler: Iterable[int] | None = None,
        seed: int | None = None,
        window: int = 4,
        wait: float = 0,
        **options: Unpack[WorkerOptions],
    ):
        op = 'SampledParquetLoader'
        world_size = count(op, 'world_size', plain_number(world_size))
        window = count(op, 'window', plain_number(window))
        rank, wait = plain_number(rank), plain_number(wait)
        path_argument(op, 'path', path)
        if transform is not None and not callable(transform):
            raise TypeError(
                f"{op}: 'transform' must be a function (got {transform!r})"
            )
        if not isinstance(drop_last, bool):
            raise TypeError(
                f"{op}: 'drop_last' must be a bool (got {drop_last!r})"
            )
        if seed is not None:
            check_key(op, seed)
        if not isinstance(wait, (int, float)) or isinstance(wait, bool):
            raise TypeError(f"{op}: 'wait' must be a number (got {wait!r})")
        if not wait >= 0:
            raise ValueError(f"{op}: 'wait' must not be negative (got {wait})")
        if not 0 <= count(op, 'rank', rank, 0) < world_size:
            raise ValueError(
                f"{op}: 'rank' must be in [0, {world_size}) (got {rank})"
            )
        kwargs: dict[str, Any] = {**options, 'sampler': sampler, 'prefetch': 0}
        if world_size > 1:
            kwargs.update(rank=rank, world_size=world_size)
        if seed is None and not options.get('shuffle') and sampler is None:
            seed = 0  # nothing is drawn
        self._init_epochs(seed, kwargs)
        self._files = SampledBatchFiles(path, transform, wait)
        self.sample = self._files.facts  # for states
        self.window = window
        super().__init__(
            range(len(self._files)),  # type: ignore[arg-type]
            collate_fn=self.collate_fn,
            drop_last=drop_last,
            **kwargs,
        )
        if self._shuffles and self._is_ordered:
            assert seed is not None
            self._epochs.batches = _WindowedBatches(
                self._files, seed, window, self.drop_last
            )

    def _begin_pass(self, epoch: int) -> Iterator[Any]:
        self._files.of(epoch)  # forked workers inherit it
        return super()._begin_pass(epoch)

    def _make_sample(self, index: list[int]) -> Data | HeteroData:
        number = number_of(index)
        epoch = 0 if number is None else number.epoch
        return self._files.read(epoch, int(index[0]))


class SampledBatchFiles(Dataset):
    """The batches of a sample, or of the epochs of a run.

    Args:
        path (str or Path): The folder.
        transform (Callable, optional): Applied to each batch after it is read.
        wait (float, optional): Seconds to wait for an epoch.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        wait: float = 0,
    ):
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError(
                'SampledParquetLoader: pyarrow is needed: `pip install '
                "'torch_gsample[spark]'`"
            ) from error
        self._path, self.transform, self._wait = str(path), transform, wait
        self._opened: tuple[int, PackedBatches] | None = None
        system, root = file_system(path)
        #: Whether each epoch has a folder.
        self.is_run = system.exists(f'{root}/{RUN}')
        self.facts = self.of(0).facts

    def of(self, epoch: int) -> PackedBatches:
        """Returns the batches of an epoch."""
        if not self.is_run:
            epoch = 0
        if self._opened is None or self._opened[0] != epoch:
            folder = f'{self._path}/epoch-{epoch}' if self.is_run else ''
            packed = self._open(folder or self._path)
            facts = packed.facts
            if self.is_run and packed.epoch not in (epoch, None):
                raise ValueError(
                    f'SampledParquetLoader: {folder!r} must have epoch '
                    f'{epoch} (got {packed.epoch})'
                )
            if facts != getattr(self, 'facts', facts):
                raise ValueError(
                    f'SampledParquetLoader: {folder!r} must be of the same '
                    f'run as the epochs before it'
                )
            self._opened = epoch, packed
        return self._opened[1]

    def _open(self, folder: str) -> PackedBatches:
        end = time.monotonic() + self._wait
        while True:
            try:
                return PackedBatches(folder)
            except FileNotFoundError:
                if time.monotonic() >= end:
                    raise
            time.sleep(min(1, self._wait))

    def __len__(self) -> int:
        return num_batches(self.facts)

    def read(self, epoch: int, index: int) -> Data | HeteroData:
        """Returns a batch of an epoch."""
        packed = self.of(epoch)
        if not 0 <= index < len(packed):
            raise IndexError(
                f"SampledParquetLoader: 'sampler' must hold batches in "
                f'[0, {len(packed)}) (got {index})'
            )
        table = packed.read(index)
        try:
            batch = _to_data(table, packed.facts)
        except _DAMAGE as error:
            raise ValueError(
                f'SampledParquetLoader: batch {index} in '
                f'{packed.name(index)!r} is damaged ({error})'
            ) from error
        if self.transform is None:
            return batch
        return drop_stale(self.transform(batch))


class _WindowedBatches(OrderedBatches):
    """Shuffles shards, then batches within a window of shards.

    Args:
        files (SampledBatchFiles): The batches.
        seed (int): The seed.
        window (int): Number of shards shuffled together.
        drop_last (bool): See :class:`OrderedBatches`.
    """

    def __init__(
        self,
        files: SampledBatchFiles,
        seed: int,
        window: int,
        drop_last: bool,
    ):
        super().__init__(len(files), 1, drop_last, seed)
        self._files, self._window = files, window
        self._known: tuple[int, Any] | None = None

    def read(self, epoch: int, batches: range) -> Iterator[list[int]]:
        """Yields some of the batches of an epoch."""
        if self._known is None or self._known[0] != epoch:
            packed, seed = self._files.of(epoch), self.seed
            assert seed is not None
            self._known = epoch, packed.order(seed, epoch, self._window)
        for batch in batches:
            yield [int(self._known[1][batch])]


def _to_data(table: Any, facts: dict[str, Any]) -> Data | HeteroData:
    """Creates PyG's batch, with the fields of its loaders."""
    hetero = facts['nodes'] != [None]
    out = HeteroData() if hetero else Data()
    sizes = []
    for t, name in enumerate(facts['nodes']):
        store = out[name] if hetero else out
        node = _numbers(table, f'node_{t}')
        sizes.append(node.numel())
        _set_features(table, facts, store, f'node_{t}_', node.numel())
        store.n_id = node
        if facts['disjoint']:
            store.batch = _numbers(table, f'tree_{t}', node.numel())
        store.num_sampled_nodes = _counts(
            table, f'num_nodes_{t}', facts['hops'] + 1, node.numel()
        )
    for r, name in enumerate(facts['edges']):
        store = out[tuple(name)] if hetero else out
        source, target = facts['ends'][r]
        row = _local_ids(table, f'row_{r}', sizes[source])
        col = _local_ids(table, f'col_{r}', sizes[target], row.numel())
        store.edge_index = torch.stack([row, col])
        store.e_id = _numbers(table, f'edge_{r}', row.numel())
        _set_features(table, facts, store, f'edge_{r}_', row.numel())
        store.num_sampled_edges = _counts(
            table, f'num_edges_{r}', facts['hops'], row.numel()
        )
    store = out[facts['nodes'][facts['input_type']]] if hetero else out
    num_seeds = store.num_sampled_nodes[0]
    store.input_id = _numbers(table, 'input_id', num_seeds)
    if facts['timed']:
        store.seed_time = _numbers(table, 'seed_time', num_seeds)
    store.batch_size = num_seeds
    add_blocks(out, is_known=False)
    return out


def _set_features(
    table: Any, facts: Any, store: Any, prefix: str, size: int
) -> None:
    """Sets attributes: one number, or a row of them, for each of `size`."""
    names = [name for name in facts['widths'] if name.startswith(prefix)]
    for name in names:
        width = facts['widths'][name]
        shape = (size,) if width < 0 else (size, width)
        store[name.removeprefix(prefix)] = _flat(table, name).view(shape)
    if not names and prefix.startswith('node'):
        store.num_nodes = size


def _flat(table: Any, name: str) -> Tensor:
    """The list of a column."""
    values = table[name].combine_chunks().flatten()
    if values.null_count:
        raise ValueError(f'{name} has nulls')
    return torch.tensor(values.to_numpy(zero_copy_only=False))


def _numbers(table: Any, name: str, size: int | None = None) -> Tensor:
    out = _flat(table, name)
    if size is not None and out.numel() != size:
        raise ValueError(f'{name} has {out.numel()} numbers, not {size}')
    return out.long()


def _counts(table: Any, name: str, hops: int, total: int) -> list[int]:
    """The number of items added by each hop; they sum to `total`."""
    counts = _numbers(table, name, hops).tolist()
    if min(counts, default=0) < 0 or sum(counts) != total:
        raise ValueError(
            f'{name} must be at least 0 and sum to {total} (got {counts})'
        )
    return counts


def _local_ids(
    table: Any, name: str, size: int, count: int | None = None
) -> Tensor:
    ids = _numbers(table, name, count)
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < size:
        raise ValueError(f'{name} leads outside of the {size} nodes')
    return ids
