"""Sparse matrices as arguments of layers: their elements are edges."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gsample.vertex.kernels.graph_cache import has_loops, known_of
from torch_gsample.vertex.kernels.matrices import edges_of_matrix


def _read(graph: Any, *features: Any) -> tuple[Tensor, Tensor | None] | None:
    """Returns the edges and values of a matrix of the size of features."""
    if isinstance(graph, SparseTensor):
        shape = graph.sizes()
    elif isinstance(graph, Tensor) and graph.layout != torch.strided:
        shape = list(graph.shape)
    else:
        return None
    if shape != [len(x) for x in reversed(features)]:
        return None
    return edges_of_matrix(graph)


def read_weights(
    graph: Any, weight: Tensor | None, x: Any, loop: float
) -> tuple[Any, Tensor | None, float]:
    """Returns edges, their weights, and the weight of loops to add to them.

    Those of a sparse matrix are its elements. Only if it has loops, those that
    a layer adds are among the edges: PyG adds loops to those of a matrix of
    ``torch.sparse``, and replaces those of torch-sparse, in another way than
    loops among edges.

    Args:
        graph (Any): The argument ``edge_index``.
        weight (torch.Tensor, optional): The argument ``edge_weight``.
        x (torch.Tensor): The features.
        loop (float): The weight of the loops that the layer adds, or 0.
    """
    found = _read(graph, x, x)
    if found is None:
        return graph, weight, loop
    edges, values = found
    if values is None:
        values = x.new_ones(edges.shape[1])
    if not loop or values.dim() > 1 or not has_loops(edges):
        return edges, values, loop
    edges, kept = _with_loops(edges, len(x), isinstance(graph, SparseTensor))
    values = values if kept is None else values[kept]
    return edges, torch.cat([values, values.new_full((len(x),), loop)]), 0.0


def _with_loops(
    edges: Tensor, num_nodes: int, replaces: bool
) -> tuple[Tensor, Tensor | None]:
    """Returns edges and a loop for each node, and which edges are kept.

    They are cached with the edges.
    """
    known = known_of([edges])
    key = 'with loops', replaces
    found: tuple[Tensor, Tensor | None] | None = known.get(key)
    if found is None:
        kept = None
        loops = torch.arange(num_nodes, device=edges.device).expand(2, -1)
        if replaces:
            kept = (edges[0] != edges[1]).nonzero().view(-1)
            edges = edges[:, kept]
        found = known[key] = torch.cat([edges, loops], dim=1), kept
    return found


def read_pattern(
    graph: Any, layer: Any, edge_attr: Any, pair: tuple[Any, Any]
) -> Any:
    """Returns the edges of a sparse matrix of weights, which PyG ignores.

    Other graphs are returned as they are, as are matrices of edge features.

    Args:
        graph (Any): The argument ``edge_index``.
        layer (MessagePassing): A layer, which may have features of edges.
        edge_attr (Any): The features of edges, if any.
        pair (Tuple): The features of sources and of destinations.
    """
    has_features = layer.edge_dim is not None or edge_attr is not None
    if has_features or any(x is None for x in pair):
        return graph
    found = _read(graph, *pair)
    if found is None or (found[1] is not None and found[1].dim() > 1):
        return graph
    return found[0]
