"""LADIES, FastGCN, LABOR and PinSAGE, ready for loaders."""

import pickle

import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from tests.algorithms.graphs import assert_mean, features, skewed_graph
from tests.loader.batches import run
from tests.samplers import graphs
from torch_gsample import (
    FastGCNSampler,
    LaborSampler,
    LadiesSampler,
    PinSAGESampler,
    SparseSample,
    algorithms,
)
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import NodeProbs
from torch_gsample.sparse_sample.extract import by_column

A = skewed_graph()
SEEDS = torch.tensor([0, 3, 17, 30, 39])


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)  # the graphs are tiny


def skewed():
    edge_index = torch.stack(A.edges())
    return Data(edge_index=edge_index, weight=A.values(), num_nodes=40)


def purchases():
    """Users, and the nodes of the graph as the items they bought."""
    data = HeteroData()
    data['user'].num_nodes, data['item'].num_nodes = 9, 40
    ends = torch.stack([torch.arange(90) * 7 % 9, torch.arange(90) * 3 % 38])
    data['user', 'buys', 'item'].edge_index = ends
    data['item', 'by', 'user'].edge_index = ends.flip(0)
    return data


PURCHASES = purchases()
PATH = [('item', 'by', 'user'), ('user', 'buys', 'item')]
TYPED = {
    t: SparseSample.from_edge_index(
        PURCHASES[t].edge_index,
        num_nodes=(PURCHASES[t[0]].num_nodes, PURCHASES[t[2]].num_nodes),
    )
    for t in PATH
}


def pinsage(A, seeds, fanouts, path=None):
    layers = []
    for k in fanouts:
        layers.append(algorithms.pinsage(A, seeds, k, 10, 3, 0.5, path))
        seeds = layers[-1].row()
    return layers


WEIGHTED = {'weight_attr': 'weight'}
KINDS = {
    'ladies': (LadiesSampler, WEIGHTED, algorithms.ladies),
    'ladies as trained': (
        LadiesSampler,
        {'replace': False, 'normalize': True, **WEIGHTED},
        lambda *args: algorithms.ladies(*args, False, normalize=True),
    ),
    'fastgcn': (FastGCNSampler, WEIGHTED, algorithms.fastgcn),
    'labor': (LaborSampler, WEIGHTED, algorithms.labor),
    'labor-1': (
        LaborSampler,
        {'steps': 1, 'normalize': True, **WEIGHTED},
        lambda *args: algorithms.labor(*args, steps=1, normalize=True),
    ),
    'labor-star': (
        LaborSampler,
        {'steps': -1, **WEIGHTED},
        lambda *args: algorithms.labor(*args, steps=-1),
    ),
    'labor weighted': (
        LaborSampler,
        {'weighted': True, 'layer_dependency': True, **WEIGHTED},
        lambda *args: algorithms.labor(
            *args, weighted=True, layer_dependency=True
        ),
    ),
    'pinsage': (PinSAGESampler, {}, pinsage),
    'pinsage metapath': (
        PinSAGESampler,
        {'relations': PURCHASES, 'metapath': PATH},
        lambda A, seeds, fanouts: pinsage(TYPED, seeds, fanouts, PATH),
    ),
}
UNBIASED = {
    'ladies': (LadiesSampler, [20, 20], {'normalization': 'row'}),
    'fastgcn': (FastGCNSampler, [12, 12], {'normalization': 'sym'}),
    'labor': (LaborSampler, [3, 3], {'normalization': 'row'}),
    'labor-2': (LaborSampler, [3, 3], {'steps': 2}),
    'labor weighted': (
        LaborSampler,
        [3, 3],
        {'steps': -1, 'weighted': True, 'normalization': 'sym'},
    ),
}


def sampler_of(name, **options):
    kind, arguments, _ = KINDS[name]
    return kind(skewed(), [4, 6], seed=3, **arguments, **options)


def loader_of(sampler, **options):
    options = {'input_nodes': SEEDS, 'batch_size': 5} | options
    return NeighborLoader(skewed(), sampler=sampler, **options)


def layers_of(batch):
    """The edges of each hop, between nodes of the graph, and weights."""
    sizes = batch.num_sampled_edges
    ends = batch.n_id[batch.edge_index].split(sizes, dim=1)
    return list(zip(ends, batch.edge_weight.split(sizes), strict=True))


@pytest.mark.parametrize('name', KINDS)
def test_batches_equal_the_algorithm_with_their_key(name):
    loader = loader_of(sampler_of(name), batch_size=2)
    graph = A if 'pinsage' not in name else A.with_value(None)
    for epoch in range(2):
        for i, batch in enumerate(loader):
            with program_scope(make_key(3, epoch, i)):
                seeds = SEEDS[2 * i : 2 * i + 2]
                layers = KINDS[name][2](graph, seeds, [4, 6])
            sampled = layers_of(batch)
            assert len(sampled) == len(layers) == 2
            for S, (ends, weight) in zip(layers, sampled, strict=True):
                S = by_column(S)
                assert torch.equal(ends[0], S.edges()[0])
                assert torch.equal(ends[1], S.edges()[1])
                assert torch.equal(weight, S.values())


