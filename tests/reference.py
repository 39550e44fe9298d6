"""Every operator again, slowly: plain loops over Python integers.

An operator's reference has its name and its arguments (csrc/bind/library.cpp)
with lists in place of tensors, and returns its outputs as lists. Those of
matrices are in reference_matrix.py. Do not make this faster: make it easier to
read.
"""

import itertools
import math

from tests.reference_columns import Options, Relation, sample_column
from tests.reference_core import (
    Stream,
    bounded,
    find,
    fixed_point,
    fixed_point_shift,
    stream_key,
)
from tests.reference_edge_map import edge_map  # noqa: F401
from tests.reference_frontier import sample_frontier  # noqa: F401
from tests.reference_layers import hetero_sample_hops  # noqa: F401
from tests.reference_matrix import (  # noqa: F401
    labor_scale,
    next_key,
    random_uniform,
    sample_cols,
    sample_hops,
    sample_nodes,
    slice_cols,
    slice_rows,
    sum_columns,
    unique_nodes,
)
from tests.reference_segments import (  # noqa: F401
    positive_weights_segments,
    sample_nodes_segments,
    slice_rows_segments,
    unique_nodes_segments,
)
from tests.reference_vertex_map import (  # noqa: F401
    product_by_type,
    project_edges,
    sum_outer_by_type,
    sum_outer_edges,
    vertex_map,
    vertex_relations,
    vertex_unit,
)
from tests.reference_walk import (  # noqa: F401
    forest_fire,
    metapath_walk,
    node2vec_walk,
    random_walk,
)

EPOCH_SCOPE = -1
NEGATIVE_SOURCE, NEGATIVE_TARGET = 0xFFFE, 0xFFFF
NEGATIVE_TRIES = 64

# Formats.


