"""Features of nodes and edges, split by rows over processes.

Samples come in early; the rows of several samples are exchanged at once.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, FeatureStore, HeteroData, TensorAttr

from torch_gsample.ops import _check
from torch_gsample.storage.edge_features import EDGES, add_edge_features
from torch_gsample.storage.partition.exchange import Exchange
from torch_gsample.storage.partition.sampler import PartitionedSampler

#: Type of nodes or edges, and name of an attribute.
Key = tuple[Any, str]
_NAME = 'PartitionedFeatures'


class PartitionedFeatures(FeatureStore):
    """Features in the memory of several processes.

    It is the first part of a loader's data, ``(features, graph)``, where
    ``graph`` is a :class:`GraphPart`, or the whole graph. Loaders of
    torch_gsample sample ``window`` batches ahead, and all processes exchange
    the rows of these batches at once: each distinct row is sent to a process
    once per window.

    All processes exchange at the same time. Processes with fewer batches take
    part until the last process has all of its rows, so all must iterate to the
    end of an epoch, or stop after the same batch.

    Args:
        features (Dict): The rows of this process, for names (``'x'``) in a
            graph without types, and for ``(type, name)`` otherwise, with a
            node or edge type. The type of edges in a graph without types is
            ``(None, None)``. Process 0 has the rows of the first nodes (or
            edges, by their ids), process 1 the following ones, and so on.
        exchange (Exchange): The processes; not the exchange of the
            :class:`PartitionedSampler`.
        sampler (PartitionedSampler, optional): The loaders' sampler, if
            partitioned: it draws for processes with more batches. Required for
            edge features.
        window (int, optional): Number of batches per exchange.

    Raises:
        TypeError: If a key or value is of another type.
        ValueError: If an argument is invalid, or differs between processes;
            the message names the rule.

    Example:
        >>> import torch.distributed as dist
        >>> from torch_geometric.data import Data
        >>> from torch_gsample import NeighborSampler
        >>> from torch_gsample.loader import NeighborLoader
        >>> _ = dist.init_process_group(
        ...     'gloo', store=dist.HashStore(), rank=0, world_size=1
        ... )
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> data = Data(edge_index=edge_index, num_nodes=3)
        >>> loader = NeighborLoader(
        ...     (PartitionedFeatures({'x': torch.eye(3)}, Exchange()), data),
        ...     sampler=NeighborSampler(data, [2], seed=0),
        ...     input_nodes=torch.tensor([1]),
        ... )
        >>> next(iter(loader)).x
        tensor([[0., 1., 0.],
                [0., 0., 1.]])
        >>> dist.destroy_process_group()
    """

    #: Loaders pass samples to it before they need features.
    plans_reads = True

    def __init__(
        self,
        features: Mapping[Any, Tensor],
        exchange: Exchange,
        sampler: PartitionedSampler | None = None,
        *,
        window: int = 8,
    ):
        super().__init__()
        self._exchange, self._sampler = exchange, sampler
        self._window = _check.count(_NAME, 'window', window, 1)
        self._rows: dict[Key, Tensor] = {}
        for key, value in features.items():
            group, name = (None, key) if isinstance(key, str) else key
            if not isinstance(value, Tensor) or value.dim() == 0:
                raise TypeError(
                    f'{_NAME}: {name!r} must be a tensor of rows (got '
                    f'{type(value).__name__})'
                )
            self._rows[group, name] = value.contiguous()
        exchange.check_equal(
            _NAME,
            window=window,
            features={
                key: (str(rows.dtype), list(rows.shape[1:]))
                for key, rows in self._rows.items()
            },
        )
        if sampler is None and any(
            isinstance(g, tuple) for g, _ in self._rows
        ):
            # Other samplers may number edges in another order.
            raise ValueError(
                f"{_NAME}: features of edges need a 'sampler' (got None)"
            )
        self._bounds = self._count_rows()
        self._ahead: deque[dict[Any, Window]] = deque()

    def _count_rows(self) -> dict[Any, Tensor]:
        """Returns the first row of each process, by type."""
        sizes: dict[Any, int] = {}
        for (group, name), rows in self._rows.items():
            if sizes.setdefault(group, len(rows)) != len(rows):
                raise ValueError(
                    f'{_NAME}: {name!r} must have as many rows as others of '
                    f'its type, {sizes[group]} (got {len(rows)})'
                )
        parts = self._exchange.gather(sizes)
        return {
            group: torch.tensor([0, *(part[group] for part in parts)]).cumsum(
                0
            )
            for group in sizes
        }

    def read_ahead(
        self,
        samples: Iterable[Any],
        behind: int = 0,
        total: int = sys.maxsize,
    ) -> Iterator[Any]:
        """Yields samples whose rows have arrived.

        Args:
            samples (Iterable[SamplerOutput]): Outputs of a sampler.
            behind (int, optional): How many samples may wait for their
                features while the next one is requested.
            total (int, optional): The number of samples.

        Raises:
            RuntimeError: If there are more samples.
            ValueError: If ``total`` is not given.
        """
        if total == sys.maxsize:
            raise ValueError(
                f'{_NAME}: loaders must have a length, because processes '
                'exchange rows for each batch'
            )
        self._ahead.clear()
        most, window = max(self._exchange.gather(total)), self._window
        rest = iter(samples)
        for begin in range(0, most, window):
            own = max(min(window, total - begin), 0)
            part = list(islice(rest, own))
            # Other processes may sample more, and need this process's columns.
            for _ in range(min(window, most - begin) - len(part)):
                if self._sampler is not None:
                    self._sampler.serve()
            self._ahead.append(self._fetch(part))
            while len(self._ahead) > -(-behind // window) + 2:
                self._ahead.popleft()
            yield from part
        if next(rest, None) is not None:
            raise RuntimeError(
                f'{_NAME}: a loader must have at most {total} batches, its '
                'length (it has more)'
            )

    def _fetch(self, samples: list[Any]) -> dict[Any, 'Window']:
        """Fetches the rows of samples, together with all processes."""
        found: dict[Any, list[Tensor]] = {group: [] for group in self._bounds}
        for sample in samples:
            out = getattr(sample, 'out', sample)
            edges = _by_type(out.edge, EDGES)
            for group, ids in (_by_type(out.node, None) | edges).items():
                if group in found and ids is not None:
                    found[group].append(ids.cpu())
        windows = {}
        none = torch.empty(0, dtype=torch.int64)
        for group, bounds in self._bounds.items():
            item = torch.cat([none, *found[group]]).unique()
            if len(item) and not 0 <= item[0] <= item[-1] < bounds[-1]:
                raise IndexError(
                    f'{_NAME}: nodes and edges of type {group} must be in [0, '
                    f'{int(bounds[-1])}) (got {int(item[0])} to '
                    f'{int(item[-1])})'
                )
            ends = torch.searchsorted(item, bounds[1:])
            sizes = ends.diff(prepend=ends.new_zeros(1)).tolist()
            asked = self._exchange.swap(list(item.split(sizes)))
            first = bounds[self._exchange.rank]
            rows = {}
            for key, value in self._rows.items():
                if key[0] == group:
                    parts = [_bytes_of(value[ids - first]) for ids in asked]
                    received = torch.cat(self._exchange.swap(parts))
                    rows[key] = received.view(value.dtype).view(
                        len(item), *value.shape[1:]
                    )
            windows[group] = Window(item, rows)
        return windows

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Returns the attributes, but for those of edges without a type.

        A loader of PyG would look these up by nodes.
        """
        return [
            TensorAttr(group, name)
            for group, name in self._rows
            if group != EDGES
        ]

    def add_edge_features(self, batch: Data | HeteroData) -> Any:
        """Adds the features of edges to a batch; loaders call it.

        Raises:
            ValueError: If the batch has no ``e_id``.
        """
        return add_edge_features(self, self._rows, batch)

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        key, node = (attr.group_name, attr.attr_name), attr.index
        if key not in self._rows:
            raise KeyError(
                f'{_NAME}: there must be an attribute {key} (there are '
                f'{sorted(map(str, self._rows))})'
            )
        for window in self._ahead:
            rows = window[attr.group_name].read(key, node)
            if rows is not None:
                return rows
        raise RuntimeError(
            f'{_NAME}: rows of other processes are available only for '
            'batches of a loader of torch_gsample'
        )

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        rows = self._rows[attr.group_name, attr.attr_name]
        return int(self._bounds[attr.group_name][-1]), *rows.shape[1:]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise NotImplementedError(
            f'{_NAME}: features must be arguments of the constructor'
        )

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise NotImplementedError(f'{_NAME}: features cannot be removed')

    def __repr__(self) -> str:
        shapes = {
            (name if group is None else (group, name)): list(value.shape)
            for (group, name), value in self._rows.items()
        }
        return f'{type(self).__name__}({shapes})'


