"""Malformed graphs and weights are refused, or do no harm."""

import pytest
import torch

from tests import reference
from tests.ops.layers import sample_typed_layers
from tests.ops.neighbors import sample_one
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import INDEX_DTYPES

TRIALS = range(400)


def some(low, high, size, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, (size,), generator=generator)


def malformed_graph(seed):
    """Four columns and ten edges; most pointers and rows are wrong."""
    indptr = some(-3, 14, 5, seed)
    if seed % 2:
        indptr = indptr.sort().values.clamp(0, 10)
    indices = some(-1, 5, 10, seed + 1) if seed % 3 else some(0, 4, 10, seed)
    dtypes = INDEX_DTYPES[seed % 3]
    return indptr.to(dtypes[0]), indices.to(dtypes[1])


@pytest.mark.parametrize('disjoint', [False, True])
def test_samples_of_malformed_graphs_are_refused_or_true(disjoint):
    refused = 0
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        try:
            out = sample_one(
                indptr,
                indices,
                torch.arange(4),
                [[3, 2], [-1, 1]][seed % 2],
                key=make_key(seed),
                disjoint=disjoint,
            )
        except RuntimeError:
            refused += 1
            continue
        assert ((out.node >= 0) & (out.node < 4)).all()
        assert torch.equal(indices[out.edge].long(), out.node[out.row])
        assert (indptr[out.node[out.col]] <= out.edge).all()
        assert (out.edge < indptr[out.node[out.col] + 1]).all()
    assert 100 < refused < 390


@pytest.mark.parametrize('disjoint', [False, True])
def test_layers_of_malformed_graphs_are_refused_or_true(disjoint):
    """The rows of the last hop are no columns, and may be anything."""
    refused = 0
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        seeds = torch.arange(4)
        try:
            out = sample_typed_layers(
                [indptr] * 2,
                [indices] * 2,
                [(0, 0), (0, 0)],
                [4],
                [seeds],
                [[3, 2], [[-1, 1], [2, 2]][seed % 2]],
                key=[make_key(seed)] * 2,
                disjoint=disjoint,
            )
        except RuntimeError:
            refused += 1
            continue
        for hop, columns in enumerate([seeds, out.node[0][0]]):
            assert ((columns >= 0) & (columns < 4)).all()
            for r in range(2):
                edge = out.edge[hop][r]
                col = columns.repeat_interleave(out.indptr[hop][r].diff())
                assert torch.equal(indices[edge], out.row[hop][r])
                assert (indptr[col] <= edge).all()
                assert (edge < indptr[col + 1]).all()
    assert 100 < refused < 390


def test_subgraphs_of_malformed_graphs_are_refused_or_true():
    refused, nodes = 0, torch.arange(4)
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        try:
            row, col, edge = ops.induce_subgraph(
                indptr, indices, 4, nodes, nodes
            )
        except RuntimeError:
            refused += 1
            continue
        assert torch.equal(indices[edge].long(), row)
        assert (indptr[col] <= edge).all()
        assert (edge < indptr[col + 1]).all()
    assert 100 < refused < 390


def test_checks_find_malformed_graphs():
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        fault = torch.ops.gsample.check_csc(indptr, indices, 4).tolist()
        assert fault == reference.check_csc(
            indptr.tolist(), indices.tolist(), 4
        )


