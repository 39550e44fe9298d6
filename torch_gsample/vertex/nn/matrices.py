"""Sparse matrices as arguments of layers: their elements are edges."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.vertex.kernels.graph_cache import (
    edges_of_matrix,
    has_loops,
)


def read_matrix(graph: Any, *features: Any) -> tuple[Any, Tensor | None]:
    """Returns the edges and values of a sparse matrix, where PyG reads these.

    Other graphs are returned as they are, without values.

    Args:
        graph (Any): The argument ``edge_index``.
        *features (torch.Tensor): The features of sources, and of destinations.
    """
    if (
        not isinstance(graph, Tensor)
        or graph.layout == torch.strided
        or list(graph.shape) != [len(x) for x in reversed(features)]
    ):
        return graph, None
    return edges_of_matrix(graph) or (graph, None)


def read_weights(
    graph: Any, weight: Tensor | None, x: Any, adds_loops: bool
) -> tuple[Any, Tensor | None]:
    """Returns edges and their weights; for a sparse matrix, its values.

    Args:
        graph (Any): The argument ``edge_index``.
        weight (torch.Tensor, optional): The argument ``edge_weight``.
        x (torch.Tensor): The features.
        adds_loops (bool): Whether the layer adds loops. PyG adds them to those
            of a matrix, but replaces loops among edges.
    """
    edges, values = read_matrix(graph, x, x)
    if values is None or (adds_loops and has_loops(edges)):
        return graph, weight
    return edges, values


def read_pattern(graph: Any, edge_attr: Any, pair: tuple[Any, Any]) -> Any:
    """Returns the edges of a sparse matrix of weights, which PyG ignores.

    Other graphs are returned as they are, as are matrices of edge features.

    Args:
        graph (Any): The argument ``edge_index``.
        edge_attr (Any): The features of edges, if any.
        pair (Tuple): The features of sources and of destinations.
    """
    if edge_attr is not None or any(x is None for x in pair):
        return graph
    edges, values = read_matrix(graph, *pair)
    return graph if values is not None and values.dim() > 1 else edges