class Window:
    """The rows of the nodes or edges of a window of batches.

    Args:
        item (torch.Tensor): int64 ``[n]``, nodes or edges, ascending.
        rows (Dict[Tuple, torch.Tensor]): ``[n, *]`` of each attribute.
    """

    def __init__(self, item: Tensor, rows: dict[Key, Tensor]):
        self._item, self._rows = item, rows

    def read(self, key: Key, item: Any) -> Tensor | None:
        """Returns the rows of nodes or edges, or None if one is missing."""
        if not isinstance(item, Tensor) or item.dtype != torch.int64:
            return None
        item = item.cpu()
        if len(self._item) == 0:
            return self._rows[key] if len(item) == 0 else None
        at = torch.searchsorted(self._item, item)
        at = at.clamp_(max=len(self._item) - 1)
        if not torch.equal(self._item[at], item):
            return None
        return self._rows[key][at]


def _by_type(ids: Any, group: Any) -> dict[Any, Tensor | None]:
    """Returns the ids of a sample by type."""
    return ids if isinstance(ids, dict) else {group: ids}


def _bytes_of(rows: Tensor) -> Tensor:
    """Views rows as bytes, which every backend can send."""
    size = rows.shape[1:].numel() * rows.element_size()
    return rows.contiguous().view(torch.uint8).view(len(rows), size)
