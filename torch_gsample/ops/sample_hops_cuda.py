"""``gsample::sample_hops`` on CUDA: a loop over the operators of a hop."""

from collections.abc import Sequence

import torch
from torch import Tensor

_gsample = torch.ops.gsample


def sample_hops_cuda(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Sequence[Tensor],
    call_id: Sequence[int],
    *,
    cum_weight: Tensor | None = None,
    frontier: str = 'nodes',
    sorted: bool = False,
    replace: bool = False,
    return_frontier: bool = False,
    num_threads: int = 0,
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """See :func:`.sample_hops`."""
    indptrs, rows, edges, nodes = [], [], [], []
    num_nodes, num_hops = indptr.numel() - 1, len(fanouts)
    columns, seen = seeds, None
    for hop in range(num_hops):
        out, edge = _gsample.sample_cols(
            indptr,
            fanouts[hop],
            key[hop],
            call_id[hop],
            cols=columns,
            cum_weight=cum_weight,
            replace=replace,
        )
        # Edges are checked: indptr may count more than there are.
        row = _gsample.gather_rows(indices, edge)
        indptrs.append(out)
        rows.append(row)
        edges.append(edge)
        if not return_frontier and hop + 1 == num_hops:
            break
        before = _nodes_before(frontier, columns, seen)
        met = torch.cat([before, row.to(torch.int64)])
        seen = _gsample.unique_nodes(met, num_nodes)[0]
        drops = frontier in ('new', 'unseen')
        columns = seen[before.numel() :] if drops else seen
        if sorted:
            columns = columns.sort().values
        nodes.append(columns.clone() if columns is seen else columns)
    return indptrs, rows, edges, nodes


def _nodes_before(
    frontier: str, columns: Tensor, seen: Tensor | None
) -> Tensor:
    """The nodes that come before the rows of a hop in its set."""
    if frontier == 'row':
        return columns[:0]
    if frontier == 'new' or seen is None:
        return columns
    return seen


torch.library.register_kernel('gsample::sample_hops', 'cuda', sample_hops_cuda)
