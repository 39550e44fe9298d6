"""Several hops of column sampling, with a rule for the next frontier."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import cum_weight_size

#: Rules of frontiers, by the numbers that operators take.
FRONTIERS = ('row', 'nodes', 'new', 'unseen')


class Hops(NamedTuple):
    """Sampled layers: an item of a list is one of a hop."""

    indptr: list[Tensor]  # [num_columns + 1] where each column starts
    row: list[Tensor]  # [num_sampled_edges] node of each row
    edge: list[Tensor]  # [num_sampled_edges] position in indices
    node: list[Tensor]  # the columns of each further hop


def sample_hops(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: Sequence[Tensor],
    call_id: Sequence[int] | None = None,
    cum_weight: Tensor | None = None,
    frontier: str = 'nodes',
    sorted: bool = False,
    replace: bool = False,
    return_frontier: bool = False,
    num_threads: int = 0,
) -> Hops:
    """Samples edges of columns, hop by hop.

    A hop is what :func:`sample_cols` returns for its columns, which are
    ``seeds`` at first. The next columns are, each node once and in the order
    of its first occurrence,

    ============ =========================================================
    ``'row'``    the sampled rows;
    ``'nodes'``  the columns, then the rows that are none of them;
    ``'new'``    the same without the first ``num_columns`` nodes;
    ``'unseen'`` the same, but all nodes of hops before count as columns.
    ============ =========================================================

    So a node is sampled anew at each hop that meets it, but for ``'unseen'``.
    Unlike :func:`neighbor_sample`, rows are nodes: no local ids are made.
    With ``'nodes'``, hops are the blocks of DGL.

    On a GPU, where ``seeds`` then are, the sample is the same, in one launch;
    only counts come back to the CPU, once. The graph is there, too, or in
    pinned memory, see :func:`torch_gsample.placement.pin`.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_nodes + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        seeds (torch.Tensor): int32 or int64 ``[num_seeds]``.
        fanouts (List[int]): Edges a column of each hop; -1 takes all.
        key (List[torch.Tensor]): The key of each hop, int64 ``[1, 3]``.
        call_id (List[int], optional): The number of each hop's draw in a
            program; 0, 1 and so on if not given.
        cum_weight (torch.Tensor, optional): What :func:`cumulate_weights`
            returned; uniform sampling if not given.
        frontier (str, optional): The rule above.
        sorted (bool, optional): Whether the columns of further hops ascend.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        return_frontier (bool, optional): Whether ``node`` ends with the
            columns of one more hop.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor or number has the wrong type.
        ValueError: If a length or name does not fit.
        RuntimeError: If the graph is malformed where the sample met it.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 2, 3, 3])
        >>> indices = torch.tensor([1, 2, 2])
        >>> seeds = torch.tensor([0])
        >>> out = sample_hops(
        ...     indptr, indices, seeds, [2, 2], key=[make_key(0)] * 2
        ... )
        >>> out.row
        [tensor([1, 2]), tensor([1, 2, 2])]
        >>> out.node
        [tensor([0, 1, 2])]
    """
    op = 'sample_hops'
    device = _check.sampling_device(op, indptr, seeds)
    indptr, indices = _check.graph(op, indptr, indices, device)
    num_nodes = indptr.numel() - 1
    fanouts = _check.fanouts(op, 'fanouts', fanouts)
    key, call_id = hop_keys(op, key, call_id, len(fanouts))
    if frontier not in FRONTIERS:
        raise ValueError(
            f"{op}: 'frontier' must be one of {', '.join(FRONTIERS)} "
            f'(got {frontier!r})'
        )
    if cum_weight is not None:
        cum_weight = _check.int64_vector(
            op,
            'cum_weight',
            cum_weight,
            cum_weight_size(indices.numel(), num_nodes),
            device,
            or_pinned=True,
        )
    out = _check.call(
        torch.ops.gsample.sample_hops.default,
        indptr,
        indices,
        _check.node_ids(op, 'seeds', seeds, num_nodes, device),
        fanouts,
        key,
        call_id,
        cum_weight=cum_weight,
        frontier=FRONTIERS.index(frontier),
        sorted=sorted,
        replace=replace,
        return_frontier=return_frontier,
        num_threads=num_threads,
    )
    return Hops(*out)


def hop_keys(
    op: str,
    key: Sequence[Tensor],
    call_id: Sequence[int] | None,
    hops: int,
) -> tuple[list[Tensor], list[int]]:
    """Returns the key of each hop, and the number of its draw.

    Raises:
        TypeError: If a key is no int64 tensor.
        ValueError: If there is not one for each hop.
    """
    call_id = list(range(hops)) if call_id is None else list(call_id)
    for name, items in (('key', key), ('call_id', call_id)):
        if len(items) != hops:
            raise ValueError(
                f"{op}: '{name}' must have {hops} items, one for "
                f'each hop (got {len(items)})'
            )
    return [_check.random_key(op, item) for item in key], call_id


@torch.library.register_fake('gsample::sample_hops')
def _(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    call_id,
    *,
    return_frontier=False,
    **_,
):
    indptrs, rows, edges, nodes = [], [], [], []
    columns = seeds
    for hop in range(len(fanouts)):
        size = dynamic_size()
        num_columns = columns.shape[0]
        indptrs.append(seeds.new_empty(num_columns + 1, dtype=indptr.dtype))
        rows.append(seeds.new_empty(size, dtype=indices.dtype))
        edges.append(seeds.new_empty(size))
        if return_frontier or hop + 1 < len(fanouts):
            columns = seeds.new_empty(dynamic_size())
            nodes.append(columns)
    return indptrs, rows, edges, nodes
