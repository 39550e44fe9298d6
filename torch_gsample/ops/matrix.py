"""Parts of sparse matrices, and random selection in them."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import cum_weight_size


def slice_cols(
    indptr: Tensor, indices: Tensor, cols: Tensor, *, num_threads: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``A[:, cols]`` of a matrix in compressed columns.

    On a GPU, where ``cols`` then is, the matrix is there, too, or in pinned
    memory (:func:`torch_gsample.placement.pin`). So it is for all operators
    that take parts of a graph, by what says which parts.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        cols (torch.Tensor): int32 or int64 ``[n]``; duplicates are copied.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``indptr`` ``[n + 1]``
        and ``indices`` of the slice, and int64 ``edge``, the position of each
        of its edges in ``indices``.

    Raises:
        IndexError: If a column is not in the matrix.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> slice_cols(indptr, torch.tensor([4, 5, 6]), torch.tensor([1, 1]))
        (tensor([0, 1, 2]), tensor([6, 6]), tensor([2, 2]))
    """
    op = 'slice_cols'
    device = _check.sampling_device(op, indptr, cols, 'cols')
    indptr, indices = _check.graph(op, indptr, indices, device)
    cols = _check.node_ids(op, 'cols', cols, indptr.numel() - 1, device)
    return _check.call(
        torch.ops.gsample.slice_cols.default,
        indptr,
        indices,
        cols,
        num_threads=num_threads,
    )


def slice_rows(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    rows: Tensor,
    cols: Tensor | None = None,
    *,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``A[rows, cols]`` of a matrix in compressed columns.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        num_rows (int): Number of rows of the matrix.
        rows (torch.Tensor): int32 or int64 ``[n]``; duplicates are copied.
        cols (torch.Tensor, optional): int32 or int64 ``[num_cols]``;
            duplicates are copied. All columns if not given.
        num_threads (int, optional): See :func:`slice_cols`.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``indptr``
        ``[num_cols + 1]`` and ``indices`` (positions in ``rows``) of the
        slice, and int64 ``edge``, the position of each edge in ``indices``.

    Raises:
        IndexError: If a row or a column is not in the matrix.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> indices = torch.tensor([4, 5, 5])
        >>> slice_rows(indptr, indices, 6, torch.tensor([5]))
        (tensor([0, 1, 2]), tensor([0, 0]), tensor([1, 2]))
    """
    op = 'slice_rows'
    device = _check.sampling_device(op, indptr, rows, 'rows')
    indptr, indices = _check.graph(op, indptr, indices, device)
    rows = _check.node_ids(op, 'rows', rows, num_rows, device)
    if cols is not None:
        cols = _check.node_ids(op, 'cols', cols, indptr.numel() - 1, device)
    return _check.call(
        torch.ops.gsample.slice_rows.default,
        indptr,
        indices,
        num_rows,
        rows,
        cols,
        num_threads=num_threads,
    )


def sample_cols(
    indptr: Tensor,
    k: int,
    *,
    key: Tensor,
    call_id: int = 0,
    cols: Tensor | None = None,
    id: Tensor | None = None,
    cum_weight: Tensor | None = None,
    replace: bool = False,
    num_threads: int = 0,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Samples edges of each column by themselves.

    A hop of :func:`neighbor_sample` draws the same edges.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[all_cols + 1]``.
        k (int): Edges a column; -1 takes all. A column with no more than
            ``k`` (of positive weight) gives all of them, in order.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Number of the draw in a program.
        cols (torch.Tensor, optional): int32 or int64 ``[num_cols]``, the
            columns to sample, as of ``A[:, cols]``; all if not given.
        id (torch.Tensor, optional): ``[num_cols]``, the node of each column:
            columns of one node draw alike. Its number if not given.
        cum_weight (torch.Tensor, optional): What :func:`cumulate_weights`
            returned; uniform sampling if not given.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        num_threads (int, optional): See :func:`slice_cols`.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, where the columns of
            each of several batches begin; ``key`` then has a row for each.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: ``indptr`` ``[num_cols + 1]`` of the
        sample, and int64 ``edge``, the position of each sampled edge.

    Raises:
        ValueError: If ``k`` is below -1, or a length does not fit.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> sample_cols(torch.tensor([0, 2, 3]), 2, key=make_key(0))
        (tensor([0, 2, 3]), tensor([0, 1, 2]))
    """
    op = 'sample_cols'
    device = _check.sampling_device(op, indptr, cols, 'cols')
    indptr = _check.pointers(op, indptr, device, or_pinned=True)
    num_cols = indptr.numel() - 1
    if cols is not None:
        cols = _check.node_ids(op, 'cols', cols, num_cols, device)
        num_cols = cols.numel()
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"{op}: 'k' must be an integer (got {k!r})")
    if k < -1:
        raise ValueError(f"{op}: 'k' must be -1 (all) or more (got {k})")
    if id is not None:
        id = _check.int64_vector(op, 'id', id, num_cols, device)
    if cum_weight is not None:
        cum_weight = _check.int64_vector(
            op, 'cum_weight', cum_weight, device=device, or_pinned=True
        )
    if ptr is not None:
        ptr = _check.segment_ptr(op, 'ptr', ptr, num_cols, device)
    return _check.call(
        torch.ops.gsample.sample_cols.default,
        indptr,
        k,
        _check.random_keys(op, key, 1 if ptr is None else ptr.numel() - 1),
        call_id,
        cols=cols,
        id=id,
        cum_weight=cum_weight,
        replace=replace,
        num_threads=num_threads,
        ptr=ptr,
    )


