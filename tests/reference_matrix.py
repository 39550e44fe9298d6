"""The operators of matrices again: plain loops over Python integers."""

import itertools

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


def slice_rows(indptr, indices, num_rows, rows, cols=None, *, num_threads=0):
    begin, found = [0], []
    for v in range(len(indptr) - 1) if cols is None else cols:
        for e in range(indptr[v], indptr[v + 1]):
            found += [(i, e) for i, r in enumerate(rows) if r == indices[e]]
        begin.append(len(found))
    return begin, [i for i, _ in found], [e for _, e in found]


def batch_of(place, ptr):
    """The batch that a place is in."""
    [batch] = [b for b in range(len(ptr) - 1) if ptr[b] <= place < ptr[b + 1]]
    return batch


def sample_cols(
    indptr,
    k,
    key,
    call_id=0,
    *,
    cols=None,
    id=None,
    cum_weight=None,
    replace=False,
    num_threads=0,
    ptr=None,
):
    matrix = Relation(indptr, [], 0, 0, [k], cum_weight, [])
    begin, edge = [0], []
    for i, v in enumerate(range(len(indptr) - 1) if cols is None else cols):
        batch = 0 if ptr is None else batch_of(i, ptr)
        stream = stream_key(key[batch], call_id, 0)
        draw = Stream(stream, 0, v if id is None else id[i])
        options = Options(replace=replace)
        edge += sample_column(matrix, v, k, None, draw, options)
        begin.append(len(edge))
    return begin, edge


def sample_hops(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    call_id,
    *,
    cum_weight=None,
    frontier=1,
    sorted=False,
    replace=False,
    return_frontier=False,
    num_threads=0,
):
    out = [], [], [], []
    columns = seen = list(seeds)
    for hop, k in enumerate(fanouts):
        begin, edge = sample_cols(
            indptr,
            k,
            key[hop],
            call_id[hop],
            cols=columns,
            cum_weight=cum_weight,
            replace=replace,
        )
        row = [indices[e] for e in edge]
        rule = ('row', 'nodes', 'new', 'unseen')[frontier]
        before = {'row': [], 'unseen': seen}.get(rule, columns)
        seen = list(dict.fromkeys(before + row))
        skipped = len(before) if rule in ('new', 'unseen') else 0
        columns = seen[skipped:]
        if sorted:
            columns.sort()
        for items, item in zip(out, (begin, row, edge, columns), strict=True):
            items.append(item)
    if not return_frontier and fanouts:
        out[3].pop()
    return out


def sample_nodes(
    num_nodes,
    k,
    key,
    call_id=0,
    *,
    cum_weight=None,
    replace=False,
    device_of=None,  # where to draw, which changes nothing
):
    draw = Stream(stream_key(key[0], call_id, SAMPLE_NODES), 0, 0)
    if not replace or num_nodes == 0:
        k = min(k, num_nodes)
    has_zero = cum_weight and cum_weight[num_nodes] & 1
    if k == num_nodes and not replace and not has_zero:
        return list(range(num_nodes))
    if cum_weight:
        sums = [0, *cum_weight[:num_nodes]]
        weights = [b - a for a, b in itertools.pairwise(sums)]
        if replace:
            return select_weighted_with_replacement(draw, weights, k)
        return select_weighted_without_replacement(draw, weights, k)
    if replace:
        return select_with_replacement(draw, num_nodes, k)
    return select_without_replacement(draw, num_nodes, k)


def unique_nodes(id, num_nodes, sorted=False):
    node = list(dict.fromkeys(id))
    if sorted:
        node.sort()
    return node, [node.index(i) for i in id]


def random_uniform(id, key, call_id=0):
    stream = stream_key(key[0], call_id, RANDOM_UNIFORM)
    return [unit_interval(Stream(stream, 0, i)(0)) for i in id]


def next_key(state):
    """What torch's default generator gives next."""
    seed = torch.zeros(1, dtype=torch.int64).random_()
    return [[int(seed), 0, 0]]


def sum_columns(indptr, value, perm=None):
    out = []
    for begin, end in itertools.pairwise(indptr):
        edges = range(begin, end)
        out.append(sum(value[perm[e] if perm else e] for e in edges))
    return out


def labor_scale(indptr, weight, k):
    """By bisection of the equation."""
    out = []
    for begin, end in itertools.pairwise(indptr):
        column, n = weight[begin:end], end - begin
        low, high = 0.0, 1 / min(column, default=1)
        for _ in range(200):
            c = (low + high) / 2
            if sum(1 / min(1, c * w) for w in column) > n * n / k:
                low = c
            else:
                high = c
        out.append(high if n > k else 1.0)
    return out
