"""What negatives are drawn: uniform, by weight, in time, and never edges."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NegativeSampling

from tests.samplers import graphs
from tests.samplers.graphs import RATES
from tests.samplers.oracle import assert_fits
from torch_gsample import NeighborSampler


def draw(sampler, inputs, sampling, num_batches=1):
    """Returns all negative pairs ``[2, n]`` as nodes of the graph."""
    pairs = []
    hetero = inputs.input_type is not None
    num_pos = inputs.row.numel()
    for epoch in range(num_batches):
        sampler.set_epoch(epoch)
        out = sampler.sample_from_edges(inputs, sampling)
        src, dst = inputs.input_type[::2] if hetero else (None, None)
        node = out.node if hetero else {None: out.node}
        if sampling.is_binary():
            rows, cols = out.metadata[1][:, num_pos:]
        else:
            cols = out.metadata[3].view(num_pos, -1)
            rows = out.metadata[1].view(-1, 1).expand_as(cols).reshape(-1)
            cols = cols.reshape(-1)
        pairs.append(torch.stack([node[src][rows], node[dst][cols]]))
    return torch.cat(pairs, dim=1)


def many(pair=(0, 0), count=500, edge_type=None, **options):
    return graphs.links([pair] * count, edge_type, **options)


def assert_uniform(nodes, among, size):
    weight = torch.zeros(size)
    weight[list(among)] = 1
    assert_fits(torch.bincount(nodes, minlength=size), weight)


@pytest.mark.parametrize('mode', ['binary', 'triplet'])
def test_negatives_are_uniform(mode):
    sampler = NeighborSampler(graphs.homogeneous(), [0], seed=0)
    src, dst = draw(sampler, many(), NegativeSampling(mode, 3), 4)
    assert_uniform(dst, range(30), 30)
    if mode == 'binary':
        assert_uniform(src, range(30), 30)
        # Ends are independent.
        assert_fits(torch.bincount(src * 30 + dst, minlength=900))
    else:
        assert src.unique().tolist() == [0]


def test_typed_negatives_are_uniform_over_their_types():
    sampler = NeighborSampler(graphs.heterogeneous(), [0], seed=0)
    inputs = many(edge_type=RATES)
    src, dst = draw(sampler, inputs, NegativeSampling('binary', 4))
    assert_uniform(src, range(12), 12)
    assert_uniform(dst, range(15), 15)


def test_the_negatives_of_a_seed_edge_are_independent():
    sampler = NeighborSampler(graphs.homogeneous(), [0], seed=0)
    dst = draw(sampler, many(count=3000), NegativeSampling('triplet', 2))[1]
    first, second = dst.view(-1, 2).t()
    assert_fits(torch.bincount(first // 5 * 6 + second // 5, minlength=36))


@pytest.mark.parametrize('mode', ['binary', 'triplet'])
def test_negatives_go_by_weight(mode):
    src_weight = torch.zeros(30)
    src_weight[:3] = torch.tensor([1.0, 2.0, 5.0])
    dst_weight = torch.arange(30.0)
    sampler = NeighborSampler(graphs.homogeneous(), [0], seed=0)
    sampling = NegativeSampling(mode, 4, src_weight, dst_weight)
    src, dst = draw(sampler, many(), sampling)
    assert_fits(torch.bincount(dst, minlength=30), dst_weight)
    if mode == 'binary':
        assert_fits(torch.bincount(src, minlength=30), src_weight)


def test_a_changed_weight_is_seen():
    weight = torch.zeros(30)
    weight[4] = 1
    sampler = NeighborSampler(graphs.homogeneous(), [0], seed=0)
    sampling = NegativeSampling('triplet', 1, dst_weight=weight)
    assert set(draw(sampler, many(), sampling)[1].tolist()) == {4}
    weight[4], weight[9] = 0, 1
    assert set(draw(sampler, many(), sampling)[1].tolist()) == {9}
    weight.numpy()[[9, 2]] = 0, 1  # without a version
    assert set(draw(sampler, many(), sampling)[1].tolist()) == {2}


def test_weights_hold_among_the_nodes_that_are_early_enough():
    data = graphs.homogeneous(time=torch.arange(30))
    weight = torch.arange(30.0)
    sampler = NeighborSampler(data, [0], time_attr='time', seed=0)
    sampling = NegativeSampling('triplet', 4, dst_weight=weight)
    inputs = many(pair=(0, 0), count=500, time=[9] * 500)
    counts = torch.bincount(draw(sampler, inputs, sampling)[1], minlength=30)
    assert_fits(counts, torch.where(data.time <= 9, weight, 0.0))


@pytest.mark.parametrize('mode', ['binary', 'triplet'])
@pytest.mark.parametrize('direction', ['forward', 'backward'])
def test_true_negatives_are_never_edges(mode, direction):
    data = graphs.homogeneous(num_nodes=12, num_edges=70)
    edges = set(map(tuple, data.edge_index.t().tolist()))
    sampler = NeighborSampler(
        data, [0], true_negatives=True, sample_direction=direction, seed=0
    )
    inputs = graphs.links([(i, 1) for i in range(12)] * 20)
    pairs = draw(sampler, inputs, NegativeSampling(mode, 3))
    assert not edges & set(map(tuple, pairs.t().tolist()))
    plain = NeighborSampler(data, [0], seed=0)
    pairs = draw(plain, inputs, NegativeSampling(mode, 3))
    assert edges & set(map(tuple, pairs.t().tolist()))


def test_typed_true_negatives_are_no_edges_of_their_type():
    data = graphs.heterogeneous()
    edges = set(map(tuple, data[RATES].edge_index.t().tolist()))
    sampler = NeighborSampler(data, [0], true_negatives=True, seed=0)
    inputs = graphs.links([(i, 1) for i in range(12)] * 20, RATES)
    pairs = draw(sampler, inputs, NegativeSampling('triplet', 3))
    drawn = set(map(tuple, pairs.t().tolist()))
    assert len(drawn) + len(edges) == 12 * 15  # all that are left
    assert not edges & drawn


def test_an_edge_type_without_edges_has_only_negatives():
    data = graphs.heterogeneous()
    sampler = NeighborSampler(data, [0], true_negatives=True)
    inputs = many(edge_type=('tag', 'new', 'user'))
    dst = draw(sampler, inputs, NegativeSampling('triplet', 4))[1]
    assert_uniform(dst, range(12), 12)


def nearly_saturated(num_nodes, left):
    """Node 0 is linked to all nodes but ``left``; node 1 to none."""
    linked = torch.tensor([v for v in range(num_nodes) if v not in left])
    return Data(
        edge_index=torch.stack([torch.zeros_like(linked), linked]),
        num_nodes=num_nodes,
    )


@pytest.mark.parametrize('left', [[7], [0, 150, 199], range(0, 200, 2)])
def test_true_negatives_are_uniform_over_remaining_nodes(left):
    """Also where all tries of rejection sampling fail."""
    data = nearly_saturated(200, left)
    sampler = NeighborSampler(data, [0], true_negatives=True, seed=0)
    dst = draw(sampler, many(), NegativeSampling('triplet', 4), 3)[1]
    assert_uniform(dst, list(left), 200)


def test_true_negatives_follow_weights_of_remaining_nodes():
    data = nearly_saturated(200, [3, 5, 8])
    weight = torch.full((200,), 1e6)
    weight[[3, 5, 8]] = torch.tensor([1.0, 2.0, 0.0])
    sampler = NeighborSampler(data, [0], true_negatives=True, seed=0)
    sampling = NegativeSampling('triplet', 4, dst_weight=weight)
    counts = torch.bincount(draw(sampler, many(), sampling)[1], minlength=200)
    assert_fits(counts, torch.where(weight < 1e6, weight, 0.0))


def test_true_negatives_hold_among_the_nodes_that_are_early_enough():
    data = nearly_saturated(40, [3, 5, 30])
    data.time = torch.arange(40)
    sampler = NeighborSampler(
        data, [0], true_negatives=True, time_attr='time', seed=0
    )
    inputs = many(time=[20] * 500)
    dst = draw(sampler, inputs, NegativeSampling('triplet', 2))[1]
    assert_uniform(dst, [3, 5], 40)
    with pytest.raises(ValueError, match='no negative destination'):
        draw(sampler, many(time=[2] * 500), NegativeSampling('triplet', 2))


def test_a_source_that_is_linked_to_all_is_named():
    data = nearly_saturated(20, [])
    sampler = NeighborSampler(data, [0], true_negatives=True)
    with pytest.raises(ValueError, match=r'for source 0 of edge type None'):
        draw(sampler, many(), NegativeSampling('triplet'))


def test_binary_negatives_avoid_a_source_that_is_linked_to_all():
    data = nearly_saturated(20, [])
    sampler = NeighborSampler(data, [0], true_negatives=True, seed=0)
    src, dst = draw(sampler, many(), NegativeSampling('binary', 4))
    assert_uniform(src, range(1, 20), 20)
    assert_uniform(dst, range(20), 20)


def test_a_complete_graph_has_no_negatives():
    pairs = torch.cartesian_prod(torch.arange(4), torch.arange(4)).t()
    data = Data(edge_index=pairs, num_nodes=4)
    sampler = NeighborSampler(data, [0], true_negatives=True)
    with pytest.raises(ValueError, match='no negative destination'):
        draw(sampler, many(), NegativeSampling('binary'))


def test_negatives_do_not_depend_on_the_rest_of_a_batch():
    """With one key an epoch, a seed edge has its negatives to itself."""
    sampler = NeighborSampler(
        graphs.homogeneous(), [0], rng_scope='epoch', seed=0
    )
    sampling = NegativeSampling('binary', 2)
    pairs = [(i, 1) for i in range(8)]
    all_at_once = draw(
        sampler, graphs.links(pairs, input_id=range(8)), sampling
    ).view(2, 2, 8)
    for ids in ([5], [2, 7, 0]):
        inputs = graphs.links([pairs[i] for i in ids], input_id=ids)
        part = draw(sampler, inputs, sampling).view(2, 2, len(ids))
        assert torch.equal(part, all_at_once[:, :, ids])


@pytest.mark.parametrize(
    ('weight', 'text'),
    [
        (torch.ones(29), r"'dst_weight' must have 30 elements.*got 29"),
        (torch.zeros(30), r"'dst_weight' must not be 0 for all"),
        (-torch.ones(30), r"'dst_weight' must be finite and not negative"),
        (torch.full((30,), float('nan')), r"'dst_weight' must be finite"),
    ],
)
def test_bad_weights_are_named(weight, text):
    sampler = NeighborSampler(graphs.homogeneous(), [0])
    sampling = NegativeSampling('triplet', 1, dst_weight=weight)
    with pytest.raises(ValueError, match=text):
        draw(sampler, many(), sampling)


def test_types_without_nodes_have_no_negatives():
    data = HeteroData(a={'num_nodes': 3}, b={'num_nodes': 0})
    sampler = NeighborSampler(data, [])
    inputs = graphs.links(torch.empty(0, 2).long(), ('a', 'to', 'b'))
    out = sampler.sample_from_edges(inputs, NegativeSampling('triplet'))
    assert out.node['b'].numel() == 0


def pairs_that_are_none(data):
    size = data.num_nodes
    weight = torch.ones(size, size)
    weight[tuple(data.edge_index)] = 0
    return weight.flatten()


def test_true_negatives_are_uniform_in_the_source_then_in_its_non_neighbours():
    data = graphs.homogeneous(num_nodes=6, num_edges=40)
    weight = pairs_that_are_none(data).view(6, 6)
    weight = weight / weight.sum(1, keepdim=True).clamp(min=1)
    sampler = NeighborSampler(data, [0], true_negatives=True, seed=0)
    src, dst = draw(sampler, many(), NegativeSampling('binary', 20))
    assert_fits((src * 6 + dst).bincount(minlength=36), weight.flatten())


@pytest.mark.parametrize(('size', 'edges'), [(6, 40), (6, 90), (30, 150)])
def test_uniform_negatives_are_uniform_over_the_pairs_without_an_edge(
    size, edges
):
    """Parallel edges are one pair; sources without a non-edge never come."""
    data = graphs.homogeneous(num_nodes=size, num_edges=edges)
    weight = pairs_that_are_none(data)
    sampler = NeighborSampler(data, [0], true_negatives='uniform', seed=0)
    src, dst = draw(sampler, many(), NegativeSampling('binary', 40))
    assert_fits((src * size + dst).bincount(minlength=size**2), weight)


def test_uniform_negatives_of_a_relation_are_of_its_types():
    data = graphs.heterogeneous()
    weight = torch.ones(12, 15)
    weight[tuple(data[RATES].edge_index)] = 0
    sampler = NeighborSampler(data, [0], true_negatives='uniform', seed=0)
    inputs = many(edge_type=RATES)
    src, dst = draw(sampler, inputs, NegativeSampling('binary', 20))
    assert_fits((src * 15 + dst).bincount(minlength=180), weight.flatten())


def test_uniform_negatives_of_a_triplet_are_those_of_its_source():
    data = graphs.homogeneous()
    outs = [
        draw(
            NeighborSampler(data, [0], true_negatives=kind, seed=0),
            *(many(), NegativeSampling('triplet', 2)),
        )
        for kind in (True, 'uniform')
    ]
    assert torch.equal(*outs)


def test_where_all_pairs_are_edges_there_is_no_uniform_negative():
    pairs = torch.cartesian_prod(torch.arange(3), torch.arange(3)).t()
    data = Data(edge_index=pairs, num_nodes=3)
    sampler = NeighborSampler(data, [0], true_negatives='uniform', seed=0)
    with pytest.raises(ValueError, match='all pairs of nodes are edges'):
        draw(sampler, many(count=2), NegativeSampling('binary'))


def test_uniform_negatives_take_no_weights_and_no_times():
    data = graphs.homogeneous(time=torch.arange(30))
    sampler = NeighborSampler(data, [0], true_negatives='uniform', seed=0)
    weighted = NegativeSampling('binary', 1, src_weight=torch.ones(30))
    with pytest.raises(ValueError, match="'src_weight' must be None"):
        draw(sampler, many(), weighted)
    sampler = NeighborSampler(
        data, [0], true_negatives='uniform', time_attr='time', seed=0
    )
    timed = many(count=2, time=torch.tensor([9, 9]))
    with pytest.raises(ValueError, match='needs nodes without times'):
        draw(sampler, timed, NegativeSampling('binary'))


def timed_graph():
    """A node's edges: seen at time 5, at 2 and 9, and at 9 alone."""
    edges = [(0, 1, 5), (0, 2, 9), (0, 2, 2), (0, 3, 9), (4, 1, 0), (4, 2, 0)]
    src, dst, time = torch.tensor(edges + [(4, 0, 0), (4, 3, 0)]).t()
    return Data(edge_index=torch.stack([src, dst]), time=time, num_nodes=5)