def coo_to_csc(row, col, num_cols, wide_indptr, wide_indices, num_rows=None):
    perm = sorted(range(len(col)), key=lambda edge: col[edge])
    indptr = [sum(c < v for c in col) for v in range(num_cols + 1)]
    return indptr, [row[edge] for edge in perm], perm


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
    for v, (begin, end) in enumerate(itertools.pairwise(indptr)):
        column = weight[begin:end]
        zeros[v // 64] |= (0 in column) << v % 64
        shift = fixed_point_shift(max(column, default=0), len(column))
        total = 0
        for w in column:
            total += fixed_point(w, shift)
            out.append(total)
    return out + [(word + 2**63) % 2**64 - 2**63 for word in zeros]


def positive_weights(weight):
    index = [i for i, w in enumerate(weight) if w > 0]
    positive = [weight[i] for i in index]
    return index, cumulate_weights([0, len(index)], positive)


# Neighbour sampling.


class Nodes:
    """The sampled nodes of one type; a local id is a position in `items`."""

    def __init__(self):
        self.items = []  # (node, tree)
        self.first = {}  # (node, tree) -> local id of its first occurrence
        self.frontier = range(0)
        self.num_nodes = []

    def add(self, node, tree):
        self.first.setdefault((node, tree), len(self.items))
        self.items.append((node, tree))

    def local_id(self, node, tree):
        if (node, tree) not in self.first:
            self.add(node, tree)
        return self.first[node, tree]

    def end_hop(self):
        self.frontier = range(self.frontier.stop, len(self.items))
        self.num_nodes.append(len(self.frontier))


def hetero_neighbor_sample(
    indptr,
    indices,
    src,
    dst,
    num_nodes,
    seeds,
    fanouts,
    cum_weight,
    edge_time,
    seed_time,
    key,
    call_id=0,
    **options,
):
    options = Options(**options)
    hops = len(fanouts) // len(indptr) if indptr else 0
    none = [None] * len(indptr)
    fanouts = [fanouts[r * hops : (r + 1) * hops] for r in range(len(indptr))]
    columns = (indptr, indices, src, dst, fanouts)
    relations = [
        Relation(*fields)
        for fields in zip(
            *columns, cum_weight or none, edge_time or none, strict=True
        )
    ]
    nodes = [Nodes() for _ in num_nodes]
    tree_time = []  # a tree for each seed of any type
    for t, sample in enumerate(nodes):
        for i, seed in enumerate(seeds[t]):
            sample.add(seed, len(tree_time) if options.disjoint else 0)
            tree_time.append(seed_time[t][i] if seed_time else None)
        sample.end_hop()
    edges = [[] for _ in relations]  # (row, col, edge)
    num_edges = [[] for _ in relations]
    for hop in range(hops):
        for r, relation in enumerate(relations):
            stream = stream_key(key[0], call_id + hop, r)
            before = len(edges[r])
            for col in nodes[relation.dst].frontier:
                v, tree = nodes[relation.dst].items[col]
                root = 0 if key[0][2] == EPOCH_SCOPE else tree
                for e in sample_column(
                    relation,
                    v,
                    relation.fanouts[hop],
                    tree_time[tree],
                    Stream(stream, root, v),
                    options,
                ):
                    row = nodes[relation.src].local_id(
                        relation.indices[e], tree
                    )
                    edges[r].append((row, col, e))
            num_edges[r].append(len(edges[r]) - before)
        for sample in nodes:
            sample.end_hop()
    return sample_outputs(nodes, edges, num_edges, options)


def sample_outputs(nodes, edges, num_edges, options):
    return (
        [[row for row, _, _ in e] for e in edges],
        [[col for _, col, _ in e] for e in edges],
        [[node for node, _ in sample.items] for sample in nodes],
        [[e for _, _, e in rel if options.return_edge_id] for rel in edges],
        [
            [tree for _, tree in sample.items if options.disjoint]
            for sample in nodes
        ],
        [sample.num_nodes for sample in nodes],
        num_edges,
    )


def neighbor_sample(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    call_id=0,
    *,
    cum_weight=None,
    edge_time=None,
    seed_time=None,
    **options,
):
    """One node type and one relation."""
    out = hetero_neighbor_sample(
        [indptr],
        [indices],
        [0],
        [0],
        [len(indptr) - 1],
        [seeds],
        fanouts,
        [cum_weight],
        [edge_time],
        [seed_time] if seed_time is not None else [],
        key,
        call_id,
        **options,
    )
    return tuple(of_all[0] for of_all in out)


def neighbor_sample_padded(
    indptr, indices, seeds, fanouts, key, max_edges, call_id=0, **options
):
    """The same, with -1 where nothing is, and no fault."""
    row, col, node, edge, batch, *counts = neighbor_sample(
        indptr, indices, seeds, fanouts, key, call_id, **options
    )
    disjoint = options.get('disjoint', False)
    most = max_edges if disjoint else min(max_edges, max(len(indptr) - 1, 1))
    max_nodes = len(seeds) + most

    def pad(items, size):
        return items + [-1] * (size - len(items))

    edge_id = options.get('return_edge_id', True)
    return (
        pad(row, max_edges),
        pad(col, max_edges),
        pad(node, max_nodes),
        pad(edge, max_edges if edge_id else 0),
        pad(batch, max_nodes if disjoint else 0),
        *counts,
        [0, 0, 0],
    )


# Features, subgraphs and negatives.


def gather_rows(input, index, *, num_threads=0):
    return [input[i] for i in index]


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
    """Rejects edges, and counts what is left after NEGATIVE_TRIES of them."""
    relation = NEGATIVE_TARGET if target else NEGATIVE_SOURCE
    stream = stream_key(key[0], call_id, relation)
    cum = cum_weight or list(range(1, num_nodes + 1))
    weights = [b - a for a, b in itertools.pairwise([0, *cum[:num_nodes]])]
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
    """A node of the `allowed` (node, weight) that is none of `edges`."""
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
    """Fisher-Yates from the last stub down, 512 swaps to a block of ids."""
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
