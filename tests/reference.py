"""A slow reference of every operator: plain loops over Python integers.

A reference has the operator's name and arguments (csrc/bind/library.cpp), with
lists instead of tensors, and returns the outputs as lists. References of
matrix operators are in reference_matrix.py. Do not make this faster: make it
easier to read.
"""

import math
import struct
from itertools import pairwise

from tests.reference_core import (
    Stream,
    bounded,
    find,
    fixed_point,
    fixed_point_shift,
    stream_key,
)
from tests.reference_kernels import (  # noqa: F401
    edge_map,
    product_by_type,
    project_edges,
    run_kernel,
    sum_outer_by_type,
    sum_outer_edges,
    vertex_map,
    vertex_relations,
    vertex_unit,
)
from tests.reference_layers import sample_layers  # noqa: F401
from tests.reference_matrix import (  # noqa: F401
    has_edges,
    joined,
    labor_scale,
    last_neighbors,
    mask_columns,
    match_edges,
    next_key,
    random_uniform,
    sample_columns,
    sample_nodes,
    slice_cols,
    slice_rows,
    sum_columns,
    unique_nodes,
)
from tests.reference_neighbor import sample_neighbors  # noqa: F401
from tests.reference_walk import (  # noqa: F401
    forest_fire,
    frontier_walk,
    metapath_walk,
    node2vec_walk,
    random_walk,
)
from torch_gsample.ops.sample_by_kernel import ROLES

NEGATIVE_SOURCE, NEGATIVE_TARGET = 0xFFFE, 0xFFFF
NEGATIVE_TRIES = 64

# Formats.


def coo_to_csc(row, col, num_cols, wide_indptr, wide_indices, num_rows=None):
    perm = sorted(range(len(col)), key=lambda edge: col[edge])
    indptr = [sum(c < v for c in col) for v in range(num_cols + 1)]
    return indptr, [row[edge] for edge in perm], perm


def sort_edges(edge_index, num_rows, num_cols, loops):
    row, col = edge_index
    if any(not 0 <= v < num_rows for v in row):
        return None
    if any(not 0 <= v < num_cols for v in col):
        return None
    edges = [(v, u, i) for i, (u, v) in enumerate(zip(row, col, strict=True))]
    if loops > 0:
        edges = [(v, u, i) for v, u, i in edges if u != v]
    if loops == 2:
        vertices = range(min(num_rows, num_cols))
        edges += [(v, v, len(row) + v) for v in vertices]
    edges.sort(key=lambda edge: edge[0])
    degree = [sum(v == c for v, _, _ in edges) for c in range(num_cols)]
    indptr = [sum(degree[:c]) for c in range(num_cols + 1)]
    ids = [i for _, _, i in edges]
    return indptr, [u for _, u, _ in edges], ids, degree, [max([*degree, 0])]


def transpose_columns(indptr, indices, edge_id, num_rows):
    cols = [
        v for v in range(len(indptr) - 1) for _ in range(*indptr[v : v + 2])
    ]
    out = sort_edges([cols, indices], len(indptr) - 1, num_rows, 0)
    assert out is not None
    row_indptr, found, ids, _, most = out
    if edge_id is not None:
        ids = [edge_id[i] for i in ids]
    return row_indptr, found, ids, most


def check_csc(indptr, indices, num_rows):
    if indptr[0] != 0:
        return [1, 0, indptr[0]]
    for v in range(1, len(indptr)):
        if indptr[v] < indptr[v - 1]:
            return [2, v, indptr[v]]
    if indptr[-1] != len(indices):
        return [3, len(indptr) - 1, indptr[-1]]
    for edge, row in enumerate(indices):
        if not 0 <= row < num_rows:
            return [4, edge, row]
    return [0, 0, 0]