def timed_sampler(kind='unseen', **options):
    return NeighborSampler(
        timed_graph(), [0], time_attr='time', true_negatives=kind, **options
    )


@pytest.mark.parametrize(
    ('time', 'seen'), [(1, []), (2, [2]), (5, [1, 2]), (9, [1, 2, 3])]
)
@pytest.mark.parametrize('weighted', [False, True])
def test_unseen_negatives_are_no_edges_yet(time, seen, weighted):
    weight = torch.ones(5)
    given = torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0]) if weighted else None
    weight = weight if given is None else given.clone()
    weight[seen] = 0
    count = 400
    inputs = many((0, 4), count, time=torch.full((count,), time))
    sampling = NegativeSampling('triplet', 8, dst_weight=given)
    sampler = timed_sampler(seed=0)
    dst = draw(sampler, inputs, sampling)[1]
    assert_fits(dst.bincount(minlength=5), weight)


def test_the_sources_of_unseen_negatives_have_some():
    """Node 4 has seen all others; of itself one in thousands is drawn."""
    weight = torch.tensor([1.0, 1.0, 1.0, 1.0, 1e-6])
    inputs = many((0, 1), 300, time=torch.full((300,), 4))
    sampling = NegativeSampling('binary', 2, dst_weight=weight)
    src, dst = draw(timed_sampler(seed=0), inputs, sampling)
    assert set(dst[src == 4].tolist()) == {4}  # found by listing
    assert set(dst[src == 0].tolist()) == {0, 1, 3}
    assert (src == 4).sum() > 80


def test_unseen_negatives_of_a_batch_are_unseen():
    from torch_gsample import NegativeSampling as Ours

    time = torch.tensor([4, 4, 4, 4])
    inputs = graphs.links([(0, 1), (0, 2), (1, 3), (0, 4)], time=time)
    out = timed_sampler(seed=0).sample_from_edges(
        inputs, Ours('triplet', 60, among='batch')
    )
    dst = out.node[out.metadata[3]]
    found = [sorted(set(row.tolist())) for row in dst]
    assert found == [[3, 4], [1, 3, 4], [1, 2, 4], [1, 3]]


def test_unseen_negatives_need_times():
    sampler = NeighborSampler(
        graphs.homogeneous(), [0], true_negatives='uniform', seed=0
    )
    assert sampler.true_negatives == 'uniform'
    with pytest.raises(ValueError, match="'unseen' needs times"):
        NeighborSampler(graphs.homogeneous(), [0], true_negatives='unseen')
    with pytest.raises(ValueError, match='needs times of the seed edges'):
        draw(timed_sampler(), many((0, 1), 3), NegativeSampling('triplet'))