def sample_nodes(
    num_nodes: int,
    k: int,
    *,
    key: Tensor,
    call_id: int = 0,
    cum_weight: Tensor | None = None,
    replace: bool = False,
    device: torch.device | None = None,
) -> Tensor:
    """Samples nodes together, with or without replacement.

    Args:
        num_nodes (int): Number of nodes to choose from.
        k (int): How many to sample; without replacement, all are taken, in
            order, where there are not more (drawn one by one where a weight
            is 0).
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int, optional): Number of the draw in a program.
        cum_weight (torch.Tensor, optional): What :func:`cumulate_weights`
            returned for one column of all nodes; uniform if not given.
        replace (bool, optional): Whether a node may be drawn repeatedly.
        device (torch.device, optional): Where the result is to be; where
            ``cum_weight`` is if not given. Uniform samples are drawn there.

    Returns:
        torch.Tensor: int64, ``[k]`` or less.

    Raises:
        ValueError: If ``k`` is negative, a length does not fit, or there are
            no kernels for the device.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> sample_nodes(3, 5, key=make_key(0))
        tensor([0, 1, 2])
    """
    op = 'sample_nodes'
    if k < 0:
        raise ValueError(f"{op}: 'k' must not be negative (got {k})")
    if cum_weight is not None:
        place = _check.graph_device(op, cum_weight, 'cum_weight')
        size = cum_weight_size(num_nodes, 1)
        cum_weight = _check.int64_vector(
            op, 'cum_weight', cum_weight, size, place
        )
    there = {}
    if cum_weight is None and device is not None and device.type == 'cuda':
        there['device_of'] = torch.empty(0, dtype=torch.int64, device=device)
        _check.graph_device(op, there['device_of'], 'device')
    node = _check.call(
        torch.ops.gsample.sample_nodes,
        num_nodes,
        k,
        _check.random_key(op, key),
        call_id,
        cum_weight=cum_weight,
        replace=replace,
        **there,
    )
    return node if device in (None, node.device) else node.to(device)


