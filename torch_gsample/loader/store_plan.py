"""Gathers the attributes of one store for a sample.

Ids of nodes and edges come in, the attributes of a batch go out.
"""

from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.loader.utils import index_select

from torch_gsample.loader.features import is_column, is_wide
from torch_gsample.loader.late_values import (
    LATE,
    LateEdges,
    LateKeys,
    LateValues,
)
from torch_gsample.ops.features import take_rows

Values: TypeAlias = dict[str, Any]


class StorePlan:
    """The plan for gathering the attributes of a store.

    Attributes are their keys, with the dimension of nodes or edges: None if
    :func:`take_rows` collects them fastest.

    Args:
        store (BaseStorage): The store.
        nodes (bool): Whether it has attributes of nodes.
        edges (bool): Whether it has attributes of edges.
    """

    def __init__(self, store: Any, nodes: bool, edges: bool):
        self.store, self.mapping = store, store._mapping
        self.key = store._key
        self.counts_nodes = nodes and 'num_nodes' in store
        self.has_ends = edges and 'edge_index' in store
        self.of_nodes: list[tuple[str, int | None]] = []
        self.of_edges: list[tuple[str, int | None]] = []
        for key, value in self.mapping.items():
            if nodes and key != 'num_nodes' and store.is_node_attr(key):
                self.of_nodes.append((key, _dimension(store, key, value)))
            if edges and key != 'edge_index' and store.is_edge_attr(key):
                self.of_edges.append((key, _dimension(store, key, value)))
        self.needs_edge_ids = bool(self.of_edges) or 'e_id' not in store

    def add_nodes(self, values: Values, node: Tensor) -> None:
        """Gathers the attributes of a sample's nodes."""
        _collect(values, self.of_nodes, node)
        if self.counts_nodes:
            values['num_nodes'] = node.numel()
        if 'n_id' not in values:
            values['n_id'] = node

    def add_edges(
        self,
        values: Values,
        ends: tuple[Tensor, Tensor],
        edge: Any,
        perm: Any,
        late: LateKeys,
    ) -> Values:
        """Returns values with the attributes of edges.

        Args:
            values (Dict[str, Any]): The attributes of the whole graph.
            ends (Tuple[torch.Tensor, torch.Tensor]): Sources, destinations.
            edge (torch.Tensor, optional): Positions in ``perm``, or ids.
            perm (torch.Tensor, optional): The ids.
            late (LateKeys): Which of them to gather when they are read.
        """
        if self.has_ends:
            values['edge_index'] = torch.stack(ends)
        if edge is None:
            for key, _ in self.of_edges:
                del values[key]
            return values
        if not self.needs_edge_ids:
            return values
        if edge.numel() == 0:
            perm = None
        gather = {
            key: partial(_gather, values[key], dim)
            for key, dim in self.of_edges
            if late.has(self.key, key) and isinstance(values[key], Tensor)
        }
        now = [pair for pair in self.of_edges if pair[0] not in gather]
        if perm is not None and (now or not late.has(self.key, 'e_id')):
            edge, perm = perm.index_select(0, edge), None
        _collect(values, now, edge)
        if 'e_id' not in values:
            values['e_id'] = edge if perm is None else LATE
        if not gather and perm is None:
            return values
        values.update(dict.fromkeys(gather, LATE))
        edges = LateEdges(self.key, edge, perm, gather, late.reads)
        return LateValues(values, edges)

    def copy(self, parent: Any, values: Values) -> Any:
        """Returns the store of a batch, like ``copy.copy``."""
        out = object.__new__(type(self.store))
        attributes = out.__dict__
        attributes.update(self.store.__dict__)
        attributes.pop('_cached_attr', None)
        attributes['_parent'] = parent
        attributes['_mapping'] = values
        return out


def _dimension(store: Any, key: str, value: Any) -> int | None:
    """Returns the gathered dimension of an attribute, None for its rows.

    Rows of many bytes, or of one number, go to reused memory.
    """
    dim: int = store._parent().__cat_dim__(key, value, store)
    is_fast = is_wide(value) or is_column(value)
    return None if dim == 0 and is_fast else dim


def _collect(
    values: Values, attributes: list[tuple[str, int | None]], index: Tensor
) -> None:
    """Replaces attributes by their rows of some ids."""
    for key, dim in attributes:
        values[key] = _gather(values[key], dim, index)


def _gather(value: Any, dim: int | None, index: Tensor) -> Any:
    """Returns the rows of an attribute for some ids."""
    if dim is None:
        return take_rows(value, index)
    if isinstance(value, Tensor):
        return value.index_select(dim, index)
    return index_select(value, index, dim)  # an array; an error for a list
