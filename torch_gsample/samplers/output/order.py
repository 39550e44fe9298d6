"""Random order of the edges in each column of a sample."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph_types import GraphTypes
from torch_gsample.rng import EPOCH_SCOPE
from torch_gsample.samplers.output import pyg as output

_MAX_SLOTS = 2**20  # of a column; later slots share draws with other columns


def shuffle_columns(out: Any, graph: GraphTypes, key: Tensor) -> None:
    """Shuffles the edges of each column in place; node ids do not change.

    Args:
        out (SamplerOutput or HeteroSamplerOutput): A sample in column order.
        graph (GraphTypes): Its types.
        key (torch.Tensor): int64 ``[1, 3]``, the key of its batch.
    """
    for relation, edge_type in enumerate(graph.edge_types):
        _, columns = graph.row_and_column_type(edge_type)
        node, row, col, edge = out.node, out.row, out.col, out.edge
        if graph.is_hetero:
            node, row = node[columns], row[edge_type]
            col, edge = col[edge_type], edge[edge_type]
        column = row if graph.is_transposed else col
        order = _random_order(column, node, relation, key)
        ends = row[order], col[order]
        output.set_edges(out, edge_type, *ends, edge[order])


def _random_order(
    column: Tensor, node: Tensor, relation: int, key: Tensor
) -> Tensor:
    """Sorts edges by column, and within it by 32 random bits of their slot."""
    place = torch.arange(len(column), device=column.device)
    start = place.clone()
    start[1:][column[1:] == column[:-1]] = 0
    slot = place - start.cummax(0).values
    by = node[column] if int(key[0, 2]) == EPOCH_SCOPE else column
    ids = by * _MAX_SLOTS + slot
    draw = ops.random_uniform(ids, key=key, call_id=relation)
    # The sort is stable, so ties have the same order on every device.
    code = column * 2**32 + (draw * 2**32).long()
    return torch.argsort(code, stable=True)
