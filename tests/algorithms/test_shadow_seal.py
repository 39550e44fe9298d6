"""ShaDow's and SEAL's subgraphs, against plain loops."""

from collections import deque

import pytest
import torch

from tests.algorithms.checks import dense_ppr, neighbors, random_graph
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
    assert parts[0] != parts[2]  # a duplicate draws anew


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


def test_seal_refuses_a_link_of_one_node():
    with pytest.raises(ValueError, match='must connect different nodes'):
        seal(random_graph(5), torch.tensor([[1], [1]]), 1)
