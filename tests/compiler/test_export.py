"""Exported programs, loaded in another process, draw the same samples."""

import json
import pickle
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import get_worker_info
from torch_geometric.data import Data
from torch_geometric.sampler import NodeSamplerInput

import torch_gsample as gsample
from tests.algorithms.graphs import features, skewed_graph
from tests.compiler.programs import GCN_BS, PASS, PROGRAMS, graph
from tests.compiler.run_exported import ids, plain, run, runs, sizes_of
from tests.compiler.test_programs import assert_same
from torch_gsample import SparseSample, algorithms
from torch_gsample.compiler.exported import capture, file
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import make_key, program_scope
from torch_gsample.torch_private import dynamo

A = graph()
TOP = Path(__file__).parents[2]


def data_of(A: SparseSample) -> Data:
    return Data(edge_index=torch.stack(A.coo()), num_nodes=A.num_cols)


@pytest.fixture(scope='module')
def exported(tmp_path_factory) -> tuple[Path, list[float]]:
    """All programs, exported, and the processor seconds of each."""
    folder, seconds = tmp_path_factory.mktemp('exported'), []
    for name, program in PROGRAMS.items():
        start = time.process_time()
        gsample.export(program, A, ids(9), path=folder / f'{name}.gsp')
        seconds.append(time.process_time() - start)
    return folder, seconds


@pytest.fixture(scope='module')
def folder(exported) -> Path:
    return exported[0]


@pytest.fixture(scope='module')
def elsewhere(folder) -> dict:
    """What another process saw of them."""
    data = data_of(A)
    B = gsample.ProgramSampler(data, algorithms.shadow, seed=3).matrices[None]
    path = folder / 'sampler'
    gsample.export(algorithms.ladies, B, ids(9), [4, 4], path=path)
    program = gsample.load_program(path)
    sampler = gsample.ProgramSampler(data, program, seed=3)
    (folder / 'sampler.pkl').write_bytes(pickle.dumps(sampler))
    done = subprocess.run(
        [sys.executable, '-m', 'tests.compiler.run_exported', str(folder)],
        capture_output=True,
        text=True,
        cwd=TOP,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    return {**report, 'results': torch.load(folder / 'results.pt')}


def load(program, *args, path, **kwargs):
    gsample.export(program, *args, path=path, **kwargs)
    return gsample.load_program(path)


@pytest.mark.parametrize('name', PROGRAMS)
def test_another_process_draws_the_samples_of_eager_programs(name, elsewhere):
    # A graph of its own, which keeps its layouts.
    eager = plain(runs(PROGRAMS[name], graph(), sizes_of(name)))
    for expected, found in zip(eager, elsewhere['results'][name], strict=True):
        assert_same(expected, found)


def test_a_sampler_that_is_pickled_samples_elsewhere(elsewhere):
    sampler = gsample.LadiesSampler(data_of(A), [4, 4], seed=3)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, ids(5)))
    expected = [out.node, out.row, out.col, out.edge]
    for x, y in zip(expected, elsewhere['results']['sampler'], strict=True):
        assert torch.equal(x, y)


def test_loading_captures_nothing(elsewhere):
    assert elsewhere['frames'] == 0
    assert elsewhere['modules'] == []


def test_loading_is_quicker_than_a_capture(exported, elsewhere):
    # About 15 ms; a capture takes a second and more.
    capture = statistics.median(exported[1])
    assert statistics.median(elsewhere['seconds'].values()) < capture / 4
    assert elsewhere['unpickled'] < capture / 4


def frames(batch):
    """Notes how many frames Dynamo captured in this process."""
    counters = torch._dynamo.utils.counters['frames']
    batch.frames = sum(counters.values()), get_worker_info().id
    return batch


