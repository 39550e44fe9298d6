"""DeepWalk and node2vec walk by their laws."""

from collections import Counter

import pytest
import torch

from tests.algorithms.checks import chi_square_p, neighbors, random_graph
from torch_gsample import SparseSample
from torch_gsample.algorithms import deepwalk, node2vec
from torch_gsample.rng import make_key, program_scope


def transitions(walks, size):
    """Counts the last step of each run of `size` steps."""
    out = {}
    for run in walks.unfold(1, size + 1, 1).reshape(-1, size + 1).tolist():
        out.setdefault(tuple(run[:-1]), Counter())[run[-1]] += 1
    return out


def assert_follows(counts, law):
    """Each state's counts match its law, together at p > 0.001."""
    observed, expected = [], []
    states = 0
    for state, counter in counts.items():
        probs = law(state)
        total = sum(counter.values())
        assert set(counter) <= set(probs)
        if total * min(probs.values()) < 5 or len(probs) < 2:
            continue
        observed += [counter[x] for x in probs]
        expected += [total * p for p in probs.values()]
        states += 1
    assert states > 20
    # One degree of freedom less for each state.
    from scipy.stats import chi2

    x = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    assert chi2.sf(x, len(observed) - states) > 0.001


def second_order(near, p, q):
    def law(state):
        t, v = state
        weight = {
            x: 1 / p if x == t else 1.0 if x in near[t] else 1 / q
            for x in near[v]
        }
        return {x: w / sum(weight.values()) for x, w in weight.items()}

    return law


@pytest.mark.parametrize(('p', 'q'), [(0.25, 4.0), (4.0, 0.5), (1.0, 1.0)])
def test_node2vec_weighs_by_1_over_p_1_and_1_over_q(p, q):
    A = random_graph(12, 4)
    with program_scope(make_key(1)):
        walks = node2vec(A, torch.arange(12).repeat(400), 40, p, q)
    assert_follows(transitions(walks, 2), second_order(neighbors(A), p, q))


@pytest.mark.parametrize(('p', 'q'), [(0.25, 4.0), (4.0, 0.5), (1.0, 1.0)])
def test_weighted_node2vec_multiplies_by_the_values(p, q):
    A = random_graph(12, 4)
    A = A.with_value(torch.arange(A.num_edges) % 4 * 1.5)  # some are 0
    with program_scope(make_key(6)):
        walks = node2vec(A, torch.arange(12).repeat(400), 40, p, q, True)
    near, dense = neighbors(A), A.to_dense().double()

    def law(state):
        t, v = state
        weight = {
            x: dense[v, x].item()
            * (1 / p if x == t else 1.0 if x in near[t] else 1 / q)
            for x in near[v]
            if dense[v, x] > 0
        }
        return {x: w / sum(weight.values()) for x, w in weight.items()}

    assert_follows(transitions(walks, 2), law)
    first = transitions(walks[:, :2], 1)
    for (v,), counter in first.items():
        assert set(counter) <= set(dense[v].nonzero().view(-1).tolist())


def test_negative_weights_of_node2vec_are_refused():
    A = random_graph(12, 4)
    with pytest.raises(ValueError, match=r"'probs'.*negative"):
        node2vec(-A, torch.arange(3), 2, 1.0, 2.0, True)


def test_node2vec_overlooks_no_neighbor_in_rows_that_do_not_ascend():
    A = random_graph(12, 4)
    indptr, indices, _ = A.to_csr()
    rows = indices.split(indptr.diff().tolist())
    B = SparseSample.from_csr(indptr, torch.cat([r.flip(0) for r in rows]))
    with program_scope(make_key(1)):
        walks = node2vec(B, torch.arange(12).repeat(400), 40, 2.0, 4.0)
    assert_follows(transitions(walks, 2), second_order(neighbors(A), 2, 4))


