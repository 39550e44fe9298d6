"""Joins the subgraphs of all seeds into a disjoint sample.

Seeds and :class:`Subgraphs` come in; nodes with the seeds first, local edges
and the subgraph of each node go out.
"""

import torch
from torch import Tensor

from torch_gsample.algorithms.shadow import Subgraphs
from torch_gsample.graph import Graph
from torch_gsample.ops._check import node_ids
from torch_gsample.samplers.program.layers import Edges, Nodes
from torch_gsample.sparse_sample.extract import by_column


def join_subgraphs(
    name: str, graph: Graph, seeds: Tensor, subgraphs: Subgraphs
) -> tuple[Nodes, Edges, Tensor]:
    """Orders nodes as PyG does: the seeds in their order, then all others.

    Args:
        name (str): The sampler, for errors.
        graph (Graph): The graph, homogeneous.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        subgraphs (Subgraphs): One for each seed.

    Returns:
        Tuple[Nodes, Edges, torch.Tensor]: The last one is int64
        ``[num_nodes]``, the position of the seed whose subgraph has the node.

    Raises:
        IndexError: If a node is not in the graph.
        ValueError: If they are not disjoint subgraphs of the seeds.
    """
    matrix, batch, root = subgraphs
    matrix = by_column(matrix)
    ids = matrix.col_ids
    ids = torch.arange(matrix.num_cols) if ids is None else ids
    row, col = matrix.coo()
    _check_blocks(name, seeds, Subgraphs(matrix, batch, root), ids)
    node_ids(name, 'nodes of a subgraph', ids, graph.counts[None])
    if bool((batch[row] != batch[col]).any()):
        raise _wrong(name, 'no edge between two of them')
    is_root = torch.zeros(ids.numel(), dtype=torch.bool)
    is_root[root] = True
    order = torch.cat([root, (~is_root).nonzero().view(-1)])
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel())
    nodes = Nodes(ids[order])
    nodes.ids = ids[order]
    nodes.counts = [seeds.numel(), order.numel() - seeds.numel()]
    edges = Edges(
        place[row], place[col], matrix.edge_id, matrix.value, [row.numel()]
    )
    return nodes, edges, batch[order]


def _check_blocks(
    name: str, seeds: Tensor, subgraphs: Subgraphs, ids: Tensor
) -> None:
    matrix, batch, root = subgraphs
    rows = matrix.row_ids
    rows = torch.arange(matrix.num_rows) if rows is None else rows
    if not torch.equal(rows, ids):
        raise _wrong(name, 'the same nodes as rows and columns')
    size, num_seeds = ids.numel(), seeds.numel()
    for what, value, length, most in (
        ('batch', batch, size, num_seeds),
        ('root', root, num_seeds, size),
    ):
        if value.dtype != torch.int64 or value.shape != (length,):
            raise _wrong(
                name,
                f"'{what}' as int64 [{length}] (got {value.dtype} of shape "
                f'{list(value.shape)})',
            )
        if length > 0 and not 0 <= int(value.min()) <= int(value.max()) < most:
            raise _wrong(name, f"'{what}' in [0, {most})")
    if not torch.equal(ids[root], seeds):
        raise _wrong(name, "the seeds in their order as 'root'")
    if not torch.equal(batch[root], torch.arange(num_seeds)):
        raise _wrong(name, 'each seed in its own one')


def _wrong(name: str, rule: str) -> ValueError:
    return ValueError(
        f"{name}: the subgraphs that 'program' returns must have {rule}"
    )