@pytest.mark.parametrize('name', UNBIASED)
def test_a_loader_estimates_two_layers_without_bias(name):
    kind, sizes, options = UNBIASED[name]
    sampler = kind(skewed(), sizes, seed=5, **WEIGHTED, **options)
    loader, x = loader_of(sampler, prefetch=0), features(40)

    def estimate():
        [batch] = loader
        h = x[batch.n_id]
        sizes = batch.num_sampled_edges
        edges = batch.edge_index.split(sizes, dim=1)
        weights = batch.edge_weight.split(sizes)
        for i in (1, 2):
            row, col = edges[-i]
            message = weights[-i][:, None] * h[row]
            h = torch.zeros_like(h).index_add(0, col, message)
        return h[: batch.batch_size]

    matrix = sampler.matrices[None].to_dense()
    full = (matrix.T @ (matrix.T @ x))[SEEDS]
    assert_mean(torch.stack([estimate() for _ in range(500)]), full)


@pytest.mark.parametrize('name', KINDS)
def test_workers_change_no_batch(name):
    outs = []
    for num_workers in (0, 2):
        torch.manual_seed(2)
        loader = loader_of(
            sampler_of(name),
            batch_size=2,
            shuffle=True,
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
        )
        outs.append([run(loader), run(loader)])
    assert outs[0] == outs[1]
    assert outs[0][0] != outs[0][1]


@pytest.mark.parametrize('name', KINDS)
def test_a_pickled_sampler_samples_the_same(name):
    sampler = sampler_of(name)
    other = pickle.loads(pickle.dumps(sampler))
    assert run(loader_of(other)) == run(loader_of(sampler))
    assert type(sampler).__name__ in repr(other)


def test_normalisations_are_those_of_graph_convolutions():
    edge_index = graphs.random_edges(12, 12, 30)
    data = Data(edge_index=edge_index, num_nodes=12).coalesce()
    data = T.AddSelfLoops()(T.ToUndirected()(data))
    sym = LadiesSampler(data, [1], normalization='sym').matrices[None]
    edge_index, weight = gcn_norm(data.edge_index, add_self_loops=False)
    dense = torch.zeros(12, 12).index_put(tuple(edge_index), weight, True)
    torch.testing.assert_close(sym.to_dense(), dense)
    row = LaborSampler(data, [1], normalization='row').matrices[None]
    torch.testing.assert_close(row.sum(dim=0), torch.ones(12))
    assert torch.equal(row.edge_id.sort().values, torch.arange(data.num_edges))


@pytest.mark.parametrize('normalization', ['row', 'sym'])
@pytest.mark.parametrize('dtype', [torch.float64, torch.int64])
def test_weights_of_zero_stay_zero(normalization, dtype):
    data = Data(
        edge_index=torch.tensor([[1, 2, 0], [0, 0, 1]]),
        weight=torch.tensor([1, 3, 0], dtype=dtype),
        num_nodes=4,
    )
    sampler = LadiesSampler(data, [2], normalization=normalization, **WEIGHTED)
    dense = sampler.matrices[None].to_dense()
    expected = [0.25, 0.75] if normalization == 'row' else [0.5, 0.75**0.5]
    assert dense[1:3, 0].tolist() == pytest.approx(expected)
    assert dense[0, 1] == 0


def test_the_distribution_of_fastgcn_is_computed_once():
    sampler = FastGCNSampler(
        skewed(), [4], normalization='row', share_memory=True, **WEIGHTED
    )
    probs = sampler.program_kwargs['probs']
    value = sampler.matrices[None].value
    expected = A.div(A.sum(dim=0), dim=0).to_dense().square().sum(dim=1)
    torch.testing.assert_close(probs.probs, expected / expected.sum())
    assert probs.cum_weight.is_shared()
    assert value.is_shared()
    only = expected.new_zeros(expected.shape)
    only[0] = 1
    sampler.program_kwargs['probs'] = NodeProbs(only)
    batch = next(iter(loader_of(sampler)))
    assert set(batch.n_id[batch.edge_index[0]].tolist()) == {0}


def test_share_memory_shares_the_relations_of_a_metapath():
    sampler = sampler_of('pinsage metapath', share_memory=True)
    for matrix in sampler.program_kwargs['relations'].values():
        assert matrix.csr.indices.is_shared()


@pytest.mark.parametrize('name', sorted({*KINDS} - {'pinsage metapath'}))
def test_seeds_without_in_edges_are_batches_of_their_own(name):
    kind, options, _ = KINDS[name]
    data = Data(
        edge_index=torch.tensor([[0, 0], [1, 2]]),
        weight=torch.ones(2),
        num_nodes=4,
    )
    sampler = kind(data, [2, 2], seed=0, **options)
    if name == 'pinsage':
        sampler.matrices[None] = sampler.matrices[None].T
    loader = NeighborLoader(
        data, sampler=sampler, input_nodes=torch.tensor([3, 0]), batch_size=2
    )
    [batch] = loader
    assert batch.n_id.tolist() == [3, 0]
    assert batch.num_sampled_edges == [0, 0]