def test_workers_that_are_spawned_capture_nothing(tmp_path):
    data = data_of(A)
    plain = gsample.ProgramSampler(data, algorithms.ladies, [4, 4], seed=3)
    B = plain.matrices[None]
    program = load(algorithms.ladies, B, ids(9), [4, 4], path=tmp_path / 'p')
    sampler = gsample.ProgramSampler(data, program, seed=3, share_memory=True)
    spawned = NeighborLoader(
        data,
        sampler=sampler,
        batch_size=10,
        num_workers=1,
        multiprocessing_context='spawn',
        transform=frames,
        filter_per_worker=True,
    )
    expected = NeighborLoader(data, sampler=plain, batch_size=10)
    for batch, known in zip(spawned, expected, strict=True):
        assert batch.frames == (0, 0)
        assert torch.equal(batch.n_id, known.n_id)
        assert torch.equal(batch.e_id, known.e_id)
        assert torch.equal(batch.edge_weight, known.edge_weight)


def test_values_are_those_of_the_compiled_program_bit_by_bit(tmp_path):
    options = {'layout': 'compact'}
    fast = gsample.compile(PROGRAMS['kgcn'], **options)
    fast(A, ids(9))
    loaded = load(fast, A, ids(9), path=tmp_path / 'p', options=options)
    assert_equal(runs(fast, A), runs(loaded, A))


def assert_equal(first, second):
    first, second = plain(first), plain(second)
    if isinstance(first, list):
        for x, y in zip(first, second, strict=True):
            assert_equal(x, y)
    else:
        assert torch.equal(first, second)


def test_gradients_are_those_of_the_program(folder):
    loaded = gsample.load_program(folder / 'pass.gsp')
    x, grads = features(40), {}
    weights = {
        **{f'PASS.{k}': p for k, p in PASS.named_parameters()},
        **{k: v for k, v in loaded.tensors.items() if v.requires_grad},
    }
    PASS.zero_grad()
    for program in (PROGRAMS['pass'], loaded):
        first, second = run(program, A, 9, True)
        ((first.T @ x).square().sum() + (second.T @ x).sum()).backward()
    own = dict(PASS.named_parameters())
    grads = {k: p.grad for k, p in weights.items()}
    assert len(grads) == 3
    for name, p in own.items():
        assert p.grad.abs().sum() > 0
        torch.testing.assert_close(grads[f'PASS.{name}'], p.grad)


def test_gradients_of_arguments_are_those_of_the_program(tmp_path):
    def program(A, seeds, x):
        part = A[:, seeds].mul(x[seeds], dim=0).div(x, dim=1)
        part = part.div(part.sum(dim=0), dim=0)
        return part * part.individual_sample(3).sum(dim=0).square().sum()

    def gradients(program):
        value = A.values().clone().requires_grad_()
        x = torch.linspace(1, 2, 40, dtype=torch.float64, requires_grad=True)
        out = run(lambda A, s: program(A, s, x), A.with_value(value), 9, True)
        out.values().square().sum().backward()
        return value.grad, x.grad

    def seen(*args):
        loaded.append(load(program, *args, path=tmp_path / 'p'))
        return program(*args)

    loaded: list = []
    expected = gradients(seen)
    for x, y in zip(expected, gradients(loaded[0]), strict=True):
        assert x.abs().sum() > 0
        torch.testing.assert_close(x, y)


def test_tensors_of_one_name_are_two(tmp_path, monkeypatch):
    monkeypatch.setattr(capture, '_spelled', lambda name: 'x')

    def part(x):
        return lambda y: x * y

    first, second = part(torch.ones(3)), part(torch.arange(3.0))
    with torch.no_grad():
        loaded = load(
            lambda y: first(y) + second(y) + torch.tensor([0.5, 1, 2]),
            torch.ones(3, requires_grad=True),
            path=tmp_path / 'p',
        )
    assert list(loaded.tensors) == ['x', "x'"]
    assert loaded(torch.ones(3)).tolist() == [1.5, 3, 5]


