"""Random small graphs and options against the reference."""

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.cases import all_equal_reference
from tests.ops.compare import assert_equals_reference
from tests.ops.layers import typed_call
from tests.ops.neighbors import make_graph
from torch_gsample import ops
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    from_columns,
    to_dtypes,
)

settings.register_profile(
    'ops', deadline=None, derandomize=True, max_examples=400, database=None
)
OPS = settings.get_profile('ops')


def vector(values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


@st.composite
def columns(draw, num_rows, num_cols):
    """In-neighbours of each column; now and then there are many."""
    row = st.integers(0, max(num_rows - 1, 0))
    out = []
    for _ in range(num_cols):
        size = draw(DEGREE) if num_rows > 0 else 0
        out.append(draw(st.lists(row, min_size=size, max_size=size)))
    return out


@st.composite
def graphs(draw, num_rows=None, num_cols=None):
    num_cols = draw(SIZE) if num_cols is None else num_cols
    num_rows = num_cols if num_rows is None else num_rows
    return from_columns(draw(columns(num_rows, num_cols)), num_rows)


@st.composite
def seeds_of(draw, num_nodes):
    size = draw(SEEDS) if num_nodes > 0 else 0
    node = st.integers(0, max(num_nodes - 1, 0))
    return vector(draw(st.lists(node, min_size=size, max_size=size)))


def weights_of(graph):
    size = graph.num_edges
    return st.lists(WEIGHT, min_size=size, max_size=size).map(
        lambda values: vector(values, torch.float64)
    )


@st.composite
def times_of(draw, graph):
    """Times from 0 to 5, ascending in each column."""
    out = []
    for size in graph.indptr.diff().tolist():
        time = st.lists(st.integers(0, 5), min_size=size, max_size=size)
        out += sorted(draw(time))
    return vector(out)


def seed_times_of(seeds):
    size = len(seeds)
    time = st.integers(-1, 6)
    return st.lists(time, min_size=size, max_size=size).map(vector)


# Without empty ones more often than they deserve.
SIZE = st.sampled_from([5, 2, 7, 1, 0])
DEGREE = st.sampled_from([3, 1, 0, 5, 20, 80])
SEEDS = st.sampled_from([2, 1, 5, 3, 0])
FANOUT = st.sampled_from([2, -1, 1, 4, 3, 17, 70, 0])
WEIGHT = st.sampled_from([1.0, 0.5, 0.0, 3.75, 1e-9, 5e-324, 1e300])
KEYS = st.builds(
    make_key,
    st.integers(-(2**63), 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(EPOCH_SCOPE, 2**63 - 1),
)
OPTIONS = {'replace': st.booleans(), 'disjoint': st.booleans()}
TIME_OPTIONS = {
    'time_window': st.none() | st.integers(0, 6),
    'temporal_strategy': st.sampled_from(['uniform', 'last']),
}


def draw_heterogeneous(data):
    """What operators of node and edge types take, the hops, and options."""
    num_types = data.draw(st.sampled_from([2, 1, 3, 0]))
    num_nodes = [data.draw(SIZE) for _ in range(num_types)]
    types = st.integers(0, max(num_types - 1, 0))
    size = data.draw(st.sampled_from([2, 1, 4, 0])) if num_types else 0
    pairs = st.lists(st.tuples(types, types), min_size=size, max_size=size)
    relations = data.draw(pairs)
    parts = [
        data.draw(graphs(num_nodes[src], num_nodes[dst]))
        for src, dst in relations
    ]
    seeds = [data.draw(seeds_of(n)) for n in num_nodes]
    hops = data.draw(st.sampled_from([2, 1, 3, 0]))
    size = hops * len(parts)
    options = data.draw(st.fixed_dictionaries(OPTIONS))
    cum_weight, edge_time, seed_time = [], [], []
    if data.draw(st.booleans()):
        cum_weight = [
            ops.cumulate_weights(g.indptr, data.draw(weights_of(g)))
            if data.draw(st.booleans())
            else vector([])
            for g in parts
        ]
    if parts and data.draw(st.booleans()):
        options |= data.draw(st.fixed_dictionaries(TIME_OPTIONS))
        options['disjoint'] = True
        edge_time = [
            data.draw(times_of(g)) if data.draw(st.booleans()) else vector([])
            for g in parts
        ]
        if any(time.numel() for time in edge_time):
            seed_time = [data.draw(seed_times_of(s)) for s in seeds]
    dtypes = data.draw(st.sampled_from(INDEX_DTYPES))
    parts = [to_dtypes(g, dtypes) for g in parts]
    args = [
        [g.indptr for g in parts],
        [g.indices for g in parts],
        [src for src, _ in relations],
        [dst for _, dst in relations],
        num_nodes,
        seeds,
        data.draw(st.lists(FANOUT, min_size=size, max_size=size)),
        cum_weight,
        edge_time,
        seed_time,
    ]
    return args, hops if parts else 0, options


@settings(OPS)
@given(st.data())
def test_any_heterogeneous_sample_equals_the_reference(data):
    args, hops, options = draw_heterogeneous(data)
    *parts, num_nodes, seeds, fanouts, cum_weight, edge_time, seed_time = args
    indptr, indices, src, dst = parts
    graph = make_graph(
        *(indptr, indices, list(zip(src, dst, strict=True)), num_nodes),
        [weight if weight.numel() else None for weight in cum_weight],
        [time if time.numel() else None for time in edge_time],
    )
    all_equal_reference(
        graph,
        seeds,
        [fanouts[r * hops : (r + 1) * hops] for r in range(len(src))],
        data.draw(KEYS),
        call_id=data.draw(st.integers(0, 65536 - hops - 1)),
        seed_time=seed_time or None,
        **options,
    )


@settings(OPS)
@given(st.data())
def test_any_heterogeneous_layers_equal_the_reference(data):
    args, hops, options = draw_heterogeneous(data)
    assume(args[0] or args[5])  # a tensor tells the device
    calls = st.integers(0, 65535)
    args, given = typed_call(
        *args,
        data.draw(st.lists(KEYS, min_size=hops, max_size=hops)),
        data.draw(st.lists(calls, min_size=hops, max_size=hops)),
        frontier=data.draw(st.sampled_from(['nodes', 'row'])),
        return_frontier=data.draw(st.booleans()),
        **options,
    )
    assert_equals_reference('sample_layers', *args, **given)


@settings(OPS)
@given(st.data())
def test_any_induced_subgraph_equals_the_reference(data):
    graph = data.draw(graphs())
    nodes = [data.draw(seeds_of(graph.num_cols)) for _ in range(2)]
    batches = []
    if data.draw(st.booleans()):
        batches = [data.draw(seed_times_of(part)) for part in nodes]
    assert_equals_reference(
        'induce_subgraph',
        graph.indptr,
        graph.indices,
        graph.num_rows,
        *nodes,
        *batches,
    )


@settings(OPS)
@given(st.data())
def test_any_negatives_equal_the_reference(data):
    graph = data.draw(graphs(num_rows=data.draw(st.integers(1, 6))))
    num_nodes, options = data.draw(st.integers(1, 6)), {}
    n = data.draw(st.integers(0, 5))
    if data.draw(st.booleans()):
        line = from_columns([[0] * num_nodes])
        weight = data.draw(weights_of(line))
        options['cum_weight'] = ops.cumulate_weights(line.indptr, weight)
    if data.draw(st.booleans()):
        order = data.draw(st.permutations(range(num_nodes)))
        options['order'] = vector(order)
        line = from_columns([[0] * num_nodes])
        options['order_time'] = data.draw(times_of(line))
        options['max_time'] = data.draw(seed_times_of(range(n)))
    if graph.num_cols and data.draw(st.booleans()):
        anchor = st.integers(0, graph.num_cols - 1)
        options['anchor'] = vector(
            data.draw(st.lists(anchor, min_size=n, max_size=n))
        )
        options['indptr'] = graph.indptr
        options['indices'] = graph.sort_columns(graph.indices)[0].indices
    ids = data.draw(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n)
    )
    assert_equals_reference(
        'negative_sample',
        vector(ids),
        num_nodes,
        data.draw(st.booleans()),
        data.draw(KEYS),
        data.draw(st.integers(0, 65535)),
        **options,
    )


@settings(OPS)
@given(st.data())
def test_any_edges_become_the_columns_of_the_reference(data):
    graph = data.draw(graphs())
    order = vector(data.draw(st.permutations(range(graph.num_edges))))
    row, col = graph.indices[order], graph.col()[order]
    dtype = data.draw(st.sampled_from([torch.int32, torch.int64]))
    indptr, indices, _ = assert_equals_reference(
        'coo_to_csc', row.to(dtype), col.to(dtype), graph.num_cols, True, True
    )
    assert_equals_reference('check_csc', indptr, indices, graph.num_rows)
    assert_equals_reference(
        'cumulate_weights', indptr, data.draw(weights_of(graph))
    )
    assert_equals_reference(
        'configuration_model', indptr, data.draw(st.integers(0, 9)), True
    )
