"""Samplers of programs on a graph on disk, under our loaders."""

import pytest
import torch
from torch_geometric.data import Data

from tests.fresh import FORKS
from tests.loader.batches import run
from tests.samplers import graphs
from tests.storage import disk
from tests.storage.matrices.test_equality import hetero_data
from torch_gsample import ProgramSampler, algorithms, samplers
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.storage import ChunkedGraph

WEIGHT = {'weight_attr': 'weight'}
SAMPLERS = {
    'ladies': lambda x, **k: samplers.LadiesSampler(
        x, [10, 10], normalization='sym', **WEIGHT, **k
    ),
    'ladies_of_ones': lambda x, **k: samplers.LadiesSampler(
        x, [10, 10], replace=False, normalize=True, **k
    ),
    'fastgcn': lambda x, **k: samplers.FastGCNSampler(
        x, [30, 30], normalization='row', **k
    ),
    'labor': lambda x, **k: samplers.LaborSampler(x, [3, 3], **k),
    'labor_star': lambda x, **k: samplers.LaborSampler(
        x, [3, 3], steps=-1, weighted=True, **WEIGHT, **k
    ),
    'pinsage': lambda x, **k: samplers.PinSAGESampler(x, [3, 3], **k),
    'shadow': lambda x, **k: samplers.ShaDowSampler(x, [3, 3], **k),
    'shadow_ppr': lambda x, **k: samplers.ShaDowSampler(
        x, ppr=3, eps=1e-2, **k
    ),
    'saint': lambda x, **k: samplers.SaintSampler(x, 3, **k),
    'saint_frontier': lambda x, **k: samplers.SaintSampler(
        x, frontier_steps=6, **k
    ),
    'graphsage': lambda x, **k: ProgramSampler(
        x, algorithms.graphsage, [3, 2], **k
    ),
}


@pytest.fixture(scope='module')
def data():
    return disk.homogeneous()


@pytest.fixture(scope='module')
def graph(data, tmp_path_factory):
    path = tmp_path_factory.mktemp('programs') / 'graph'
    out = disk.write(path, data, weighted=True)
    out.write_rows(memory_limit=1 << 28, chunk_bytes=1 << 14)
    out.cache_bytes = 1 << 14
    return out


def loader(data, sampler, **options):
    options = {'batch_size': 20, 'prefetch': 0} | options
    return NeighborLoader(data, sampler=sampler, **options)


@pytest.mark.parametrize('name', SAMPLERS)
def test_batches_are_those_of_a_graph_in_memory(data, graph, name):
    make = SAMPLERS[name]
    want = run(loader(data, make(data, seed=0)))
    assert run(loader(data, make(graph, seed=0))) == want


@pytest.mark.parametrize('name', ['ladies', 'saint', 'graphsage'])
def test_features_come_from_their_store(data, graph, name):
    stores = graphs.as_stores(data)[0], graph
    make = SAMPLERS[name]
    outs = loader(stores, make(stores, seed=0), input_nodes=torch.arange(60))
    wants = loader(data, make(data, seed=0))
    for out, want in zip(outs, wants, strict=True):
        for key in ('x', 'edge_index', 'n_id', 'e_id'):
            assert torch.equal(out[key], want[key])


def test_edges_of_a_program_may_be_on_disk_alone(data, graph):
    features, make = Data(x=data.x), SAMPLERS['ladies']
    wants = loader(data, make(data, seed=0))
    outs = loader(features, make(graph, seed=0))
    for out, want in zip(outs, wants, strict=True):
        for key in ('x', 'edge_index', 'n_id', 'e_id', 'edge_weight'):
            assert torch.equal(out[key], want[key])


@pytest.mark.parametrize('name', ['shadow', 'saint', 'ladies'])
def test_super_batches_are_the_same(data, graph, name):
    make, options = SAMPLERS[name], {'super_batch': 3}
    sampler = make(graph, seed=0, compile=True, options=options)
    want = run(loader(data, make(data, seed=0)))
    assert run(loader(data, sampler)) == want


@pytest.mark.parametrize('spawned', [False, True])
def test_workers_give_the_same(data, graph, spawned):
    make = SAMPLERS['ladies']
    want = run(loader(data, make(data, seed=0)))
    options = {'num_workers': 2}
    if spawned:
        options = {'num_workers': 1, 'multiprocessing_context': FORKS}
    out = loader(data, make(graph, seed=0), **options)
    assert run(out) == want


def test_prefetched_batches_are_the_same(data, graph):
    make = SAMPLERS['labor']
    want = run(loader(data, make(data, seed=0)))
    assert run(loader(data, make(graph, seed=0), prefetch=2)) == want


