"""ShaDow's and SEAL's subgraphs, against plain loops."""

from collections import Counter, deque
from itertools import combinations

import pytest
import torch

from tests.algorithms.checks import (
    chi_square_p,
    dense_ppr,
    neighbors,
    random_graph,
    undirected,
)
from torch_gsample.algorithms import seal, shadow, shadow_ppr
from torch_gsample.rng import make_key, program_scope


def hops(near, start, without=None):
    """Distances by breadth-first search."""
    out, queue = {start: 0}, deque([start])
    while queue:
        v = queue.popleft()
        for u in near[v]:
            if u not in out and u != without:
                out[u] = out[v] + 1
                queue.append(u)
    return out


def blocks(A, out):
    """The nodes of each subgraph, checked to be induced."""
    dense, whole = A.to_dense(), out.matrix.to_dense()
    ids, parts = out.matrix.col_ids, []
    assert torch.equal(ids, out.matrix.row_ids)
    for i in range(out.root.shape[-1]):
        own = (out.batch == i).nonzero().view(-1)
        assert torch.equal(whole[own][:, own], dense[ids[own]][:, ids[own]])
        parts.append(ids[own].tolist())
        assert len(set(parts[-1])) == len(parts[-1])
    across = out.batch[:, None] != out.batch
    assert not whole[across].any()
    return parts


def test_shadow_is_induced_bounded_and_near():
    A, seeds = random_graph(60, 6), torch.tensor([5, 40, 5])
    near = neighbors(A)
    with program_scope(make_key(0)):
        out = shadow(A, seeds, [3, 2])
    parts = blocks(A, out)
    assert torch.equal(out.matrix.col_ids[out.root], seeds)
    for seed, part in zip(seeds.tolist(), parts, strict=True):
        distance = hops(near, seed)
        assert len(part) <= 1 + 3 + 6
        assert all(distance[v] <= 2 for v in part)
        count = sum(distance[v] == 1 for v in part)
        assert count >= min(3, len(near[seed]))
    assert parts[0] != parts[2]  # a duplicate draws again


def test_shadow_of_all_neighbors_is_the_ball():
    A = random_graph(40)
    out = shadow(A, torch.tensor([3, 20]), [-1, -1])
    for seed, part in zip((3, 20), blocks(A, out), strict=True):
        distance = hops(neighbors(A), seed)
        assert part[0] == seed
        assert set(part) == {v for v, d in distance.items() if d <= 2}


def test_shadow_ppr_takes_the_top_scores():
    A, seeds = random_graph(40), torch.tensor([3, 20])
    out = shadow_ppr(A, seeds, 6, 0.2, 1e-10)
    exact = dense_ppr(A, 0.2)
    for seed, part in zip((3, 20), blocks(A, out), strict=True):
        scores = exact[:, seed].clone()
        scores[seed] = 2
        assert set(part) == set(scores.topk(7).indices.tolist())


@pytest.mark.parametrize('num_hops', [1, 2, 3])
def test_seal_labels_are_those_of_breadth_first_searches(num_hops):
    A = random_graph(40, 2)
    links = torch.tensor([[0, 3, 10], [1, 9, 30]])  # the first is an edge
    out = seal(A, links, num_hops)
    whole, near = out.matrix.to_dense(), neighbors(A)
    for i, (x, y) in enumerate(links.T.tolist()):
        to_x, to_y = hops(near, x), hops(near, y)
        own = (out.batch == i).nonzero().view(-1)
        nodes = out.matrix.col_ids[own].tolist()
        ball = {v for v in near if min(to_x[v], to_y[v]) <= num_hops}
        assert set(nodes) == ball
        inside = {
            v: {u for u in near[v] & ball if {u, v} != {x, y}} for v in ball
        }
        expected = torch.tensor(
            [[float(v in inside[u]) for v in nodes] for u in nodes]
        )
        assert torch.equal(whole[own][:, own], expected)
        to_x, to_y = hops(inside, x, y), hops(inside, y, x)
        for v, label in zip(nodes, out.label[own].tolist(), strict=True):
            if v in (x, y):
                assert label == 1
            elif v not in to_x or v not in to_y:
                assert label == 0
            else:
                d = to_x[v] + to_y[v]
                least = min(to_x[v], to_y[v])
                assert label == 1 + least + (d // 2) * (d // 2 + d % 2 - 1)


CAPS = [(1.0, 3), (0.5, None), (0.7, 2), (0.3, 100), (1.0, 0), (1.0, None)]


@pytest.mark.parametrize(('ratio', 'most'), CAPS)
def test_hops_of_seal_are_capped_for_each_link(ratio, most):
    """Hop by hop: what the next hop of the drawn nodes reaches first."""
    A = random_graph(60, 6)
    near = neighbors(A)
    links = torch.tensor([[0, 3, 10, 3], [1, 9, 30, 9]])
    for key in range(5):
        with program_scope(make_key(key)):
            out = seal(A, links, 3, ratio, most)
        for i, ends in enumerate(links.T.tolist()):
            nodes = set(out.matrix.col_ids[out.batch == i].tolist())
            visited = fringe = set(ends)
            for _ in range(3):
                reached = {u for v in fringe for u in near[v]} - visited
                size = int(ratio * len(reached))
                size = size if most is None else min(size, most)
                visited, fringe = visited | reached, reached & nodes
                assert len(fringe) == size
                nodes -= fringe
            assert nodes == set(ends)
    if (ratio, most) == (1.0, None):
        assert out.matrix.num_edges == seal(A, links, 3).matrix.num_edges


def test_seal_draws_each_subset_alike():
    """2 of the 4 neighbours of a link."""
    pairs = {(0, 1), (0, 2), (0, 3), (1, 4), (1, 5)}
    A, counts = undirected(pairs, 6), Counter()
    for key in range(1200):
        with program_scope(make_key(9, batch=key)):
            out = seal(A, torch.tensor([[0], [1]]), 1, max_nodes_per_hop=2)
        counts[tuple(sorted(out.matrix.col_ids.tolist())[2:])] += 1
    assert set(counts) == set(combinations(range(2, 6), 2))
    assert chi_square_p(counts.values(), [200] * 6) > 0.001


def test_links_of_seal_draw_by_themselves():
    A = random_graph(60, 8)
    links = torch.tensor([[0, 0], [20, 20]])
    with program_scope(make_key(0)):
        out = seal(A, links, 2, 0.5, 6)
    ids = out.matrix.col_ids
    first, second = (set(ids[out.batch == i].tolist()) for i in range(2))
    assert first != second


def test_seal_of_no_links_is_empty():
    out = seal(random_graph(9), torch.empty(2, 0).long(), 2, 0.5, 3)
    assert out.matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            {'ratio_per_hop': 0.0},
            r"'ratio_per_hop' must be in \(0, 1\] \(got 0",
        ),
        ({'ratio_per_hop': 1.1}, r'in \(0, 1\] \(got 1.1\)'),
        ({'max_nodes_per_hop': -1}, r'must not be negative \(got -1\)'),
    ],
)
def test_bad_caps_of_seal_are_named(options, message):
    with pytest.raises(ValueError, match='seal: .*' + message):
        seal(random_graph(5), torch.tensor([[0], [1]]), 1, **options)


def test_seal_refuses_a_link_of_one_node():
    with pytest.raises(ValueError, match='must connect different nodes'):
        seal(random_graph(5), torch.tensor([[1], [1]]), 1)