@pytest.mark.parametrize('build', ['from_csr', 'from_csc', 'from_coo'])
def test_node2vec_overlooks_no_neighbor_of_a_hub(build):
    """Of which there are too many to be looked at one by one.

    Node 0 points to the nodes 1 .. 100 in no order. From node 1 a walk comes
    to node 0, and of the nodes that 0 points to, 1 points to the even ones.
    """
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1)) + 1
    even = order[order % 2 == 0]
    loops = torch.arange(2, 101)  # back to the hub
    row = torch.cat([torch.zeros(100), torch.ones(51), loops]).long()
    col = torch.cat([order, torch.tensor([0]), even, torch.zeros(99)]).long()
    if build == 'from_coo':
        A = SparseSample.from_coo(row, col)
    else:
        key = row if build == 'from_csr' else col
        at = key.argsort(stable=True)
        indptr = torch.cat([torch.zeros(1), key.bincount().cumsum(0)]).long()
        minor = (col if build == 'from_csr' else row)[at]
        A = getattr(SparseSample, build)(indptr, minor)
    with program_scope(make_key(4)):
        seeds = torch.ones(40_000, dtype=torch.int64)
        walks = node2vec(A, seeds, 2, 2.0, 4.0)
    ends = walks[walks[:, 1] == 0, 2]
    count = ends.bincount(minlength=101)[1:].double()
    weight = torch.ones(100).double()  # 1, for a neighbour of node 1
    weight[::2] = 1 / 4
    weight[0] = 1 / 2  # back
    expected = weight / weight.sum() * count.sum()
    assert chi_square_p(count.tolist(), expected.tolist()) > 0.001


@pytest.mark.parametrize('build', ['from_csc', 'from_csr'])
def test_walks_on_compressed_matrices_name_their_edges(build):
    """Edges are numbered as they were given: by column, or by row."""
    indptr = torch.tensor([0, 2, 3, 5, 7])
    indices = torch.tensor([3, 1, 0, 0, 1, 2, 0])
    A = getattr(SparseSample, build)(indptr, indices)
    major = torch.arange(4).repeat_interleave(indptr.diff())
    ends = (indices, major) if build == 'from_csc' else (major, indices)
    for matrix, (tail, head) in ((A, ends), (A.T, ends[::-1])):
        for walks in (
            matrix.random_walk(torch.arange(4).repeat(20), 5),
            matrix.node2vec_walk(torch.arange(4).repeat(20), 5, 2.0, 0.5),
        ):
            assert torch.equal(tail[walks.edges], walks.nodes[:, :-1])
            assert torch.equal(head[walks.edges], walks.nodes[:, 1:])
            assert walks.edges.unique().numel() == 7


def test_walks_of_a_part_are_by_position_and_edges_by_id():
    u, v = torch.tensor([4, 2, 0, 3, 4, 2]), torch.tensor([2, 3, 3, 4, 3, 4])
    A = SparseSample.from_edge_index(torch.stack([u, v]))
    nodes = torch.tensor([4, 2, 3])
    part = A[nodes, nodes]
    walks = part.random_walk(torch.arange(3).repeat(20), 4)
    assert bool((walks.edges >= 0).all())
    assert torch.equal(u[walks.edges], nodes[walks.nodes[:, :-1]])
    assert torch.equal(v[walks.edges], nodes[walks.nodes[:, 1:]])


def test_deepwalk_is_uniform_over_out_edges():
    A = random_graph(24, 4)
    near = neighbors(A)
    with program_scope(make_key(2)):
        walks = deepwalk(A, torch.arange(24).repeat(100), 20)
    assert_follows(
        transitions(walks, 1),
        lambda state: {x: 1 / len(near[state[0]]) for x in near[state[0]]},
    )


def test_walks_go_along_edges_and_name_them():
    u = torch.tensor([0, 2, 1, 0, 3])
    v = torch.tensor([1, 0, 2, 3, 2])
    A = SparseSample.from_edge_index(torch.stack([u, v]))
    for matrix, tail, head in ((A, u, v), (A.T.T, u, v), (A.T, v, u)):
        walks = matrix.random_walk(torch.arange(4).repeat(9), 6)
        assert bool((walks.edges >= 0).all())
        assert torch.equal(tail[walks.edges], walks.nodes[:, :-1])
        assert torch.equal(head[walks.edges], walks.nodes[:, 1:])


