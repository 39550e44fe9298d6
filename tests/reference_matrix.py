"""References of the matrix operators: plain loops over Python integers."""

from itertools import accumulate, chain, pairwise

import torch

from tests.reference_columns import Options, Relation, sample_column
from tests.reference_core import (
    Stream,
    select_weighted_with_replacement,
    select_weighted_without_replacement,
    select_with_replacement,
    select_without_replacement,
    stream_key,
    unit_interval,
)

SAMPLE_NODES, RANDOM_UNIFORM = 0xFFF0, 0xFFF1


def slice_cols(indptr, indices, cols, *, num_threads=0):
    begin, edge = [0], []
    for v in cols:
        edge += range(indptr[v], indptr[v + 1])
        begin.append(len(edge))
    return begin, [indices[e] for e in edge], edge


def mask_columns(indptr, mask):
    edge = [e for e in range(indptr[-1]) if mask[e]]
    return [sum(e < end for e in edge) for end in indptr], edge


def slice_rows(
    indptr,
    indices,
    num_rows,
    rows,
    cols=None,
    row_ptr=None,
    col_ptr=None,
    whole=True,
    num_threads=0,
):
    columns = list(range(len(indptr) - 1) if cols is None else cols)
    if row_ptr is None:
        row_ptr, col_ptr = [0, len(rows)], [0, len(columns)]
    begin, found = [0], []
    spans = zip(pairwise(row_ptr), pairwise(col_ptr), strict=True)
    for (r, r_end), (c, c_end) in spans:
        for v in columns if cols is None and whole else columns[c:c_end]:
            for e in range(indptr[v], indptr[v + 1]):
                found += [
                    (i, e) for i in range(r, r_end) if rows[i] == indices[e]
                ]
            begin.append(len(found))
    return begin, [i for i, _ in found], [e for _, e in found]


def has_edges(
    indptr, indices, ptr, rows, cols=None, num_rows=None, num_threads=0
):
    columns = range(len(indptr) - 1) if cols is None else cols
    found = []
    for v, (begin, end) in zip(columns, pairwise(ptr), strict=True):
        column = indices[indptr[v] : indptr[v + 1]]
        found += [row in column for row in rows[begin:end]]
    return found


def match_edges(
    indptr, indices, num_rows, other_indptr, other_indices, other_num_rows
):
    assert len(indptr) == len(other_indptr)
    assert num_rows == other_num_rows
    found, free = [], set(range(len(other_indices)))
    for v, (begin, end) in enumerate(pairwise(indptr)):
        for e in range(begin, end):
            column = range(other_indptr[v], other_indptr[v + 1])
            found.append(
                next(
                    i
                    for i in column
                    if i in free and other_indices[i] == indices[e]
                )
            )
            free.remove(found[-1])
    assert not free
    return found


def joined(parts):
    """The items of all batches, and the start of each batch."""
    ptr = [0, *accumulate(map(len, parts))]
    return list(chain.from_iterable(parts)), ptr


def batch_of(place, ptr):
    """The batch of a position."""
    [batch] = [b for b in range(len(ptr) - 1) if ptr[b] <= place < ptr[b + 1]]
    return batch


def sample_columns(
    indptr,
    k,
    key,
    call_id=0,
    *,
    cols=None,
    id=None,
    cum_weight=None,
    replace=False,
    ptr=None,
    columns=None,
    options=None,
):
    start, root, edge_time, column_time = [*(columns or []), *[None] * 4][:4]
    _, relation, last, time_window = [*(options or [0, 0, 0]), None][:4]
    matrix = Relation(indptr, [], 0, 0, [k], cum_weight, edge_time)
    options = Options(time_window, int(last), replace)
    begin, edge = [0], []
    for i, v in enumerate(range(len(indptr) - 1) if cols is None else cols):
        batch = 0 if ptr is None else batch_of(i, ptr)
        stream = stream_key(key[batch], call_id, relation)
        node, tree = v if id is None else id[i], root[i] if root else 0
        time = column_time[i] if column_time else None
        draw = Stream(stream, tree, node)
        for e in sample_column(matrix, v, k, time, draw, options):
            edge.append(start[i] + e - indptr[v] if start else e)
        begin.append(len(edge))
    return begin, edge