def test_links_are_sampled_from_disk(data, graph):
    make, outs = SAMPLERS['graphsage'], []
    for source in (data, graph):
        outs.append(
            run(
                LinkNeighborLoader(
                    data,
                    sampler=make(source, seed=0, exclude_seed_edges=True),
                    edge_label_index=data.edge_index[:, :30],
                    neg_sampling='binary',
                    batch_size=10,
                    prefetch=0,
                )
            )
        )
    assert outs[0] == outs[1]


def _two_hops(A, seeds, fanouts):
    layers = []
    for k in fanouts:
        layer = {
            t: A[t][:, seeds[t[2]]].individual_sample(k)
            for t in A
            if t[2] in seeds
        }
        layers.append(layer)
        seeds = {t[0]: layer[t].row() for t in layer}
    return layers


def test_heterogeneous_batches_are_those_of_memory(tmp_path):
    data = hetero_data()
    graph = ChunkedGraph.write(tmp_path / 'g', data, chunk_bytes=2048)
    outs = []
    for source in (data, graph):
        sampler = ProgramSampler(source, _two_hops, [3, 2], seed=0)
        outs.append(run(loader(data, sampler, input_nodes='item')))
    assert outs[0] == outs[1]


def test_metapaths_go_over_relations_on_disk(tmp_path):
    relations = hetero_data()
    graph = ChunkedGraph.write(tmp_path / 'g', relations, chunk_bytes=2048)
    graph.write_rows(memory_limit=1 << 28, chunk_bytes=2048)
    data, outs = graphs.homogeneous(60, 100), []
    for source in (relations, graph):
        sampler = samplers.PinSAGESampler(
            data,
            [3],
            relations=source,
            metapath=[('item', 'of', 'user'), ('user', 'buys', 'item')],
            seed=0,
        )
        outs.append(run(loader(data, sampler)))
    assert outs[0] == outs[1]


def test_an_edge_that_is_not_in_the_graph_is_found(graph):
    def invented(A, seeds):
        out = A[:, seeds].individual_sample(1).compact()
        out._edge_id = torch.full((out.num_edges,), 1 << 20)
        return [out]

    sampler = ProgramSampler(graph, invented, seed=0)
    with pytest.raises(ValueError, match='must be edges of the graph'):
        sampler.sample_from_nodes(graphs.nodes(torch.arange(5)))


@pytest.mark.parametrize('has_ids', [False, True])
def test_an_edge_is_found_by_its_id_and_ends(tmp_path, has_ids):
    data = graphs.homogeneous(9, 60)
    index = data.edge_index
    if not has_ids:
        index = index[:, index[1].argsort(stable=True)]
    stored = ChunkedGraph.write(tmp_path / 'g', index, num_nodes=9)
    assert (stored.meta.relations[0].widths['edge_id'] > 0) == has_ids
    graph = ProgramSampler(stored, algorithms.graphsage, [1]).graph
    pairs = list(map(tuple, index.T.tolist()))
    for i in range(60):
        for row, col in {pairs[i], pairs[i - 1], pairs[i - 7], (3, 4)}:
            found = graph.has_edge(None, row, col, i)
            assert found == ((row, col) == pairs[i])
    assert not graph.has_edge(None, *pairs[0], -1)
    assert not graph.has_edge(None, *pairs[0], 1 << 40)


def test_a_sampler_of_the_package_reads_no_edges_to_check_them(graph):
    reads = []
    for sampler in (
        samplers.LadiesSampler(graph, [10, 10], seed=0),
        ProgramSampler(graph, algorithms.ladies, [10, 10], seed=0),
    ):
        sampler.sample_from_nodes(graphs.nodes(torch.arange(5)))
        plans = sampler.matrices[None].stats()['plans']
        reads.append(sum(plans.values()))
    assert reads[0] < reads[1]


@pytest.mark.parametrize(
    ('make', 'match'),
    [
        (
            lambda g: samplers.SaintSampler(
                g, 2, sample_coverage=1, batch_size=5
            ),
            'sample_coverage',
        ),
        (
            lambda g: ProgramSampler(g, _two_hops, [1], true_negatives=True),
            'true_negatives',
        ),
    ],
)
def test_options_that_need_memory_raise(graph, make, match):
    with pytest.raises(ValueError, match=f"'{match}'.*on disk"):
        make(graph)


def test_weights_and_rows_that_are_not_there_are_named(tmp_path, data):
    graph = disk.write(tmp_path / 'g', data)
    with pytest.raises(ValueError, match="LadiesSampler: 'weight_attr'"):
        samplers.LadiesSampler(graph, [2], **WEIGHT)
    with pytest.raises(ValueError, match=r'graph.write_rows\(\)'):
        samplers.SaintSampler(graph, 2)
