"""Disjoint neighbourhoods of seeds in a graph on disk, hop by hop."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph_types import GraphTypes
from torch_gsample.rng import EPOCH_SCOPE
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.hops import Frontier, sample_by_hops
from torch_gsample.storage.matrices.edges import StoredEdges


def sample_trees(
    edges: StoredEdges,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Tensor,
    call_id: int,
    replace: bool,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Samples a neighbourhood of each seed, as ``sample_neighbors`` does.

    Args:
        edges (StoredEdges): The columns of a graph.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        fanouts (List[int]): Edges of a node at each hop.
        key (torch.Tensor): int64 ``[1, 3]``, or a row for each batch.
        call_id (int): Call id of the first hop.
        replace (bool): Whether to draw with replacement.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the seeds
            of each batch; a hop reads the edges of all batches together.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``[n]`` nodes, and the index
        of the seed of each. Nodes of a batch are contiguous.
    """
    if ptr is not None and bool((key[:, 2] == EPOCH_SCOPE).any()):
        return _one_by_one(edges, seeds, fanouts, key, call_id, replace, ptr)
    pointers = edges.pointers
    options = {'key': key, 'disjoint': True, 'num_threads': 0}

    def draw(relation: int, hop: int, frontier: Frontier) -> Drawn:
        node, root, of_batch = frontier.node, frontier.root, None
        if ptr is not None:  # trees ascend; draws know them by batch
            assert root is not None
            of_batch = torch.searchsorted(root, ptr)
            root = root - ptr[:-1].repeat_interleave(of_batch.diff())
        start = pointers[node]
        indptr = torch.zeros(len(node) + 1, dtype=torch.int64)
        torch.cumsum(pointers[node + 1] - start, 0, out=indptr[1:])
        indptr, position = ops.sample_columns(
            indptr,
            fanouts[hop],
            key=key,
            call_id=call_id + hop,
            id=node,
            root=root,
            start=start,
            replace=replace,
            ptr=of_batch,
        )
        neighbor = edges.read('neighbor', position)
        return Drawn.of_columns(indptr, neighbor, position)

    graph = GraphTypes((None,), (None,), (edges.meta.num_cols,))
    out = sample_by_hops(
        graph, {None: seeds}, None, [[*fanouts]], options, draw
    )
    assert out.batch is not None, 'trees are disjoint'
    node, tree = out.node[0], out.batch[0]
    if ptr is None:
        return node, tree
    batch = torch.searchsorted(ptr[1:], tree, right=True)
    order = batch.argsort(stable=True)
    return node[order], tree[order]


def _one_by_one(
    edges: StoredEdges,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Tensor,
    call_id: int,
    replace: bool,
    ptr: Tensor,
) -> tuple[Tensor, Tensor]:
    """Samples batch by batch: draws of an epoch do not know their tree."""
    nodes, trees = [], []
    parts = zip(seeds.split(ptr.diff().tolist()), key.split(1), strict=True)
    for (part, of_batch), begin in zip(parts, ptr[:-1], strict=True):
        node, tree = sample_trees(
            edges, part, fanouts, of_batch, call_id, replace
        )
        nodes.append(node)
        trees.append(tree + begin)
    return torch.cat(nodes), torch.cat(trees)