def last_neighbors(
    indptr,
    indices,
    edge_time,
    cols,
    until,
    k,
    edge_id=None,
    time_window=None,
    closed_start=True,
    closed_end=False,
    ascending=False,
    return_edge=True,
    num_threads=0,
):
    neighbor, edge, time = [], [], []
    for v, end in zip(cols, until, strict=True):
        seen = []
        for e in range(*((0, 0) if v == -1 else indptr[v : v + 2])):
            t = edge_time[e]
            early = t <= end if closed_end else t < end
            start = None if time_window is None else end - time_window
            late = start is None or t > start or (closed_start and t == start)
            if early and late:
                seen.append(e)
        seen = seen[::-1][:k]
        ids = seen if edge_id is None else [edge_id[e] for e in seen]
        rest = k - len(seen)
        rows = (
            [indices[e] for e in seen] + [-1] * rest,
            ids + [-1] * rest,
            [edge_time[e] for e in seen] + [0] * rest,
        )
        if ascending:
            rows = tuple(row[::-1] for row in rows)
        neighbor.append(rows[0])
        edge.append(rows[1] if return_edge else [])
        time.append(rows[2])
    return neighbor, edge, time


def sample_nodes(
    num_nodes,
    k,
    key,
    call_id=0,
    *,
    cum_weight=None,
    replace=False,
    ptr=None,
    device_of=None,  # where to draw, which changes nothing
):
    parts = []
    for batch, row in enumerate(key):
        # Without pointers, each batch chooses from all nodes.
        column = 0 if ptr is None else batch
        first, end = (0, num_nodes) if ptr is None else ptr[batch : batch + 2]
        draw = Stream(stream_key(row, call_id, SAMPLE_NODES), 0, 0)
        weights, has_zero = None, False
        if cum_weight:
            sums = [0, *cum_weight[first:end]]
            weights = [b - a for a, b in pairwise(sums)]
            has_zero = cum_weight[num_nodes + column // 64] >> column % 64 & 1
        part = choose(draw, end - first, k, weights, has_zero, replace)
        parts.append([first + node for node in part])
    return parts[0] if ptr is None and len(key) == 1 else joined(parts)


def choose(draw, n, k, weights, has_zero, replace):
    """The selected nodes of one batch with n nodes."""
    if not replace or n == 0:
        k = min(k, n)
    if k == n and not replace and not has_zero:
        return list(range(n))
    if weights:
        if replace:
            return select_weighted_with_replacement(draw, weights, k)
        return select_weighted_without_replacement(draw, weights, k)
    if replace:
        return select_with_replacement(draw, n, k)
    return select_without_replacement(draw, n, k)


def unique_nodes(id, num_nodes, sorted=False, ptr=None):
    nodes, local = [], []
    for first, end in pairwise([0, len(id)] if ptr is None else ptr):
        before = sum(map(len, nodes))
        node = list(dict.fromkeys(id[first:end]))
        if sorted:
            node.sort()
        nodes.append(node)
        local += [before + node.index(i) for i in id[first:end]]
    node, out_ptr = joined(nodes)
    return (node, local) if ptr is None else (node, local, out_ptr)


def random_uniform(id, key, call_id=0):
    stream = stream_key(key[0], call_id, RANDOM_UNIFORM)
    return [unit_interval(Stream(stream, 0, i)(0)) for i in id]


def next_key(state):
    """The next key from torch's default generator."""
    seed = torch.zeros(1, dtype=torch.int64).random_()
    return [[int(seed), 0, 0]]


def sum_columns(indptr, value, perm=None):
    out = []
    for begin, end in pairwise(indptr):
        edges = range(begin, end)
        out.append(sum(value[perm[e] if perm else e] for e in edges))
    return out


def labor_scale(indptr, weight, k, value=None):
    """Solves the equation by bisection."""
    value = [1.0] * len(weight) if value is None else value
    out = []
    for begin, end in pairwise(indptr):
        column, n = weight[begin:end], end - begin
        a = [x / max(value[begin:end]) for x in value[begin:end]]
        squares = [x * x for x in a]
        target = sum(squares)
        if n > k:
            target += sum(a) ** 2 * (1 / k - 1 / n)
        low, high = 0.0, 1 / min(column, default=1)
        while low < (c := (low + high) / 2) < high:
            total = sum(
                x / min(1, c * w) for x, w in zip(squares, column, strict=True)
            )
            if total > target:
                low = c
            else:
                high = c
        out.append(high if n > k else 1.0)
    return out
