"""Programs return the same bits on a graph on disk as in memory."""

import threading

import pytest
import torch
from torch_geometric.data import HeteroData

from tests.storage.matrices import programs
from torch_gsample import algorithms
from torch_gsample.graph_input import read_graph
from torch_gsample.rng import make_key, program_scope
from torch_gsample.samplers.program.input import read_matrices
from torch_gsample.storage import ChunkedGraph


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('name', programs.PROGRAMS)
def test_programs_equal_those_in_memory(stored, name, weighted):
    A, graph = stored[weighted]
    program = programs.PROGRAMS[name]
    B = graph.matrix(cache_bytes=8 << 12)
    want = programs.run(program, A, weighted)
    for _ in range(2):  # cold, and cached
        programs.assert_same(programs.run(program, B, weighted), want)


@pytest.mark.parametrize('cache_bytes', [0, 4096, 1 << 20])
@pytest.mark.parametrize('engine', ['threads', 'auto'])
def test_caches_and_engines_change_nothing(stored, cache_bytes, engine):
    A, graph = stored[True]
    B = graph.matrix(cache_bytes=cache_bytes, engine=engine)
    program = programs.PROGRAMS['ladies']
    want = programs.run(program, A)
    programs.assert_same(programs.run(program, B), want)


def test_nodes_whose_edges_are_in_several_chunks(tmp_path):
    data = programs.make_data()
    A = programs.in_memory(data, True)
    graph = programs.on_disk(tmp_path / 'g', data, True, chunk_bytes=512)
    starts = graph.meta.relations[0].chunks[:, 0]
    assert len(starts) > len(set(starts.tolist()))
    B = graph.matrix()
    for name in ('all_edges', 'ladies', 'walks', 'sums', 'rows'):
        program = programs.PROGRAMS[name]
        want = programs.run(program, A, True)
        programs.assert_same(programs.run(program, B, True), want)


def test_direct_reads_give_the_same(stored):
    A, graph = stored[False]
    B = ChunkedGraph(graph.path, direct=True).matrix(cache_bytes=0)
    program = programs.PROGRAMS['graphsage']
    want = programs.run(program, A)
    programs.assert_same(programs.run(program, B), want)


def test_threads_share_a_matrix(stored):
    A, graph = stored[True]
    B, failed = graph.matrix(cache_bytes=4096), []
    names = ['ladies', 'graphsage', 'walks', 'sums']
    want = {n: programs.run(programs.PROGRAMS[n], A, True) for n in names}

    def work(name):
        try:
            for _ in range(3):
                out = programs.run(programs.PROGRAMS[name], B, True)
                programs.assert_same(out, want[name])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_matrix_may_omit_its_weights(stored):
    A, _ = stored[False]
    _, graph = stored[True]
    B = graph.matrix(use_weights=False)
    program = programs.PROGRAMS['ladies']
    programs.assert_same(programs.run(program, B), programs.run(program, A))


@pytest.mark.parametrize('num_edges', [0, 1])
def test_graphs_of_no_edge_or_one(tmp_path, num_edges):
    data = programs.make_data(num_edges=num_edges)
    A = programs.in_memory(data, True)
    B = programs.on_disk(tmp_path / 'g', data, True).matrix()
    for name in ('graphsage', 'all_edges', 'walks', 'sums', 'rows'):
        program = programs.PROGRAMS[name]
        want = programs.run(program, A, True)
        programs.assert_same(programs.run(program, B, True), want)


def test_gradients_flow_through_computed_values(stored):
    A, graph = stored[True]
    grads = []
    for matrix in (A, graph.matrix()):
        scale = torch.rand(
            programs.NODES, generator=torch.Generator().manual_seed(0)
        ).requires_grad_()
        part = matrix.mul(scale, dim=1)[:, programs.SEEDS]
        part.sum(dim=0).square().sum().backward()
        grads.append(scale.grad)
    torch.testing.assert_close(*grads)  # sums are in another order


def hetero_data():
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    data['user'].num_nodes, data['item'].num_nodes = 40, 60
    ends = torch.randint(40, (500,), generator=generator)
    items = torch.randint(60, (500,), generator=generator)
    data['user', 'buys', 'item'].edge_index = torch.stack([ends, items])
    order = torch.randperm(500, generator=generator)
    reverse = torch.stack([items, ends])[:, order]
    data['item', 'of', 'user'].edge_index = reverse
    return data


HETERO = {
    'metapath': lambda A: algorithms.pinsage(
        A,
        torch.arange(20),
        3,
        4,
        2,
        metapath=[('item', 'of', 'user'), ('user', 'buys', 'item')],
    ),
    'hgt': lambda A: [
        *algorithms.hgt(
            A,
            {'user': torch.arange(5), 'item': torch.arange(3)},
            {'user': [4, 4], 'item': [3, 3]},
        ).values()
    ],
    'extract': lambda A: [
        A['user', 'buys', 'item'][:, torch.arange(9)].individual_sample(2),
        A['item', 'of', 'user'][:, torch.arange(9)],
    ],
}


@pytest.mark.parametrize('name', HETERO)
def test_heterogeneous_programs_equal_those_in_memory(tmp_path, name):
    data = hetero_data()
    graph = ChunkedGraph.write(tmp_path / 'g', data, chunk_bytes=2048)
    graph.write_rows(memory_limit=1 << 28, chunk_bytes=2048)
    known = read_matrices('test', data, read_graph(data), None)
    results = []
    for matrices in (known, graph.matrices(cache_bytes=1 << 14)):
        with program_scope(make_key(5)):
            results.append(programs.flat(HETERO[name](matrices)))
    programs.assert_same(*results)
