"""PyG's store of features, with rows on disk."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, FeatureStore, HeteroData, TensorAttr

from torch_gsample.memory import bytes_of
from torch_gsample.storage.edge_features import EDGES, add_edge_features
from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.mapped_rows import MappedRows
from torch_gsample.storage.read_model import DiskModel
from torch_gsample.storage.read_plan import PLANS, ReadPlan
from torch_gsample.storage.row_source import RowSource
from torch_gsample.storage.scratch_file import ScratchFile

#: Group and name of an attribute.
Key = tuple[Any, str]
#: The memory of default plans; None disables them.
_defaults: dict[str, int | None] = {'memory_limit': None}


def plan_by_default(memory_limit: int | None) -> None:
    """Enables default read plans within this memory, or disables them."""
    _defaults['memory_limit'] = memory_limit


class DiskFeatureStore(FeatureStore):
    """Features of nodes and edges on disk: the first part of a loader's data.

    PyG's loaders and ours take ``(store, graph_store)``, where
    ``graph_store`` is a :class:`ChunkedGraph` or any ``GraphStore``. Small
    features, such as labels, may be tensors in memory.

    PyG's loaders read only node features from a store. Ours also read edge
    features; PyG's do so with ``transform=store.add_edge_features``.

    Args:
        features (Dict, optional): Each value is a :class:`FeatureFile`, the
            path of one or of an ``.npy`` file, a mapped array
            (``numpy.memmap``), another :class:`RowSource`, or a tensor. Keys
            are names (``'x'``) in a graph without types, and ``(type, name)``
            with a node or edge type otherwise. The type of edges in a graph
            without types is ``EDGES``, ``(None, None)``.

    Raises:
        OSError: If a file cannot be read.
        TypeError: If a key or value is of another type.
        ValueError: If a file breaks a rule of the format.

    Example:
        >>> import tempfile
        >>> from torch_gsample.loader import NeighborLoader
        >>> from torch_gsample.storage import ChunkedGraph, RandomReadSampler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     edges = torch.tensor([[1, 2, 0], [0, 1, 2]])
        ...     graph = ChunkedGraph.write(f'{folder}/graph', edges)
        ...     x = FeatureFile.write(f'{folder}/x.gsf', torch.eye(3))
        ...     store = DiskFeatureStore({'x': x, 'y': torch.arange(3)})
        ...     sampler = RandomReadSampler(graph, [1], seed=0)
        ...     loader = NeighborLoader(
        ...         (store, graph),
        ...         input_nodes=torch.arange(3),
        ...         sampler=sampler,
        ...         batch_size=2,
        ...     )
        ...     next(iter(loader)).x.argmax(1)
        tensor([0, 1, 2])
    """

    def __init__(self, features: Mapping[Any, Any] | None = None):
        super().__init__()
        self._values: dict[Key, RowSource | Tensor] = {}
        self._plan: ReadPlan | None = None
        if features is None:
            features = {}
        if not isinstance(features, Mapping):
            raise TypeError(
                "DiskFeatureStore: 'features' must be a dictionary, such as "
                f"{{'x': features}} (got {type(features).__name__})"
            )
        for key, value in features.items():
            pair = isinstance(key, tuple) and len(key) == 2
            if not (isinstance(key, str) or pair):
                raise TypeError(
                    "DiskFeatureStore: keys of 'features' must be names or "
                    f'pairs of a type and a name (got {key!r})'
                )
            group, name = (None, key) if isinstance(key, str) else key
            self.put_tensor(value, group, name, None)

    @property
    def files(self) -> dict[Key, RowSource]:
        """The features on disk, by group and name."""
        return {
            key: value
            for key, value in self._values.items()
            if isinstance(value, RowSource)
        }

    def add_edge_features(self, batch: Data | HeteroData) -> Any:
        """Adds edge features to a batch with edge ids.

        Args:
            batch (Data or HeteroData): A batch with ``e_id``.

        Raises:
            ValueError: If it has no ``e_id``.
        """
        return add_edge_features(self, self._values, batch)

    def plan_reads(
        self,
        memory_limit: int | str,
        *,
        plan: str = 'auto',
        scores: Tensor | dict[str, Tensor] | None = None,
        model: DiskModel | None = None,
        max_batches: int = 1_000,
        scratch: str | Path | None = None,
    ) -> None:
        """Lets loaders prefetch node features of coming batches.

        Our loaders sample batches in advance, so their rows are known.
        Batches are the same under each plan:

        * ``'single'``: each batch reads its rows, sorted and merged.
        * ``'hot'``: the same, with the rows of the highest ``scores`` in
          memory. It also works with PyG's loaders.
        * ``'window'``: reads the distinct rows of as many batches as fit in
          memory at once, while earlier batches are used.
        * ``'packed'``: one scan of the file copies the rows of many batches to
          a file in ``scratch``, batch by batch, while earlier batches are
          used; half of the memory holds the rows of the highest ``scores``.
        * ``'auto'``: counts the reads of the first batches under each plan,
          and uses the plan with the least time by ``model``.

        Call it before you create loaders.

        Args:
            memory_limit (int or str): Bytes, such as ``'1GiB'``, for rows,
                prefetched samples, marks of nodes, checksums and blocks in
                flight. Delivered batches do not count.
            plan (str, optional): The plan.
            scores (torch.Tensor or Dict[str, torch.Tensor], optional): The
                expected number of reads of each node, such as its out-degree,
                ``[num_nodes]`` (by type).
            model (DiskModel, optional): The cost of reads; measured on the
                largest file if not given.
            max_batches (int, optional): The maximum number of batches of a
                window.
            scratch (str or Path, optional): A writable folder on a fast disk;
                required for ``'packed'``, which writes all rows and samples of
                an epoch to it once. This wears out SSDs. It holds two
                windows at a time, within the free space. If it is full or
                fails, another plan reads the batches.

        Raises:
            OSError: If ``scratch`` cannot be written to.
            TypeError: If an argument has the wrong type.
            ValueError: If an argument is invalid; the message names the rule.
        """
        files = {
            key: file
            for key, file in self.files.items()
            if not isinstance(key[0], tuple)
        }
        name = 'DiskFeatureStore.plan_reads'
        memory_limit = bytes_of(memory_limit, f"{name}: 'memory_limit'")
        if plan not in PLANS:
            raise ValueError(
                f"{name}: 'plan' must be one of {PLANS} (got {plan!r})"
            )
        if not files:
            raise ValueError(
                f'{name}: at least one file of node features is required '
                '(got none)'
            )
        if max_batches < 1:
            raise ValueError(
                f"{name}: 'max_batches' must be positive (got {max_batches})"
            )
        if plan == 'hot' and scores is None:
            raise ValueError(
                f"{name}: 'scores' is required for the plan 'hot' (got None)"
            )
        if plan == 'packed' and scratch is None:
            raise ValueError(
                f"{name}: 'scratch' is required for the plan 'packed' (got "
                'None)'
            )
        if scratch is not None:
            ScratchFile(Path(scratch)).close()
        checked = None if scores is None else _checked_scores(scores, files)
        self._plan = ReadPlan(
            files,
            memory_limit,
            plan,
            checked,
            model,
            max_batches,
            None if scratch is None else Path(scratch),
        )

    @property
    def plans_reads(self) -> bool:
        """Whether :meth:`read_ahead` prefetches rows.

        Under ``gsample run --memory``, reads are planned by default.
        """
        limit = _defaults['memory_limit']
        on_disk = any(not isinstance(group, tuple) for group, _ in self.files)
        if self._plan is None and limit is not None and on_disk:
            self.plan_reads(limit)
        return self._plan is not None

    @property
    def reads_in_threads(self) -> bool:
        """Whether several threads may read: not a user's source of rows."""
        own = FeatureFile, MappedRows
        return all(type(file) in own for file in self.files.values())

    def read_ahead(
        self,
        samples: Iterable[Any],
        behind: int = 0,
        total: int = sys.maxsize,
    ) -> Iterator[Any]:
        """Yields samples, and prefetches the rows of later ones.

        Args:
            samples (Iterable[SamplerOutput]): Outputs of a sampler.
            behind (int, optional): Maximum number of samples that wait for
                their features while the next one is requested.
            total (int, optional): The maximum number of samples.
        """
        if self._plan is None:
            return iter(samples)
        return self._plan.read_ahead(samples, behind, total)

    def explain(self) -> str:
        """Returns the costs of the plans, and the chosen plan."""
        if self._plan is None:
            return 'reads are not planned: see DiskFeatureStore.plan_reads'
        return self._plan.explain()

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Returns the attributes, except those of untyped edges.

        PyG's loaders would look these up by node ids.
        """
        return [
            TensorAttr(group, name)
            for group, name in self._values
            if group != EDGES
        ]

    def _find(self, attr: TensorAttr) -> RowSource | Tensor:
        key = attr.group_name, attr.attr_name
        if key not in self._values:
            raise KeyError(
                f'DiskFeatureStore: there must be an attribute {key} (there '
                f'are {sorted(map(str, self._values))})'
            )
        return self._values[key]

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        value, index = self._find(attr), attr.index
        if index is None:
            return value[:]
        key = attr.group_name, attr.attr_name
        plan = self._plan
        if isinstance(value, Tensor) and isinstance(index, Tensor):
            _check_rows(key, value, index)
        if plan is None or key not in plan.files or not _is_list(index):
            return value[index]
        assert isinstance(value, RowSource)
        return value.decode(plan.read(key, index.cpu().numpy()))

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return tuple(self._find(attr).shape)

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        group, name = attr.group_name, attr.attr_name
        edges = isinstance(group, tuple)
        if not (group is None or isinstance(group, str) or edges):
            raise TypeError(
                "DiskFeatureStore: 'group_name' must be a type of nodes or "
                f'edges, or None (got {group!r})'
            )
        if not isinstance(name, str):
            raise TypeError(
                f"DiskFeatureStore: 'attr_name' must be a string (got "
                f'{name!r})'
            )
        if attr.index is not None:
            raise NotImplementedError(
                'DiskFeatureStore: rows cannot be replaced; write a new file '
                "by 'FeatureFile.write' (and put it with index=None)"
            )
        if isinstance(tensor, (str, Path)):
            if Path(tensor).suffix == '.npy':
                tensor = np.load(tensor, 'r')
            else:
                tensor = FeatureFile(tensor)
        if MappedRows.takes(tensor):
            tensor = MappedRows(tensor)
        elif isinstance(tensor, np.ndarray):
            tensor = torch.from_numpy(tensor)
        if not isinstance(tensor, (RowSource, Tensor)):
            raise TypeError(
                f'DiskFeatureStore: {name!r} must be a FeatureFile, the path '
                f'of one, or a tensor (got {type(tensor).__name__})'
            )
        self._values[group, name] = tensor
        return True

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        key = attr.group_name, attr.attr_name
        return self._values.pop(key, None) is not None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, '_plan': None}  # of another process

    def __repr__(self) -> str:
        shapes = {
            (name if group is None else (group, name)): list(value.shape)
            for (group, name), value in self._values.items()
        }
        return f'{type(self).__name__}({shapes})'


def _is_list(index: Any) -> bool:
    """Whether an index is a list of rows, as in samples."""
    return (
        isinstance(index, Tensor)
        and index.dtype == torch.int64
        and index.dim() == 1
    )


def _checked_scores(
    scores: Any, files: dict[Key, RowSource]
) -> dict[Any, Tensor]:
    by_type = {None: scores} if isinstance(scores, Tensor) else scores
    for (group, _), file in files.items():
        found = by_type.get(group)
        size = found.shape if isinstance(found, Tensor) else found
        if size != (len(file),):
            raise ValueError(
                f"DiskFeatureStore.plan_reads: 'scores' of {group!r} must be "
                f'a tensor [{len(file)}], one for each row (got {size})'
            )
    return by_type


def _check_rows(key: Any, value: Tensor, index: Tensor) -> None:
    if index.dtype == torch.bool or index.numel() == 0:
        return
    low, high = map(int, torch.aminmax(index))
    size = value.shape[0]
    if low < -size or high >= size:
        raise IndexError(
            f"DiskFeatureStore: 'index' must be in [0, {size}), the rows of "
            f'{key} (got {low if low < -size else high})'
        )
