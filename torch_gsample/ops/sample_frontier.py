"""One hop of one relation, for columns whose edges lie elsewhere."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import cum_weight_size


def sample_frontier(
    indptr: Tensor,
    start: Tensor,
    id: Tensor,
    k: int,
    *,
    key: Tensor,
    call_id: int = 0,
    relation: int = 0,
    root: Tensor | None = None,
    cum_weight: Tensor | None = None,
    edge_time: Tensor | None = None,
    column_time: Tensor | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    replace: bool = False,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor]:
    """Selects edges of columns, of which only lengths and places are known.

    It draws what a hop of :func:`hetero_neighbor_sample` draws at these
    nodes. So a graph can be sampled from disk: positions come out, whose
    neighbours are then read. Weights and times, where there are any, are
    those of the columns' edges, one column after the other.

    Args:
        indptr (torch.Tensor): int64 ``[num_columns + 1]``, running sums of
            the columns' lengths.
        start (torch.Tensor): int64 ``[num_columns]``, the position of the
            first edge of each column.
        id (torch.Tensor): int64 ``[num_columns]``, the node of each column.
        k (int): Edges to select in a column; -1 takes all.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int, optional): Number of the hop.
        relation (int, optional): Number of the edge type.
        root (torch.Tensor, optional): int64 ``[num_columns]``, the tree of
            each column in disjoint sampling.
        cum_weight (torch.Tensor, optional): What :func:`cumulate_weights`
            returned for ``indptr``.
        edge_time (torch.Tensor, optional): int64 ``[indptr[-1]]``, ascending
            in each column.
        column_time (torch.Tensor, optional): int64 ``[num_columns]``, up to
            when each column sees edges.
        time_window (int, optional): See :func:`neighbor_sample`.
        temporal_strategy (str, optional): See :func:`neighbor_sample`.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``indptr``
        ``[num_columns + 1]`` of the selection, and the position of each
        selected edge.

    Raises:
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument breaks a rule that is named.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> length, start = torch.tensor([0, 2, 3]), torch.tensor([70, 10])
        >>> id = torch.tensor([4, 9])
        >>> sample_frontier(length, start, id, -1, key=make_key(0))
        (tensor([0, 2, 3]), tensor([70, 71, 10]))
    """
    op = 'sample_frontier'
    device = _check.graph_device(op, indptr)
    indptr = _check.as_int64(_check.pointers(op, indptr, device))
    n = indptr.numel() - 1
    # On a GPU the kernel looks how many edges there are.
    num_edges = None if indptr.is_cuda else int(indptr[-1])

    def vector(
        name: str, value: Tensor | None, size: int | None
    ) -> Tensor | None:
        if value is None:
            return None
        return _check.int64_vector(op, name, value, size, device)

    if (edge_time is None) != (column_time is None):
        raise ValueError(
            f"{op}: 'edge_time' and 'column_time' must be given together"
        )
    return _check.call(
        torch.ops.gsample.sample_frontier.default,
        indptr,
        _check.int64_vector(op, 'start', start, n, device),
        _check.int64_vector(op, 'id', id, n, device),
        _check.count(op, 'k', k, -1),
        _check.random_key(op, key),
        call_id,
        relation,
        root=vector('root', root, n),
        cum_weight=vector(
            'cum_weight',
            cum_weight,
            None if num_edges is None else cum_weight_size(num_edges, n),
        ),
        edge_time=vector('edge_time', edge_time, num_edges),
        column_time=vector('column_time', column_time, n),
        time_window=_check.time_window(op, time_window),
        temporal_strategy=_check.strategy(op, temporal_strategy),
        replace=replace,
        num_threads=num_threads,
    )


@torch.library.register_fake('gsample::sample_frontier')
def _(indptr, start, id, k, key, call_id=0, relation=0, **_):
    return torch.empty_like(indptr), indptr.new_empty(dynamic_size())
