"""Joins the layers of a sampling program into one subgraph.

Matrices and seeds come in; nodes by first occurrence, local edges, values and
the counts of both go out, by type.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph import Graph
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.convert import count_new
from torch_gsample.sparse_sample.extract import by_column

#: Matrices by edge type, :obj:`None` in a homogeneous graph.
Relations: TypeAlias = dict[Any, SparseSample]


@dataclass
class Edges:
    """The edges of one relation, layer by layer.

    Args:
        row (torch.Tensor): Positions of sources among the nodes.
        col (torch.Tensor): Positions of destinations.
        edge (torch.Tensor): Edge ids in the original graph.
        value (torch.Tensor, optional): Their values.
        counts (List[int]): Number of edges in each layer.
    """

    row: Tensor
    col: Tensor
    edge: Tensor
    value: Tensor | None
    counts: list[int]

    def take(self, index: Tensor, col: Tensor, counts: list[int]) -> 'Edges':
        """Returns selected edges with other destinations."""
        return Edges(
            self.row[index],
            col,
            self.edge[index],
            None if self.value is None else self.value[index],
            counts,
        )


class Nodes:
    """The nodes of one type, by first occurrence, hop by hop."""

    def __init__(self, seeds: Tensor):
        self._parts, self._hops = [seeds], [0]

    def add(self, ids: Tensor, hop: int) -> int:
        """Adds the ids of a hop, and returns the index of the part."""
        self._parts.append(ids)
        self._hops.append(hop)
        return len(self._parts) - 1

    def number(self, size: int, num_hops: int) -> None:
        """Gives all nodes local ids. Their global ids are below ``size``."""
        self.ids, local = ops.unique_nodes(torch.cat(self._parts), size)
        #: Local ids of each part.
        self.local = local.split([p.numel() for p in self._parts])
        self.counts = [0] * (num_hops + 1)
        for new, hop in zip(count_new(self.local), self._hops, strict=True):
            if hop <= num_hops:
                self.counts[hop] += new


def join_layers(
    name: str,
    graph: Graph,
    seeds: dict[Any, Tensor],
    layers: list[Relations],
    induced: dict[Any, Tensor] | None = None,
) -> tuple[dict[Any, Nodes], dict[Any, Edges]]:
    """Joins layers, from the seeds outwards.

    Args:
        name (str): The sampler, for errors.
        graph (Graph): The graph.
        seeds (Dict[NodeType, torch.Tensor]): Distinct ids, of every type.
        layers (List[Dict[EdgeType, SparseSample]]): Their columns are seeds
            or rows of earlier layers.
        induced (Dict[NodeType, torch.Tensor], optional): The nodes of an
            induced subgraph, whose edges are the only layer.

    Raises:
        IndexError: If a node is not in the graph.
        ValueError: If a column is neither a seed nor a row of an earlier
            layer.
    """
    nodes = {t: Nodes(ids) for t, ids in seeds.items()}
    for t, ids in (induced or {}).items():
        nodes[t].add(ids, 1)
    parts: dict[Any, list[_Part | None]] = {
        t: [_Part(layer[t]) if t in layer else None for layer in layers]
        for t in graph.edge_types
    }
    for hop in range(1, len(layers) + 1):
        for t, of_type in parts.items():
            if (part := of_type[hop - 1]) is not None:
                source = graph.end_types(t)[0]
                part.row_at = nodes[source].add(part.row, hop)
    for t, of_type in parts.items():
        for part in of_type:
            if part is not None:  # after all hops, when columns are known
                part.col_at = nodes[graph.end_types(t)[1]].add(
                    part.col, len(layers) + 1
                )
    for t, node in nodes.items():
        node.number(graph.counts[t], len(layers))
    edges = {}
    for t, of_type in parts.items():
        source, target = (nodes[end] for end in graph.end_types(t))
        if induced is None:
            _check_columns(name, target, of_type)
        edges[t] = _join_parts(source, target, of_type)
    return nodes, edges


class _Part:
    """The edges of one relation in one layer, column by column."""

    row_at = col_at = 0  # indices of its parts of the nodes

    def __init__(self, matrix: SparseSample):
        matrix = by_column(matrix)
        self.row, self.col = matrix.edges()
        self.edge, self.value = matrix.edge_id, matrix.value


def _join_parts(
    source: Nodes, target: Nodes, parts: list[_Part | None]
) -> Edges:
    held = [part for part in parts if part is not None]
    value = None
    if any(part.value is not None for part in held):
        # Edges of a part without values have the value 1.
        value = torch.cat(
            [
                torch.ones(p.row.numel()) if p.value is None else p.value
                for p in held
            ]
        )
    return Edges(
        _cat([source.local[part.row_at] for part in held]),
        _cat([target.local[part.col_at] for part in held]),
        _cat([part.edge for part in held]),
        value,
        [0 if part is None else part.row.numel() for part in parts],
    )


def _cat(parts: list[Tensor]) -> Tensor:
    if not parts:
        return torch.empty(0, dtype=torch.int64)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _check_columns(
    name: str, target: Nodes, parts: list[_Part | None]
) -> None:
    known = 0
    for i, part in enumerate(parts):
        known += target.counts[i]
        if part is None or part.col.numel() == 0:
            continue
        local = target.local[part.col_at]
        if int(local.max()) >= known:
            raise ValueError(
                f"{name}: the columns of a layer that 'program' returns must "
                'be seeds or rows of earlier layers (column '
                f'{int(part.col[local >= known][0])} of layer {i} is neither)'
            )


def check_edges(
    name: str,
    graph: Graph,
    nodes: dict[Any, Nodes],
    edges: dict[Any, Edges],
) -> None:
    """Checks that the first and the last edge are edges of the graph.

    Edges that a program creates have ids of their own, and would get the
    attributes of other edges.

    Raises:
        ValueError: If one is not.
    """
    for t, sampled in edges.items():
        source, target = (nodes[end].ids for end in graph.end_types(t))
        for i in {0, sampled.edge.numel() - 1} if sampled.edge.numel() else ():
            row, col = int(source[sampled.row[i]]), int(target[sampled.col[i]])
            edge = int(sampled.edge[i])
            if not graph.has_edge(t, row, col, edge):
                raise ValueError(
                    f"{name}: the edges that 'program' returns must be edges "
                    f'of the graph (edge {edge} is not {row} -> {col}); for '
                    "edges of its own, set 'own_edges=True'"
                )


def repeat_seeds(
    graph: Graph,
    seeds: dict[Any, Tensor],
    place: dict[Any, Tensor],
    nodes: dict[Any, Nodes],
    edges: dict[Any, Edges],
) -> None:
    """Gives each copy of a repeated seed the in-edges of that seed.

    Args:
        graph (Graph): The graph.
        seeds (Dict[NodeType, torch.Tensor]): Ids with repetitions.
        place (Dict[NodeType, torch.Tensor]): The position of each of them
            among the distinct ones.
        nodes (Dict[NodeType, Nodes]): Distinct nodes; changed in place.
        edges (Dict[EdgeType, Edges]): Their edges; changed in place.
    """
    #: The old position of each node, and the new position of each old one.
    #: The former number of each node, and the new number of each former one.
    former, renumber = {}, {}
    for t, node in nodes.items():
        num_distinct = node.counts[0]
        rest = torch.arange(num_distinct, node.ids.numel())
        former[t] = torch.cat([place[t], rest])
        new = torch.arange(former[t].numel())
        renumber[t] = torch.empty_like(node.ids).scatter_reduce(
            0, former[t], new, 'amin', include_self=False
        )
        node.ids = torch.cat([seeds[t], node.ids[num_distinct:]])
        node.counts[0] = seeds[t].numel()
    for t, old in edges.items():
        source, target = graph.end_types(t)
        shape = renumber[source].numel(), renumber[target].numel()
        index, cols, start = [], [], 0
        for count in old.counts:
            part = slice(start, start + count)
            layer = SparseSample.from_coo(
                old.row[part], old.col[part], shape=shape
            )[:, former[target]]
            index.append(start + layer.edge_id)
            cols.append(layer.coo()[1])
            start += count
        edges[t] = old.take(
            _cat(index), _cat(cols), [part.numel() for part in cols]
        )
        edges[t].row = renumber[source][edges[t].row]