def test_a_program_reads_the_tensors_that_it_is_given(folder):
    path, name = folder / 'gcn_bs.gsp', 'GCN_BS.log_weight'
    kept = gsample.load_program(path)
    weight = torch.linspace(-3, 3, A.num_edges).to(GCN_BS.log_weight.dtype)
    given = gsample.load_program(path, tensors={name: weight})
    before = run(given, A, 9, True)
    kept.tensors[name].copy_(weight)  # changes in place count
    assert_equal(before, run(kept, A, 9, True))
    copied = pickle.loads(pickle.dumps(kept))
    assert_equal(before, run(copied, A, 9, True))
    weight.zero_()
    assert_equal(run(given, A, 9, True), run(PROGRAMS['gcn_bs'], A, 9, True))
    for tensors, text in (
        ({'weight': weight}, r"must be of \['GCN_BS.log_weight'\]"),
        ({name: weight.double()}, 'must have dtype torch.float32'),
        ({name: weight[1:]}, r'must have shape \[267\] \(got \[266\]\)'),
    ):
        with pytest.raises(ValueError, match=text):
            gsample.load_program(path, tensors=tensors)


def test_values_of_a_graph_that_changes_are_computed_again(folder):
    loaded = gsample.load_program(folder / 'fastgcn.gsp')
    B = A.with_value(A.values().clone())
    before = run(loaded, B, 9, True)
    B.value[::2] *= 50
    after = run(loaded, B, 9, True)
    assert_same(after, run(PROGRAMS['fastgcn'], B, 9, True))
    assert not torch.equal(before[0].edge_id, after[0].edge_id)
    loaded.forget()
    assert_equal(after, run(loaded, B, 9, True))


def test_threads_run_one_program(folder):
    loaded = gsample.load_program(folder / 'fastgcn.gsp')
    expected, got = runs(loaded, A, range(1, 9)), {}

    def work(size):
        with program_scope(make_key(size)):
            loaded(A, ids(size))
            got[size] = loaded(A, ids(size))

    threads = [threading.Thread(target=work, args=[i]) for i in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for size in range(1, 9):
        assert_equal(got[size], expected[2 * size - 1])


@pytest.mark.parametrize('name', ['fastgcn', 'saint_walk'])
def test_dynamic_exports_run_on_graphs_of_other_sizes(name, tmp_path):
    path, program = tmp_path / 'p', PROGRAMS[name]
    loaded = load(program, A, ids(9), path=path, dynamic=True)
    for B in (A, skewed_graph(60, 500), skewed_graph(45, 100)):
        eager = runs(program, skewed_copy(B), (9, 1, 2))
        for expected, found in zip(
            eager, runs(loaded, B, (9, 1, 2)), strict=True
        ):
            assert_same(expected, found)


def skewed_copy(B: SparseSample) -> SparseSample:
    """The same matrix, without the layouts that programs add to it."""
    return SparseSample(B._csc, None, B.shape, B.value, B._edge_id)


def test_size_assumptions_of_a_capture_are_checked(tmp_path):
    def program(A, seeds, x):
        return A.mul(x, dim=1)[:, seeds].individual_sample(2)

    x = torch.rand(40, dtype=torch.float64)
    path = tmp_path / 'p'
    loaded = load(program, A, ids(9), x, path=path, dynamic=True)
    B = skewed_graph(60, 500)
    y = torch.rand(60, dtype=torch.float64)
    with program_scope(make_key(1)):
        expected = program(B, ids(5), y)
    with program_scope(make_key(1)):
        assert_same([loaded(B, ids(5), y)], [expected])
    with pytest.raises(ValueError, match=r'sizes must satisfy .*x.shape\[0\]'):
        loaded(B, ids(5), x)


def test_size_assumptions_of_a_capture_are_known():
    found = {}

    def look(gm, example_inputs):
        for node in gm.graph.nodes:
            if node.op == 'placeholder':
                name = dynamo.name_of_source(node)
                found[name] = node.meta['example_value']
        return gm.forward

    def program(x, y):
        return x.sum() + y.sum() if len(x) == 2 * len(y) else x

    args = torch.ones(6), torch.ones(3)
    for x in args:
        dynamo.maybe_dynamic(x)
    torch.compile(program, backend=look, fullgraph=True)(*args)
    examples = found["L['x']"], found["L['y']"]
    x, y = (dynamo.expression_of(e.shape[0]) for e in examples)
    rules = {str(rule) for rule in dynamo.rules_of_sizes(examples)}
    assert rules >= {f'Eq({x}, 2*{y})', f'{x} >= 4', f'{y} >= 2'}


def test_files_of_this_version_stay_readable(tmp_path, request):
    """``export_golden.json`` is a header but for schemas, which torch has."""

    def program(A, seeds, fanout):
        part = A[:, seeds].individual_sample(fanout)
        return [part.values() * 2 + part.values(), part.num_edges]

    ends = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1])
    A = SparseSample.from_csc(*ends, torch.tensor([1.0, 2.0, 3.0]))
    path, seeds = tmp_path / 'p', torch.tensor([0])
    gsample.export(program, A, seeds, 2, path=path)
    header, _ = file.unpack(path.read_bytes())
    header['graph']['operators'] = {}
    golden = Path(__file__).with_name('export_golden.json')
    if request.config.getoption('update_golden'):
        golden.write_text(json.dumps(header, indent=1) + '\n')
    kept = json.loads(golden.read_text())
    assert header == kept
    path.write_bytes(file.pack(kept, {}))
    loaded = gsample.load_program(path)
    assert loaded(A, torch.tensor([1, 0]), 2)[0].tolist() == [6, 9, 3]


