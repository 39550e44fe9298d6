"""Pads batches to a shape, so that their tensors have static shapes.

In the slots of a hop, its nodes come first, then padding; edges likewise. A
padding edge connects two padding nodes, so the aggregates of real nodes do not
change.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.loader.batch_shape import BatchShape

#: Attributes without a row for each node or edge, mainly those of seeds.
_ELSEWHERE = frozenset(
    ['input_id', 'seed_time', 'edge_label', 'edge_label_index']
    + ['edge_label_time', 'src_index', 'dst_pos_index', 'dst_neg_index']
    + ['edge_index']
)
#: Attributes of every batch: whether they are attributes of nodes.
_KNOWN = {'n_id': True, 'batch': True, 'e_id': False}
#: Ids are -1 in padding slots, as in ``sample_neighbors``.
_IDS = frozenset(['n_id', 'e_id'])


class Padding:
    """Pads a batch to the shape of a bucket.

    Args:
        counts (BatchShape): The shape of a sample.
        room (BatchShape): The padded shape. It must fit
            :meth:`BatchShape.with_spare`.
        graph (Any): The sampled graph. If it is a ``Data`` or a
            ``HeteroData``, it tells attributes of nodes from those of edges.

    Example:
        >>> batch = Data(
        ...     x=torch.tensor([[5.0], [6.0]]),
        ...     n_id=torch.tensor([3, 4]),
        ...     edge_index=torch.tensor([[1], [0]]),
        ... )
        >>> counts = BatchShape({None: (1, 1)}, {None: (1,)})
        >>> room = BatchShape({None: (3, 1)}, {None: (2,)})
        >>> Padding(counts, room, batch).apply(batch)
        >>> batch.n_id, batch.edge_index
        (tensor([ 3, -1, -1,  4]), tensor([[3, 1],
                [0, 2]]))
    """

    def __init__(self, counts: BatchShape, room: BatchShape, graph: Any):
        self._graph = graph
        self._nodes = {
            t: _Places(n, room.nodes[t]) for t, n in counts.nodes.items()
        }
        self._edges = {
            t: _Places(n, room.edges[t]) for t, n in counts.edges.items()
        }
        self._last_tree = sum(c[0] for c in room.nodes.values()) - 1

    def apply(self, batch: Data | HeteroData) -> None:
        """Pads a batch, in place.

        Raises:
            ValueError: If the batch has an ``adj_t`` instead of an
                ``edge_index``.
        """
        named = self._attributes(batch)
        for edge_type, places in self._edges.items():
            self._pad_edges(_store(batch, edge_type), edge_type, places)
        for node_type, places in self._nodes.items():
            store = _store(batch, node_type)
            if 'num_nodes' in store:
                store.num_nodes = places.num_places
            if store.get('num_sampled_nodes') is not None:
                store.num_sampled_nodes = list(places.room)
            store.num_real_nodes = list(places.counts)
            store.node_mask = places.mask(store.n_id.device)
        for store, key, places in named:
            dim = batch.__cat_dim__(key, store[key], store)
            fill = -1 if key in _IDS else 0
            # Padding belongs to the tree of a padding seed.
            fill = self._last_tree if key == 'batch' else fill
            store[key] = places.spread(store[key], fill, dim)

    def spread(self, node: Any) -> Any:
        """Returns node ids (by type) in their slots, and 0 in padding."""
        if not isinstance(node, dict):
            return self._nodes[None].spread(node, 0, 0)
        return {t: self._nodes[t].spread(ids, 0, 0) for t, ids in node.items()}

    def clear(self, batch: Data | HeteroData, group: Any, key: str) -> None:
        """Sets a node attribute to zero in padding slots."""
        self._nodes[group].fill(_store(batch, group)[key], 0)

    def _attributes(self, batch: Any) -> list[tuple[Any, str, '_Places']]:
        """Returns attributes with a row for each node or edge."""
        out = []
        for of_nodes, by_type in ((True, self._nodes), (False, self._edges)):
            for group, places in by_type.items():
                store = _store(batch, group)
                for key, value in store.items():
                    if (
                        isinstance(value, Tensor)
                        and key not in _ELSEWHERE
                        and self._is_of(group, key, value, of_nodes)
                    ):
                        out.append((store, key, places))
        return out

    def _is_of(
        self, group: Any, key: str, value: Tensor, of_nodes: bool
    ) -> bool:
        """Whether an attribute belongs to nodes, or to edges."""
        if key in _KNOWN:
            return _KNOWN[key] == of_nodes
        if isinstance(self._graph, (Data, HeteroData)):
            store = _store(self._graph, group)
            if key in store:
                is_of = store.is_node_attr if of_nodes else store.is_edge_attr
                return is_of(key)
        # Attributes computed by a sampler have a row for each item.
        if of_nodes and group is None and 'edge' in key:
            return False
        places = (self._nodes if of_nodes else self._edges)[group]
        if not of_nodes and group is None and 'edge' not in key:
            return False
        return value.dim() > 0 and value.shape[0] == sum(places.counts)

    def _pad_edges(
        self, store: Any, edge_type: Any, places: '_Places'
    ) -> None:
        if type(store.get('edge_index')) is not Tensor:
            raise ValueError(
                "static_shapes: batches must have an 'edge_index' (got "
                f'{sorted(store.keys())}); a graph with a SparseTensor has '
                'none'
            )
        ends = (None, None) if edge_type is None else edge_type[::2]
        device = store.edge_index.device
        local = [
            self._nodes[t].of_items(device)[index]
            for t, index in zip(ends, store.edge_index, strict=True)
        ]
        edge_index = places.spread(torch.stack(local), 0, dim=1)
        for hop, (start, end) in enumerate(places.padding):
            step = torch.arange(end - start, device=device)
            for side, node_type in enumerate(ends if end > start else ()):
                # A layer that keeps a hop's edges keeps these nodes, too.
                free = self._nodes[node_type].free(hop, device)
                index = free[(step + side) % free.numel()]
                edge_index[side, start:end] = index
        store.edge_index = edge_index
        if store.get('num_sampled_edges') is not None:
            store.num_sampled_edges = list(places.room)
        store.num_real_edges = list(places.counts)
        store.edge_mask = places.mask(device)


def _store(data: Any, group: Any) -> Any:
    return data._store if group is None else data[group]


class _Places:
    """The slots of the items of some hops.

    Args:
        counts (Sequence[int]): Number of items of each hop.
        room (Sequence[int]): Number of slots of each hop.
    """

    def __init__(self, counts: Sequence[int], room: Sequence[int]):
        self.counts, self.room = counts, room
        self.num_places = sum(room)
        self._items: list[tuple[int, int]] = []
        self.padding: list[tuple[int, int]] = []
        start = 0
        for count, most in zip(counts, room, strict=True):
            self._items.append((start, start + count))
            self.padding.append((start + count, start + most))
            start += most

    def spread(self, value: Tensor, fill: int, dim: int) -> Tensor:
        """Returns items in their slots, and ``fill`` in all others."""
        shape = list(value.shape)
        shape[dim] = self.num_places
        out = value.new_empty(shape)
        parts = value.split(list(self.counts), dim)
        for (start, end), part in zip(self._items, parts, strict=True):
            out.narrow(dim, start, end - start).copy_(part)
        self.fill(out, fill, dim)
        return out

    def fill(self, value: Tensor, fill: int, dim: int = 0) -> None:
        """Sets the padding slots."""
        for start, end in self.padding:
            value.narrow(dim, start, end - start).fill_(fill)

    def mask(self, device: torch.device) -> Tensor:
        """Returns whether a slot has an item: bool ``[num_places]``."""
        mask = torch.ones(self.num_places, dtype=torch.bool, device=device)
        self.fill(mask, False)
        return mask

    def of_items(self, device: torch.device) -> Tensor:
        """Returns the slot of each item: int64 ``[num_items]``."""
        return _ranges(self._items, device)

    def free(self, hop: int, device: torch.device) -> Tensor:
        """Returns the padding slots up to a hop: int64 ``[n]``."""
        return _ranges(self.padding[: hop + 1], device)


def _ranges(ranges: Sequence[tuple[int, int]], device: torch.device) -> Tensor:
    return torch.cat([torch.arange(*r, device=device) for r in ranges])
