"""Disjoint neighbourhoods of seeds in a graph on disk, hop by hop."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torch_gsample.graph_types import GraphTypes
from torch_gsample.storage.columns import sample_columns
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.hops import Frontier, sample_by_hops
from torch_gsample.storage.matrices.edges import StoredEdges

_NO_TIMES: dict[str, Any] = {
    'time_window': None,
    'temporal_strategy': 'uniform',
    'num_threads': 0,
}


def sample_trees(
    edges: StoredEdges,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Tensor,
    call_id: int,
    replace: bool,
) -> tuple[Tensor, Tensor]:
    """Samples a neighbourhood of each seed, as ``sample_neighbors`` does.

    Args:
        edges (StoredEdges): The columns of a graph.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        fanouts (List[int]): Edges of a node at each hop.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int): Call id of the first hop.
        replace (bool): Whether to draw with replacement.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``[n]`` nodes, and the index
        of the seed of each.
    """
    options = {'key': key, 'disjoint': True, 'replace': replace, **_NO_TIMES}
    pointers = edges.pointers

    def draw(relation: int, hop: int, frontier: Frontier) -> Drawn:
        start = pointers[frontier.node]
        indptr, position = sample_columns(
            start,
            pointers[frontier.node + 1] - start,
            frontier,
            fanouts[hop],
            call_id + hop,
            relation,
            options,
        )
        neighbor = edges.read('neighbor', position)
        return Drawn.of_columns(indptr, neighbor, position)

    graph = GraphTypes((None,), (None,), (edges.meta.num_cols,))
    out = sample_by_hops(
        graph, {None: seeds}, None, [[*fanouts]], options, draw
    )
    return out.node, out.batch