def test_exporting_leaves_generators_alone(tmp_path):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    gsample.export(PROGRAMS['ladies'], A, ids(3), path=tmp_path / 'p')
    assert torch.equal(torch.get_rng_state(), state)
    assert [p.name for p in tmp_path.iterdir()] == ['p']


def test_results_have_the_structure_of_the_program(tmp_path):
    def program(A, *more, seeds, names):
        layer = A[:, seeds['n']].individual_sample(2)
        parts = {('a', 1): layer, 'n': [layer.num_edges, None, 2.5]}
        return algorithms.Subgraphs(layer, more[0], seeds['n']), parts, names

    args, kwargs = (A, torch.ones(2)), {'names': ('x', True, 3)}
    seeds = {'n': ids(5)}
    loaded = load(program, *args, seeds=seeds, path=tmp_path / 'p', **kwargs)
    torch.manual_seed(1)
    expected = program(*args, seeds=seeds, **kwargs)
    torch.manual_seed(1)
    subgraphs, parts, names = loaded(*args, seeds=seeds)  # names are fixed
    assert type(subgraphs) is algorithms.Subgraphs
    assert subgraphs.batch is args[1]
    assert_equal(list(subgraphs), list(expected[0]))
    assert list(parts) == [('a', 1), 'n']
    assert parts['n'] == expected[1]['n']
    assert names == expected[2]
    assert subgraphs[0].shape == expected[0][0].shape


def test_a_sampler_output_of_layers_is_a_result(tmp_path):
    def program(A, seeds):
        first = A[:, seeds].individual_sample(3)
        second = A[:, first.row().unique()].individual_sample(2)
        return SparseSample.to_sampler_output([first, second], seeds)

    loaded = load(program, A, ids(9), path=tmp_path / 'p')
    torch.manual_seed(1)
    expected = program(A, ids(5))
    torch.manual_seed(1)
    found = loaded(A, ids(5))
    for name in ('node', 'row', 'col', 'edge'):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    assert found.num_sampled_nodes == expected.num_sampled_nodes
    assert found.num_sampled_edges == expected.num_sampled_edges
    with pytest.raises(ValueError, match="to_sampler_output: 'seeds'"):
        loaded(A, torch.tensor([1, 1, 2]))
