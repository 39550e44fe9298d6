"""Reads the batches that Spark wrote, where a model is trained."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Data, HeteroData
from typing_extensions import Unpack

from torch_gsample.loader.base import KeyedLoader
from torch_gsample.loader.blocks import add_blocks, drop_stale
from torch_gsample.ops._check import count
from torch_gsample.options import WorkerOptions, checked_names

#: What numbers of a file that do not fit raise.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
_FOLDER = re.compile(r'batch=(\d+)$')


class SampledParquetLoader(KeyedLoader):
    """Loads mini-batches of :meth:`SampledBatches.write`.

    They are those of :class:`torch_gsample.loader.NeighborLoader`, with the
    same fields. Spark is not needed, only pyarrow. A batch is read when it is
    its turn, by whichever worker makes it.

    Args:
        path (str): The folder, in any file system that pyarrow knows.
        rank (int, optional): The number of this process in distributed
            training. Of ``world_size`` processes, each takes every
            ``world_size``-th batch.
        world_size (int, optional): The number of processes.
        drop_last (bool, optional): Whether all ranks have equally many
            batches: the remaining ones are dropped.
        transform (Callable, optional): Changes a batch after it was read.
        sampler (Iterable[int], optional): The order of batches.
        seed (int, optional): The seed of a shuffled order, which then is a
            function of (seed, epoch); needed with ``world_size``.
        **options (optional): Of :class:`torch.utils.data.DataLoader`:
            ``shuffle`` (the order of batches), ``num_workers``, ...

    Raises:
        ImportError: If pyarrow is not installed.
        FileNotFoundError: If there is no such folder.
        ValueError: If the folder holds no whole sample, an argument is out of
            range, or, when it is read, a file is damaged.

    An example is in :func:`neighbor_sample`.
    """

    @checked_names
    def __init__(
        self,
        path: str,
        *,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        transform: Callable[[Any], Any] | None = None,
        sampler: Iterable[int] | None = None,
        seed: int | None = None,
        **options: Unpack[WorkerOptions],
    ):
        op = 'SampledParquetLoader'
        count(op, 'world_size', world_size)
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
        self._files = SampledBatchFiles(path, transform)
        self.sample = self._files.facts  # for states
        super().__init__(
            range(len(self._files)),  # type: ignore[arg-type]
            collate_fn=self.collate_fn,
            drop_last=drop_last,
            **kwargs,
        )

    def _make_sample(self, index: list[int]) -> Data | HeteroData:
        return self._files[index[0]]


class SampledBatchFiles(Dataset):
    """The files of a sample, in the order of batches.

    Args:
        path (str): The folder.
        transform (Callable, optional): Changes a batch after it was read.
    """

    def __init__(
        self, path: str, transform: Callable[[Any], Any] | None = None
    ):
        self._system, root = _file_system(path)
        self.transform = transform
        found: dict[int, list[str]] = {}
        from pyarrow import fs

        for item in self._system.get_file_info(fs.FileSelector(root)):
            match = _FOLDER.search(item.path)
            if match and item.type == fs.FileType.Directory:
                files = self._system.get_file_info(fs.FileSelector(item.path))
                found[int(match[1])] = [
                    f.path for f in files if f.path.endswith('.parquet')
                ]
        self.files = [names for _, names in sorted(found.items())]
        if not found or any(len(names) != 1 for names in self.files):
            raise ValueError(
                f"SampledParquetLoader: 'path' must be a folder that "
                f"'SampledBatches.write' wrote, with a file for each batch "
                f'(got {path!r})'
            )
        self.facts = self._checked(0, _facts)
        wanted = self._checked(0, _num_batches)
        if (len(found), max(found)) != (wanted, wanted - 1):
            raise ValueError(
                f'SampledParquetLoader: {path!r} must hold {wanted} batches '
                f'(got {len(found)}): did the job that wrote it fail?'
            )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Data | HeteroData:
        batch = self._checked(index, _to_data)
        if self.transform is None:
            return batch
        return drop_stale(self.transform(batch))

    def _checked(self, index: int, make: Callable[[Any], Any]) -> Any:
        table = self._read(index)
        try:
            return make(table)
        except _DAMAGE as error:
            raise ValueError(
                f'SampledParquetLoader: {self.files[index][0]!r} is damaged '
                f'({error})'
            ) from error

    def _read(self, index: int) -> Any:
        from pyarrow import ArrowInvalid, parquet

        (name,) = self.files[index]
        try:
            with self._system.open_input_file(name) as file:
                table = parquet.read_table(file)
        except (ArrowInvalid, OSError) as error:
            raise ValueError(
                f'SampledParquetLoader: {name!r} is damaged ({error})'
            ) from error
        if table.num_rows != 1 or 'facts' not in table.column_names:
            raise ValueError(
                f'SampledParquetLoader: {name!r} must hold one batch (got '
                f'{table.num_rows} rows)'
            )
        return table


def _file_system(path: str) -> tuple[Any, str]:
    try:
        from pyarrow import fs
    except ImportError as error:
        raise ImportError(
            'SampledParquetLoader: pyarrow is needed: `pip install '
            "'torch_gsample[spark]'`"
        ) from error
    return fs.FileSystem.from_uri(path) if '://' in path else _local(path)


def _local(path: str) -> tuple[Any, str]:
    from pyarrow import fs

    return fs.LocalFileSystem(), str(path)


def _facts(table: Any) -> Any:
    return json.loads(table['facts'][0].as_py())


def _num_batches(table: Any) -> int:
    facts = _facts(table)
    return -(-facts['num_seeds'] // facts['batch_size'])


def _to_data(table: Any) -> Data | HeteroData:
    """Makes PyG's batch, with the fields of its loaders."""
    facts = _facts(table)
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
    """What each hop added, which is `total` in all."""
    counts = _numbers(table, name, hops).tolist()
    if min(counts, default=0) < 0 or sum(counts) != total:
        raise ValueError(f'{name} is {counts}, not {total} in all')
    return counts


def _local_ids(
    table: Any, name: str, size: int, count: int | None = None
) -> Tensor:
    ids = _numbers(table, name, count)
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < size:
        raise ValueError(f'{name} leads outside of the {size} nodes')
    return ids
