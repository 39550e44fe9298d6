"""Negatives that are given, of the batch, of sets, or shared."""

import pytest
import torch
from torch_geometric.sampler import NegativeSampling as PyGSampling

from tests.samplers import graphs
from tests.samplers.graphs import RATES
from tests.samplers.oracle import assert_fits
from tests.samplers.test_negatives import draw
from torch_gsample import NegativeSampling, NeighborSampler, ProgramSampler
from torch_gsample.algorithms import graphsage
from torch_gsample.loader import LinkNeighborLoader

MODES = ('binary', 'triplet')
DATA = graphs.homogeneous()
PAIRS = [(0, 3), (1, 4), (2, 5), (7, 3)]
EDGES = graphs.links(PAIRS)


def sampler(data=DATA, **options):
    return NeighborSampler(data, [0], seed=0, **options)


def by_edge(pairs, sampling, num_pos):
    """Sources and destinations of the negatives of each seed edge."""
    src, dst = pairs
    rounds = len(src) // num_pos
    if sampling.is_triplet():
        return src.view(num_pos, rounds), dst.view(num_pos, rounds)
    return src.view(rounds, num_pos).t(), dst.view(rounds, num_pos).t()


@pytest.mark.parametrize('mode', MODES)
def test_negatives_equal_those_of_the_record_of_pyg(mode):
    args = mode, 3, None, torch.arange(30.0)
    ours, pygs = (
        draw(sampler(), EDGES, cls(*args))
        for cls in (NegativeSampling, PyGSampling)
    )
    assert torch.equal(ours, pygs)


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('amount', [0, 1, 2])
def test_given_negatives_come_first(mode, amount):
    given = torch.tensor([[9, 8], [7, 6], [5, 4], [3, 2]])
    sampling = NegativeSampling(mode, amount, given=given)
    src, dst = by_edge(draw(sampler(), EDGES, sampling), sampling, 4)
    assert dst[:, :2].tolist() == given.tolist()
    assert src[:, :2].tolist() == [[0, 0], [1, 1], [2, 2], [7, 7]]
    assert dst.size(1) == 2 + amount


def test_given_negatives_are_labelled_and_go_by_the_id_of_the_edge():
    given = torch.arange(20).view(20, 1) % 15
    data = graphs.heterogeneous()
    edges = data[RATES].edge_index[:, :20]
    loader = LinkNeighborLoader(
        data,
        graphs.each(data, [2]),
        (RATES, edges),
        neg_sampling=NegativeSampling('binary', 0, given=given),
        batch_size=6,
        shuffle=True,
        seed=1,
    )
    for batch in loader:
        store = batch[RATES]
        count = len(store.input_id)
        assert store.edge_label.tolist() == [1] * count + [0] * count
        src, dst = store.edge_label_index[:, count:]
        ends = batch['user'].n_id[src], batch['item'].n_id[dst]
        assert torch.equal(ends[0], edges[0, store.input_id])
        assert torch.equal(ends[1], given[store.input_id, 0])


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('true_negatives', [False, True])
def test_negatives_of_the_batch_are_those_of_other_edges(mode, true_negatives):
    """Uniform over the other places, as often as a destination has one."""
    count = 40
    src, dst = torch.arange(count) % 30, torch.arange(count) % 6
    inputs = graphs.links(list(zip(src.tolist(), dst.tolist(), strict=True)))
    sampling = NegativeSampling(mode, 20, among='batch')
    own = sampler(true_negatives=true_negatives)
    pairs = draw(own, inputs, sampling, 40)
    allowed = torch.ones(30, 6)
    if true_negatives:
        graph = torch.zeros(30, 30)
        graph[tuple(DATA.edge_index)] = 1
        allowed -= graph[:, :6]
    weight = torch.zeros(30, 6)
    for s, d in zip(src.tolist(), dst.tolist(), strict=True):
        # Destinations 0 to 3 have a place more than 4 and 5.
        chances = allowed[s] * torch.tensor([7.0, 7, 7, 7, 6, 6])
        chances[d] = 0
        weight[s] += chances / chances.sum()
    counts = (pairs[0] * 6 + pairs[1]).bincount(minlength=180)
    assert_fits(counts, weight.flatten())


def test_a_rare_negative_of_the_batch_is_found():
    """One of 400 places: 16 rounds of rejection would miss it."""
    inputs = graphs.links([(0, 3)] * 399 + [(1, 4)])
    sampling = NegativeSampling('triplet', 1, among='batch')
    dst = draw(sampler(), inputs, sampling)[1]
    assert dst.tolist() == [4] * 399 + [3]


def test_negatives_of_the_batch_exist_at_the_time_of_their_edge():
    data = graphs.homogeneous(time=torch.arange(30))
    own = NeighborSampler(data, [0], time_attr='time', seed=0)
    time = torch.tensor([6, 9, 9, 29])
    inputs = graphs.links([(0, 5), (0, 8), (0, 9), (0, 20)], time=time)
    sampling = NegativeSampling('triplet', 30, among='batch')
    out = own.sample_from_edges(inputs, sampling)
    dst = out.node[out.metadata[3]]
    found = [sorted(set(row.tolist())) for row in dst[1:]]
    assert found == [[5, 9], [5, 8], [5, 8, 9]]
    assert int(dst[0].max()) <= 6  # of the graph