@pytest.mark.parametrize('replace', [False, True])
def test_numbers_that_are_no_sums_give_edges_of_the_column(replace):
    for seed in TRIALS:
        n = 2 + seed % 60
        indptr = torch.tensor([0] + [n] * n)
        out = sample_one(
            indptr,
            torch.arange(n),
            torch.zeros(5, dtype=torch.int64),
            [min(n - 1, 1 + seed % 40)],
            key=make_key(seed),
            cum_weight=some(-(2**62), 2**62, n + -(-n // 64), seed),
            replace=replace,
            disjoint=True,
        )
        assert ((out.edge >= 0) & (out.edge < n)).all()
        assert torch.equal(out.node[out.row], out.edge)


def test_times_that_do_not_ascend_give_edges_of_the_column():
    for seed in TRIALS:
        n = 2 + seed % 60
        out = sample_one(
            torch.tensor([0] + [n] * n),
            torch.arange(n),
            torch.zeros(5, dtype=torch.int64),
            [4],
            key=make_key(seed),
            edge_time=some(-(2**62), 2**62, n, seed),
            seed_time=some(-(2**62), 2**62, 5, seed + 1),
            time_window=seed,
            disjoint=True,
        )
        assert ((out.edge >= 0) & (out.edge < n)).all()


def test_negatives_of_malformed_anchors_are_refused_or_nodes():
    refused = 0
    for seed in TRIALS:
        indptr, indices = (part.long() for part in malformed_graph(seed))
        try:
            out = ops.negative_sample(
                torch.arange(6),
                5,
                key=make_key(seed),
                anchor=some(-1, 5, 6, seed),
                indptr=indptr,
                indices=indices,
                cum_weight=some(-(2**62), 2**62, 6, seed),
            )
        except RuntimeError:
            refused += 1
            continue
        assert ((out >= -1) & (out < 5)).all()
    assert 100 < refused < 400


def assert_parts(out, indptr, indices, cols):
    """`out` holds edges of the columns that it has them in."""
    begin, _, edge = out
    assert begin[0] == 0
    assert begin[-1] == len(edge)
    degree = begin.diff()
    assert (degree >= 0).all()
    col = cols.repeat_interleave(degree)
    assert (indptr[col] <= edge).all()
    assert (edge < indptr[col + 1]).all()
    assert ((edge >= 0) & (edge < len(indices))).all()


def test_slices_of_malformed_matrices_are_refused_or_true():
    refused = [0, 0, 0]
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        cols, rows = some(0, 4, 3, seed), some(0, 4, 3, seed + 1)
        try:
            out = ops.slice_cols(indptr, indices, cols)
            assert_parts(out, indptr, indices, cols)
            assert torch.equal(out[1], indices[out[2]])
        except RuntimeError:
            refused[0] += 1
        try:
            out = ops.slice_rows(indptr, indices, 4, rows)
            assert_parts(out, indptr, indices, torch.arange(4))
            assert torch.equal(rows[out[1]], indices[out[2]].long())
        except RuntimeError:
            refused[1] += 1
        try:
            out = ops.slice_rows(indptr, indices, 4, rows, cols)
            assert_parts(out, indptr, indices, cols)
            assert torch.equal(rows[out[1]], indices[out[2]].long())
        except RuntimeError:
            refused[2] += 1
    assert all(100 < count < 390 for count in refused)


def test_matrices_without_columns_have_no_edges():
    for first in (-(2**62), -5, 0, 7, 10**9, 2**62):
        indptr, indices = torch.tensor([first]), torch.zeros(10).int()
        nothing = torch.arange(0)
        out = ops.slice_rows(indptr, indices, 1, torch.tensor([0]))
        assert [part.tolist() for part in out] == [[0], [], []]
        out = ops.slice_cols(indptr, indices, nothing)
        assert [part.tolist() for part in out] == [[0], [], []]


@pytest.mark.parametrize('bad', [-1, 4, 2**62, -(2**63), 2**63 - 1])
def test_ids_that_are_not_there_are_refused(bad):
    indptr, indices = torch.tensor([0, 1, 1, 2, 4]), torch.arange(4)
    ids = torch.tensor([bad])
    with pytest.raises(RuntimeError, match=r"'cols' must be in \[0, 4\)"):
        torch.ops.gsample.slice_cols(indptr, indices, ids)
    with pytest.raises(RuntimeError, match=r"'rows' must be in \[0, 4\)"):
        torch.ops.gsample.slice_rows(indptr, indices, 4, ids)


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('weighted', [False, True])
def test_columns_of_malformed_pointers_are_refused_or_edges(weighted, replace):
    refused = 0
    for seed in TRIALS:
        indptr, _ = malformed_graph(seed)
        num_edges = int(indptr[-1])
        cum = some(-(2**62), 2**62, max(num_edges, 0) + 1, seed)
        try:
            begin, edge = ops.sample_columns(
                indptr,
                [-1, 1, 3, 70][seed % 4],
                key=make_key(seed),
                cum_weight=cum if weighted else None,
                replace=replace,
            )
        except RuntimeError:
            refused += 1
            continue
        indices = torch.empty(num_edges)
        out = begin, indices, edge
        assert_parts(out, indptr, indices, torch.arange(4))
    assert 100 < refused < 390


@pytest.mark.parametrize('replace', [False, True])
def test_numbers_that_are_no_sums_give_edges_and_nodes(replace):
    for seed in TRIALS:
        n = 1 + seed % 90
        k = 1 + seed % 80
        columns = torch.tensor([0, n // 3, n])
        cum = some(-(2**62), 2**62, n + 1, seed)
        if seed % 5 == 0:
            cum[n - 1] = 0  # what is taken for the sum
        begin, edge = ops.sample_columns(
            columns, k, key=make_key(seed), cum_weight=cum, replace=replace
        )
        out = begin, None, edge
        assert_parts(out, columns, torch.empty(n), torch.arange(2))
        node = ops.sample_nodes(
            n, k, key=make_key(seed), cum_weight=cum, replace=replace
        )
        assert len(node) <= k
        assert ((node >= 0) & (node < n)).all()


def test_ids_that_are_no_nodes_are_refused():
    refused = 0
    for seed in TRIALS:
        num_nodes = [3, 2**26 + 1][seed % 2]  # a dense table, a hash table
        ids = some(-1, 4, 1 + seed % 7, seed)
        if ids.min() < 0 or ids.max() >= num_nodes:
            with pytest.raises(RuntimeError, match="'id' must be in"):
                torch.ops.gsample.unique_nodes(ids, num_nodes)
            refused += 1
        else:
            node, local = ops.unique_nodes(ids, num_nodes)
            assert torch.equal(node[local], ids)
    assert 100 < refused < 390


def walks_of(indptr, indices, seed):
    """A walk of each kind, with numbers that are no sums for weights."""
    args = (indptr, indices, torch.arange(4), 5)
    key = make_key(seed)
    cum = (
        some(-(2**62), 2**62, indices.numel() + 1, seed) if seed % 2 else None
    )
    p, q = [(1, 1), (0.5, 2), (1e-9, 1e9)][seed % 3]
    options = {'key': key, 'cum_weight': cum}
    yield lambda: ops.random_walk(*args, **options)
    yield lambda: ops.node2vec_walk(*args, p, q, **options)
    yield lambda: ops.node2vec_walk(*args, p, q, is_sorted=True, **options)
    yield lambda: ops.metapath_walk(
        [indptr] * 2, [indices] * 2, [0, 1, 0, 0, 1], args[2], key=key
    )


def test_walks_of_malformed_graphs_are_refused_or_true():
    refused = 0
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        for walk in walks_of(indptr, indices, seed):
            try:
                nodes, edges = walk()
            except RuntimeError:
                refused += 1
                continue
            taken = edges >= 0
            before, edge = nodes[:, :-1][taken], edges[taken]
            assert (nodes[:, :-1] < 4).all()
            assert torch.equal(indices[edge].long(), nodes[:, 1:][taken])
            assert (indptr[before] <= edge).all()
            assert (edge < indptr[before + 1]).all()
    assert 400 < refused < 1590


def test_walks_with_numbers_of_any_size_are_refused():
    indptr, zeros = torch.tensor([0, 1, 2, 3, 6]), torch.zeros(6).long()
    for bad in (-1, 2**62, -(2**63), 2**63 - 1):
        for malformed in (
            (indptr, zeros + bad),
            (bad + indptr.clamp(max=1), zeros),
        ):
            for walk in walks_of(*malformed, 0):
                with pytest.raises(RuntimeError, match='must'):
                    walk()


@pytest.mark.parametrize('is_sorted', [False, True])
def test_a_wrong_neighbor_is_refused_where_it_is_drawn_exactly(is_sorted):
    """The only near one of a hub, which candidates hardly ever find."""
    far = torch.arange(2, 3002)
    wrong = torch.tensor([9999])
    indices = torch.cat([torch.tensor([1]), wrong, far, wrong])
    indptr = torch.tensor([0, 2, 3003]).repeat_interleave(
        torch.tensor([1, 1, 3001])
    )
    met = set()
    for seed in range(40):
        with pytest.raises(RuntimeError, match=r'step \(got 9999') as error:
            ops.node2vec_walk(
                indptr,
                indices,
                torch.tensor([0]),
                2,
                1.0,
                1e9,
                key=make_key(seed),
                is_sorted=is_sorted,
            )
        met |= {e for e in (1, 3002) if f'at edge {e} ' in str(error.value)}
    assert met == {1, 3002}


def test_a_walk_is_refused_only_where_it_reaches_wrong_input():
    """Column 3 descends, an entry of column 4 is no node."""
    indptr = torch.tensor([0, 1, 2, 4, 3, 5])
    indices = torch.tensor([1, 0, 3, 0, 5])
    options = {'key': make_key(0)}
    for dtypes in INDEX_DTYPES:
        graph = indptr.to(dtypes[0]), indices.to(dtypes[1])
        for walk in (
            lambda *a: ops.random_walk(*a, 6, **options),
            lambda *a: ops.node2vec_walk(*a, 6, 2, 0.5, **options),
            lambda *a: ops.metapath_walk(
                [a[0]] * 2, [a[1]] * 2, [0, 1, 0], a[2], **options
            ),
        ):
            nodes, _ = walk(*graph, torch.tensor([0, 1]))
            assert set(nodes.unique().tolist()) == {0, 1}
            with pytest.raises(
                RuntimeError, match=r'ascend .* at column 3 of'
            ):
                walk(*graph, torch.tensor([0, 3]))
            with pytest.raises(RuntimeError, match='got 5 at edge 4 of rel'):
                walk(*graph, torch.tensor([4] * 40))