def test_pinsage_weighs_neighbours_by_visits():
    sampler = PinSAGESampler(
        skewed(), [3], num_walks=3000, walk_length=4, restart=0.3, seed=0
    )
    [batch] = loader_of(sampler)
    row, col = batch.edge_index
    total = torch.zeros(5).index_add(0, col, batch.edge_weight)
    torch.testing.assert_close(total, torch.ones(5))
    assert (col.bincount() == 3).all()
    assert 'weight' not in batch
    assert 'e_id' not in batch
    # Nodes of a walk's law: P = D^-1 A from each seed, with restarts.
    step = (A.to_dense() > 0).double()
    step = step / step.sum(dim=1, keepdim=True)
    at = torch.eye(40).double()[SEEDS]
    start, visits = at, 0
    for _ in range(4):
        moved = 0.7 * at @ step
        visits, at = visits + moved, moved + 0.3 * start
    visits[torch.arange(5), SEEDS] = 0
    for i in range(5):
        least = 0.9 * visits[i].topk(3).values[-1]
        assert (visits[i, batch.n_id[row[col == i]]] >= least).all()


@pytest.mark.parametrize('kind', [LadiesSampler, FastGCNSampler, LaborSampler])
@pytest.mark.parametrize(
    ('sizes', 'error', 'message'),
    [
        ([], ValueError, 'must not be empty'),
        ([4, 0], ValueError, r'must be at least 1 \(got 0\)'),
        ([-1], ValueError, r'must be at least 1 \(got -1\)'),
        ([2.5], TypeError, r'must hold integers \(got 2.5\)'),
        (4, TypeError, 'must be a list of integers'),
        (torch.tensor([4]), TypeError, 'must be a list of integers'),
    ],
)
def test_bad_sizes_are_named(kind, sizes, error, message):
    name = 'num_neighbors' if kind is LaborSampler else 'num_sampled'
    with pytest.raises(error, match=f"{kind.__name__}: '{name}' {message}"):
        kind(skewed(), sizes)


@pytest.mark.parametrize(
    ('kind', 'options', 'error', 'message'),
    [
        (LadiesSampler, {'normalization': 'col'}, ValueError, r"\(got 'col'"),
        (LadiesSampler, {'weight_attr': 'w'}, ValueError, "attribute 'w'"),
        (LadiesSampler, {'fanouts': [1]}, TypeError, "'fanouts'"),
        (FastGCNSampler, {'replace': False}, TypeError, "'replace'"),
        (LaborSampler, {'steps': -2}, ValueError, "'steps' must be -1"),
        (LaborSampler, {'weighted': 2}, TypeError, "'weighted'"),
        (LaborSampler, {'layer_dependency': 2}, TypeError, "'layer_depend"),
        (PinSAGESampler, {'metapath': PATH}, ValueError, 'given together'),
        (PinSAGESampler, {'relations': PURCHASES}, ValueError, 'together'),
        (
            PinSAGESampler,
            {'relations': skewed(), 'metapath': PATH},
            ValueError,
            "'relations' must be heterogeneous",
        ),
        (
            PinSAGESampler,
            {'relations': PURCHASES, 'metapath': PATH[:1]},
            ValueError,
            'PinSAGESampler: each relation',
        ),
        (
            PinSAGESampler,
            {'relations': PURCHASES, 'metapath': PATH[::-1]},
            ValueError,
            r"must have the 9 nodes of type 'user' .*\(got 40\)",
        ),
        (LaborSampler, {'steps': 1.0}, TypeError, "'steps' must be an int"),
        (PinSAGESampler, {'num_walks': 0}, ValueError, "'num_walks' must be"),
        (PinSAGESampler, {'walk_length': 0}, ValueError, "'walk_length'"),
        (PinSAGESampler, {'restart': 1}, ValueError, r'in \[0, 1\) \(got 1\)'),
        (PinSAGESampler, {'weight_attr': 'weight'}, TypeError, 'weight_attr'),
    ],
)
def test_bad_options_are_named(kind, options, error, message):
    with pytest.raises(error, match=message):
        kind(skewed(), [2], **options)


def test_negative_weights_cannot_be_normalised():
    data = skewed()
    data.weight[3] = -2.0
    with pytest.raises(ValueError, match=r'must not be negative \(got -2'):
        LadiesSampler(data, [2], normalization='sym', **WEIGHTED)


def test_a_graph_of_many_types_is_refused():
    with pytest.raises(ValueError, match='must have one type of nodes'):
        LadiesSampler(graphs.heterogeneous(), [2])
