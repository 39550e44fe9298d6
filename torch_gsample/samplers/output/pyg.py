"""Conversion of operator outputs to PyG's sampler outputs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from torch_gsample.graph_types import GraphTypes
from torch_gsample.ops import Sample
from torch_gsample.samplers.output.attributes import (
    AttributedOutput,
    HeteroAttributedOutput,
)

Output: TypeAlias = SamplerOutput | HeteroSamplerOutput


def to_sampler_output(
    sample: Sample, graph: GraphTypes, disjoint: bool
) -> Output:
    """Returns a sample as PyG's output."""
    num_nodes, num_edges = sample.hop_counts()
    row, col = sample.row, sample.col
    if graph.is_transposed:
        row, col = col, row
    if not graph.is_hetero:
        return SamplerOutput(
            sample.node,
            row,
            col,
            sample.edge,
            sample.batch if disjoint else None,
            num_nodes[0],
            num_edges[0],
        )
    of_types, of_relations = (
        partial(torch.split_with_sizes, split_sizes=list(map(sum, counts)))
        for counts in (num_nodes, num_edges)
    )
    return output_of(
        graph,
        of_types(sample.node),
        of_relations(row),
        of_relations(col),
        of_relations(sample.edge),
        of_types(sample.batch) if disjoint else None,
        num_nodes,
        num_edges,
    )


def output_of(
    graph: GraphTypes,
    node: Sequence[Tensor],
    row: Sequence[Tensor],
    col: Sequence[Tensor],
    edge: Sequence[Tensor],
    batch: Sequence[Tensor] | None,
    num_nodes: list[list[int]],
    num_edges: list[list[int]],
) -> Output:
    """Returns an output from one item for each node type or relation."""
    if not graph.is_hetero:
        return SamplerOutput(
            node=node[0],
            row=row[0],
            col=col[0],
            edge=edge[0],
            batch=None if batch is None else batch[0],
            num_sampled_nodes=num_nodes[0],
            num_sampled_edges=num_edges[0],
        )

    def by_edge_type(values: Sequence[Any]) -> dict[Any, Any]:
        return dict(zip(graph.edge_types, values, strict=True))

    def by_node_type(values: Sequence[Any]) -> dict[Any, Any]:
        return dict(zip(graph.node_types, values, strict=True))

    return HeteroSamplerOutput(
        node=by_node_type(node),
        row=by_edge_type(row),
        col=by_edge_type(col),
        edge=by_edge_type(edge),
        batch=None if batch is None else by_node_type(batch),
        num_sampled_nodes=by_node_type(num_nodes),
        num_sampled_edges=by_edge_type(num_edges),
    )


def set_edges(
    out: Any, edge_type: Any, row: Tensor, col: Tensor, edge: Tensor
) -> None:
    """Sets the edges of a sample (of one edge type)."""
    if isinstance(out, HeteroSamplerOutput):
        out.row[edge_type] = row
        out.col[edge_type] = col
        out.edge[edge_type] = edge
    else:
        out.row, out.col, out.edge = row, col, edge


def keep_edges(out: SamplerOutput, mask: Tensor) -> None:
    """Keeps the edges of ``mask``, and updates the counts."""
    out.num_sampled_edges = _count_kept(out.num_sampled_edges, mask)
    kept = mask.nonzero().view(-1)  # quicker than a mask of each value
    out.row, out.col = (
        out.row.index_select(0, kept),
        out.col.index_select(0, kept),
    )
    if out.edge is not None:
        out.edge = out.edge.index_select(0, kept)
    _keep_attributes(out, None, kept)


def keep_hetero_edges(
    out: HeteroSamplerOutput, masks: Mapping[Any, Tensor]
) -> None:
    """Keeps the edges of each edge type's mask."""
    for edge_type, mask in masks.items():
        if out.num_sampled_edges is not None:
            out.num_sampled_edges[edge_type] = _count_kept(
                out.num_sampled_edges[edge_type], mask
            )
        kept = mask.nonzero().view(-1)
        for values in (out.row, out.col, out.edge):
            if values is not None and values.get(edge_type) is not None:
                values[edge_type] = values[edge_type].index_select(0, kept)
        _keep_attributes(out, edge_type, kept)


def _keep_attributes(out: Any, edge_type: Any, kept: Tensor) -> None:
    if isinstance(out, (AttributedOutput, HeteroAttributedOutput)):
        out.attributes.keep_edges(edge_type, kept)


def _count_kept(counts: Any, mask: Tensor) -> Any:
    if counts is None:
        return None
    return [int(part.sum()) for part in torch.split(mask, counts)]