def test_walks_that_end_have_no_more_edges():
    A = SparseSample.from_edge_index(torch.tensor([[2, 0], [0, 1]]))
    for walks in (
        A.random_walk(torch.tensor([2, 1]), 3),
        A.node2vec_walk(torch.tensor([2, 1]), 3, 2.0, 0.5),
    ):
        assert walks.nodes.tolist() == [[2, 0, 1, 1], [1, 1, 1, 1]]
        assert walks.edges.tolist() == [[0, 1, -1], [-1, -1, -1]]


@pytest.mark.parametrize('transposed', [False, True])
def test_walks_never_take_edges_of_probability_zero(transposed):
    generator = torch.Generator().manual_seed(3)
    u, v = torch.randint(9, (2, 90), generator=generator)
    weight = torch.rand(90, generator=generator)
    weight[::3] = 0
    ends = (v, u) if transposed else (u, v)
    A = SparseSample.from_edge_index(torch.stack(ends), weight, 9)
    A = A.T if transposed else A
    seeds = torch.arange(9).repeat(50)
    for walks in (
        A.random_walk(seeds, 6, probs=A.values()),
        A.random_walk(seeds, 6, probs=A),
        A.node2vec_walk(seeds, 6, 2.0, 0.5, probs=A.values()),
    ):
        taken = walks.edges.unique()
        assert bool((weight[taken] > 0).all())
        assert taken.numel() > 50


@pytest.mark.parametrize('restart', [0.0, 0.4])
def test_visits_are_counted_by_step(restart):
    """No visit is a restart, or a stay at a node without edges."""
    A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 2]]))
    with program_scope(make_key(5)):
        count = A.visit_count(torch.tensor([0, 2]), 500, 4, restart)
    dense = count.to_dense()
    assert dense[:, 1].tolist() == [0, 0, 0]
    assert dense[0, 0] == 0
    if restart == 0:
        assert dense[:, 0].tolist() == [0, 500, 500]
    else:  # some walks come to node 1 repeatedly, few to node 2
        assert 500 < dense[1, 0] < 4 * 500
        assert dense[2, 0] < dense[1, 0] * 0.7


def test_visits_of_a_part_are_by_the_ids_of_its_nodes():
    A = SparseSample.from_edge_index(torch.tensor([[4, 2], [2, 3]]))
    nodes = torch.tensor([4, 2, 3])
    count = A[nodes, nodes].visit_count(torch.tensor([1, 0]), 3, 1)
    assert count.col_ids.tolist() == [2, 4]
    visits = [x.tolist() for x in count.edges()]
    assert visits == [[3, 2], [2, 4]]


def test_walks_prefer_probable_edges():
    A = SparseSample.from_edge_index(
        torch.tensor([[0, 0, 0], [1, 2, 3]]), torch.tensor([1.0, 2.0, 0.0])
    )
    with program_scope(make_key(3)):
        seeds = torch.zeros(9000, dtype=torch.int64)
        ends = A.random_walk(seeds, 1, probs=A.values()).nodes[:, 1]
    count = torch.bincount(ends, minlength=4).tolist()
    assert count[3] == 0
    assert chi_square_p(count[1:3], [3000, 6000]) > 0.001


def test_a_matrix_that_is_not_square_cannot_be_walked():
    A = SparseSample.from_coo(
        torch.tensor([0]), torch.tensor([0]), shape=(1, 2)
    )
    with pytest.raises(ValueError, match='random_walk: the matrix must be'):
        A.random_walk(torch.tensor([0]), 1)
    with pytest.raises(ValueError, match='node2vec_walk: the matrix must be'):
        A.node2vec_walk(torch.tensor([0]), 1, 2.0, 0.5)