def cumulate_weights(indptr, weight):
    out, zeros = [], [0] * -(-(len(indptr) - 1) // 64)
    for v, (begin, end) in enumerate(pairwise(indptr)):
        column = weight[begin:end]
        zeros[v // 64] |= (0 in column) << v % 64
        shift = fixed_point_shift(max(column, default=0), len(column))
        total = 0
        for w in column:
            total += fixed_point(w, shift)
            out.append(total)
    return out + [(word + 2**63) % 2**64 - 2**63 for word in zeros]


def sample_by_kernel(
    indptr,
    indices,
    cols,
    kernel,
    operands,
    roles,
    key,
    call_id=0,
    *,
    id=None,
    before=None,
    num_rows=None,
    num_threads=0,
):
    """A kernel is an edge program, as in ``run_kernel``."""
    begin, edge = [0], []
    for v in cols:
        edge += range(indptr[v], indptr[v + 1])
        begin.append(len(edge))
    rows = [indices[e] for e in edge]
    found = before and has_edges(indptr, indices, begin, rows, before)
    given = [
        [operand[e] for e in edge]
        if ROLES[role] == 'edge'
        else {'found': found, 'pointers': begin}.get(ROLES[role], operand)
        for operand, role in zip(operands, roles, strict=True)
    ]
    weight = edge_map(kernel, given, 0)
    cum_weight = cumulate_weights(begin, weight)
    begin, at = sample_columns(
        begin, 1, key, call_id, id=id, cum_weight=cum_weight
    )
    return begin, [edge[i] for i in at]


def positive_weights(weight, ptr=None):
    index, out_ptr = joined(
        [
            [i for i in range(first, end) if weight[i] > 0]
            for first, end in pairwise(
                [0, len(weight)] if ptr is None else ptr
            )
        ]
    )
    sums = cumulate_weights(out_ptr, [weight[i] for i in index])
    return (index, sums) if ptr is None else (index, sums, out_ptr)


# Features, subgraphs and negatives.


def gather_rows(input, index, scale=None, *, widen=False, num_threads=0):
    if scale is None:
        return [input[i] for i in index]
    return [_float32_products(input[i], scale[i]) for i in index]


def _float32_products(row, scale):
    """Products that are exact in double precision, rounded once."""
    if isinstance(row, list):
        return [_float32_products(item, scale) for item in row]
    return struct.unpack('f', struct.pack('f', row * scale))[0]


def induce_subgraph(
    indptr,
    indices,
    num_rows,
    row_nodes,
    col_nodes,
    row_batch=None,
    col_batch=None,
    *,
    num_threads=0,
):
    row_batch = row_batch or [0] * len(row_nodes)
    col_batch = col_batch or [0] * len(col_nodes)
    rows = list(zip(row_nodes, row_batch, strict=True))
    cols = list(zip(col_nodes, col_batch, strict=True))
    out = []
    for j, (v, batch) in enumerate(cols):
        for edge in range(indptr[v], indptr[v + 1]):
            if (indices[edge], batch) in rows:
                out.append((rows.index((indices[edge], batch)), j, edge))
    return tuple([item[i] for item in out] for i in range(3))


def negative_sample(
    id,
    num_nodes,
    target,
    key,
    call_id=0,
    *,
    cum_weight=None,
    order=None,
    order_time=None,
    max_time=None,
    anchor=None,
    indptr=None,
    indices=None,
):
    """Rejects edges, and after NEGATIVE_TRIES counts the other nodes."""
    relation = NEGATIVE_TARGET if target else NEGATIVE_SOURCE
    stream = stream_key(key[0], call_id, relation)
    cum = cum_weight or list(range(1, num_nodes + 1))
    weights = [b - a for a, b in pairwise([0, *cum[:num_nodes]])]
    out = []
    for i, item in enumerate(id):
        limit, edges = num_nodes, []
        if max_time is not None:
            limit = max(1, sum(t <= max_time[i] for t in order_time))
        if anchor is not None:
            edges = indices[indptr[anchor[i]] : indptr[anchor[i] + 1]]
        nodes = range(num_nodes) if order is None else order
        allowed = list(zip(nodes[:limit], weights[:limit], strict=True))
        draw = Stream(stream, 0, item)
        out.append(negative(draw, allowed, edges))
    return out


def negative(draw, allowed, edges):
    """A node of the `allowed` (node, weight) that is not in `edges`."""
    nodes = [node for node, _ in allowed]
    weights = [weight for _, weight in allowed]
    for slot in range(NEGATIVE_TRIES if sum(weights) > 0 else 0):
        node = nodes[find(weights, bounded(draw(slot), sum(weights)))]
        if node not in edges:
            return node
    left = [0 if node in edges else weight for node, weight in allowed]
    if sum(left) == 0:
        return -1
    return nodes[find(left, bounded(draw(NEGATIVE_TRIES), sum(left)))]


# Synthetic graphs.


def configuration_model(indptr, seed, wide_indices):
    """Fisher-Yates from the last stub down, 512 swaps per block of ids."""
    out = []
    for v in range(len(indptr) - 1):
        out += [v] * (indptr[v + 1] - indptr[v])
    n = len(out)
    for i in range(n - 1):
        block, swap = i // 512 * 512, i % 512
        draw = Stream(seed, 0, n - block + swap % 256)(swap // 256)
        last, partner = n - 1 - i, bounded(draw, n - i)
        out[last], out[partner] = out[partner], out[last]
    return out


def rmat_edges(scale, num_edges, quadrants, seed):
    """16 bits choose the quadrant of each level."""
    sums = [sum(quadrants[: i + 1]) for i in range(3)]
    bounds = [math.floor(65536 * total + 0.5) for total in sums]
    rows, cols = [], []
    for edge in range(num_edges):
        draw = Stream(seed, 0, edge)
        row = col = 0
        for level in range(scale):
            r = draw(level // 4) >> 16 * (level % 4) & 0xFFFF
            quadrant = sum(r >= bound for bound in bounds)
            row, col = 2 * row + quadrant // 2, 2 * col + quadrant % 2
        rows.append(row)
        cols.append(col)
    return rows, cols