def unique_nodes(
    id: Tensor, num_nodes: int = 2**62, sorted: bool = False
) -> tuple[Tensor, Tensor]:
    """Numbers distinct nodes by first occurrence, or in ascending order.

    Args:
        id (torch.Tensor): int32 or int64 ``[n]``.
        num_nodes (int, optional): What ids are below; to know a small one
            saves time.
        sorted (bool, optional): Whether numbers ascend with ids.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``node``, the distinct ids in
        the order of their numbers, and ``local`` ``[n]``, of the dtype of
        ``id``, where each id is in ``node``.

    Raises:
        IndexError: If an id is outside ``[0, num_nodes)``.

    Example:
        >>> unique_nodes(torch.tensor([5, 3, 5]), 6)
        (tensor([5, 3]), tensor([0, 1, 0]))
        >>> unique_nodes(torch.tensor([5, 3, 5]), 6, sorted=True)
        (tensor([3, 5]), tensor([1, 0, 1]))
    """
    op = 'unique_nodes'
    device = _check.graph_device(op, id, 'id')
    id = _check.integer_vector(op, 'id', id, device)
    id = _check.in_range(op, 'id', id, num_nodes)
    return _check.call(
        torch.ops.gsample.unique_nodes.default, id, num_nodes, sorted
    )


def random_uniform(id: Tensor, *, key: Tensor, call_id: int = 0) -> Tensor:
    """Draws a number for each id: the same one for equal ids.

    Args:
        id (torch.Tensor): int32 or int64 ``[n]``.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int, optional): Number of the draw in a program.

    Returns:
        torch.Tensor: float64 ``[n]``, uniform in ``[0, 1)``.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> a, b, c = random_uniform(torch.tensor([4, 7, 4]), key=make_key(0))
        >>> bool(a == c), bool(a == b)
        (True, False)
    """
    op = 'random_uniform'
    device = _check.graph_device(op, id, 'id')
    return _check.call(
        torch.ops.gsample.random_uniform.default,
        _check.int64_vector(op, 'id', id, device=device),
        _check.random_key(op, key),
        call_id,
    )


_key_state = torch.zeros(1, dtype=torch.int64)


def next_key() -> Tensor:
    """Draws the key of a program from torch's default generator.

    Returns:
        torch.Tensor: int64 ``[1, 3]``.

    Example:
        >>> _ = torch.manual_seed(12)
        >>> next_key().shape
        torch.Size([1, 3])
    """
    return torch.ops.gsample.next_key(_key_state)


@torch.library.register_fake('gsample::slice_cols')
def _(indptr, indices, cols, num_threads=0):
    size = dynamic_size()
    return (
        cols.new_empty(cols.shape[0] + 1, dtype=indptr.dtype),
        cols.new_empty(size, dtype=indices.dtype),
        cols.new_empty(size),
    )


@torch.library.register_fake('gsample::slice_rows')
def _(indptr, indices, num_rows, rows, cols=None, num_threads=0):
    size = dynamic_size()
    num_cols = indptr.shape[0] - 1 if cols is None else cols.shape[0]
    return (
        rows.new_empty(num_cols + 1, dtype=indptr.dtype),
        rows.new_empty(size, dtype=indices.dtype),
        rows.new_empty(size),
    )


@torch.library.register_fake('gsample::sample_cols')
def _(indptr, k, key, call_id=0, cols=None, **_):
    num_cols = indptr.shape[0] - 1 if cols is None else cols.shape[0]
    like = indptr if cols is None else cols
    edge = like.new_empty(dynamic_size(), dtype=torch.int64)
    return like.new_empty(num_cols + 1, dtype=indptr.dtype), edge


@torch.library.register_fake('gsample::sample_nodes')
def _(num_nodes, k, key, call_id=0, *, cum_weight=None, device_of=None, **_):
    given = [x for x in (device_of, cum_weight) if x is not None]
    like = given[0] if given else key
    return like.new_empty(dynamic_size())


@torch.library.register_fake('gsample::unique_nodes')
def _(id, num_nodes, sorted=False):
    node = id.new_empty(dynamic_size(), dtype=torch.int64)
    return node, torch.empty_like(id)


@torch.library.register_fake('gsample::random_uniform')
def _(id, key, call_id=0):
    return id.new_empty(id.shape[0], dtype=torch.float64)


@torch.library.register_fake('gsample::next_key')
def _(state):
    return state.new_empty(1, 3)