@pytest.mark.parametrize('mode', MODES)
def test_negatives_of_a_set_are_uniform_in_it(mode):
    indptr = torch.tensor([0, 3, 4, *[8] * 29])
    sets = indptr, torch.tensor([4, 5, 6, 11, 7, 7, 8, 9])
    inputs = graphs.links([(0, 3), (1, 3), (2, 3)] * 300)
    sampling = NegativeSampling(mode, 8, among=sets)
    src, dst = draw(sampler(), inputs, sampling)
    weight = torch.zeros(3, 30)
    weight[0, 4:7] = 4
    weight[1, 11] = 12
    weight[2, 7:10] = torch.tensor([6.0, 3, 3])
    counts = (src * 30 + dst).bincount(minlength=90)
    assert_fits(counts, weight.flatten())


@pytest.mark.parametrize('mode', MODES)
def test_shared_negatives_are_those_of_each_edge(mode):
    sampling = NegativeSampling(mode, 5, shared=True)
    own = sampler()
    drawn = []
    for epoch in range(300):
        own.set_epoch(epoch)
        out = own.sample_from_edges(EDGES, sampling)
        rows = (
            out.metadata[3]
            if mode == 'triplet'
            else out.metadata[1][1, 4:].view(5, 4).t()
        )
        dst = out.node[rows]
        assert (dst == dst[0]).all()
        drawn.append(dst[0])
    assert_fits(torch.cat(drawn).bincount(minlength=30))


def test_programs_take_them_as_well():
    own = ProgramSampler(DATA, graphsage, [0], seed=0)
    given = torch.tensor([[9], [8], [7], [6]])
    sampling = NegativeSampling('triplet', 2, given=given, among='batch')
    dst = draw(own, EDGES, sampling)[1]
    assert dst.view(4, 3)[:, 0].tolist() == [9, 8, 7, 6]
    others = dst.view(4, 3)[:, 1:].tolist()
    assert all(
        pair[1] not in row and set(row) <= {3, 4, 5}
        for pair, row in zip(PAIRS, others, strict=True)
    )


@pytest.mark.parametrize(
    ('options', 'error', 'text'),
    [
        ({'given': [[1]]}, TypeError, "'given' must be an int32 or int64"),
        ({'given': torch.ones(4, 1)}, TypeError, "'given' must be an int32"),
        (
            {'given': torch.ones(4).long()},
            ValueError,
            r'\[num_seed_edges, m\]',
        ),
        ({'amount': 0}, ValueError, "'amount' must be positive"),
        ({'among': 'all'}, ValueError, "'among' must be 'graph', 'batch'"),
        (
            {'among': (torch.tensor([0, 2]), torch.tensor([1]))},
            ValueError,
            "'indptr' must ascend from 0 to the 1 elements",
        ),
        (
            {'among': 'batch', 'shared': True},
            ValueError,
            "'shared' needs among='graph' \\(got 'batch'",
        ),
        (
            {'among': 'batch', 'dst_weight': torch.ones(30)},
            ValueError,
            "'dst_weight' needs among='graph'",
        ),
        (
            {'amount': 1.5, 'shared': True},
            ValueError,
            "'amount' must be an integer",
        ),
    ],
)
def test_wrong_negatives_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        NegativeSampling('binary', **options)


@pytest.mark.parametrize(
    ('options', 'error', 'text'),
    [
        (
            {'given': torch.ones(3, 1).long()},
            IndexError,
            r"'given' must be in",
        ),
        ({'given': torch.full((4, 1), 30)}, IndexError, r'\[0, 30\)'),
        (
            {'among': (torch.tensor([0, 1]), torch.tensor([1]))},
            IndexError,
            "'indptr' must have 9 elements or more, for source 7",
        ),
        (
            {'among': (torch.tensor([0, 1, *[1] * 29]), torch.tensor([1]))},
            ValueError,
            'got none for source 1',
        ),
    ],
)
def test_negatives_that_do_not_fit_the_graph_are_refused(options, error, text):
    sampling = NegativeSampling('triplet', **options)
    with pytest.raises(error, match=text):
        sampler().sample_from_edges(EDGES, sampling)


@pytest.mark.parametrize('true_negatives', [False, True])
def test_where_a_batch_has_no_other_destination_the_graph_has(true_negatives):
    sampling = NegativeSampling('triplet', 200, among='batch')
    own = sampler(true_negatives=true_negatives)
    dst = draw(own, graphs.links([(5, 3), (9, 3)]), sampling)[1]
    plain = draw(
        own, graphs.links([(5, 3), (9, 3)]), NegativeSampling('triplet', 200)
    )[1]
    assert torch.equal(dst, plain)


def test_shared_negatives_may_be_edges_and_have_no_times():
    sampling = NegativeSampling('triplet', 1, shared=True)
    with pytest.raises(ValueError, match='needs true_negatives=False'):
        draw(sampler(true_negatives=True), EDGES, sampling)
    data = graphs.homogeneous(time=torch.arange(30))
    timed = graphs.links([(0, 3)], time=torch.tensor([9]))
    own = NeighborSampler(data, [0], time_attr='time', seed=0)
    with pytest.raises(ValueError, match='needs nodes without times'):
        own.sample_from_edges(timed, sampling)


def test_a_loader_counts_the_given_negatives():
    with pytest.raises(ValueError, match='one row for each of 150 seed edges'):
        LinkNeighborLoader(
            DATA,
            [2],
            DATA.edge_index,
            neg_sampling=NegativeSampling(
                'triplet', given=torch.ones(9, 1).long()
            ),
        )
