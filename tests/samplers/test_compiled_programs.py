"""ProgramSampler(compile=True): the samples of eager programs."""

import pickle
import threading

import pytest
import torch

from tests.fresh import FORKS
from tests.loader.batches import run
from tests.samplers import graphs, programs
from tests.samplers.graphs import RATES
from tests.samplers.oracle import fields_of
from torch_gsample import (
    FastGCNSampler,
    HGTSampler,
    LaborSampler,
    LadiesSampler,
    PinSAGESampler,
    ProgramSampler,
    SaintSampler,
    ShaDowSampler,
)
from torch_gsample.compiler import CompileError, compiled
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.rng import BatchNumber

DATA = graphs.homogeneous(
    num_nodes=60, num_edges=900, weight=torch.arange(1.0, 901.0)
)
TYPED = graphs.heterogeneous()


@pytest.fixture(autouse=True)
def _forget_compilations():
    yield
    torch._dynamo.reset()


def of(program, data=DATA, fanouts=(4, 3), **given):
    def make(**options):
        given.setdefault('weight_attr', 'weight' if data is DATA else None)
        sizes = graphs.each(data, fanouts) if data is TYPED else list(fanouts)
        return ProgramSampler(data, program, sizes, seed=0, **given, **options)

    return make


def ready(kind, *args, data=DATA, **given):
    return lambda **options: kind(data, *args, seed=0, **given, **options)


SAMPLERS = {
    'sage': of(programs.sage, replace=True),
    'sage_again': of(programs.sage_again),
    'joined': of(programs.joined),
    'layer_wise': of(programs.layer_wise),
    'by_row': of(programs.by_row),
    'induced': of(programs.induced),
    'with_degree': of(programs.with_degree),
    'ladies': ready(LadiesSampler, [5, 5], normalization='row'),
    'fastgcn': ready(FastGCNSampler, [5, 5], weight_attr='weight'),
    'labor': ready(LaborSampler, [5, 5]),
    'pinsage': ready(PinSAGESampler, [2]),
    'saint': ready(SaintSampler, 2, 2, batch_size=3),
    'shadow': ready(ShaDowSampler, [2, 2]),
    'typed': of(programs.typed_with_number, TYPED),
    'hgt': ready(HGTSampler, [3, 2], data=TYPED),
}


def assert_same(first, second):
    assert fields_of(first) == fields_of(second)
    pairs = [
        (first.attributes.node, second.attributes.node),
        (first.attributes.edge, second.attributes.edge),
    ]
    for a, b in pairs:
        assert a.keys() == b.keys()
        for kind in a:
            assert a[kind].keys() == b[kind].keys()
            for name, value in a[kind].items():
                torch.testing.assert_close(value, b[kind][name])


@pytest.mark.parametrize('name', SAMPLERS)
def test_samples_of_nodes_are_those_of_the_program(name):
    make = SAMPLERS[name]
    sampler, fast = make(), make(compile=True)
    node_type = 'item' if sampler.is_hetero else None
    fast.sample_from_nodes(graphs.nodes([4, 9, 4, 2], node_type))
    with torch.compiler.set_stance('fail_on_recompile'):
        for ids in ([4, 9, 4, 2], [1], [], [3, 5, 2, 1, 0, 7]):
            seeds = torch.tensor(ids, dtype=torch.int64)
            inputs = graphs.nodes(seeds, node_type)
            assert_same(
                fast.sample_from_nodes(inputs),
                sampler.sample_from_nodes(inputs),
            )


@pytest.mark.parametrize(
    'options', [{}, {'compile': True, 'options': {'super_batch': 2}}]
)
def test_an_output_of_layers_stands_for_them(options):
    inputs = [graphs.nodes(ids) for ids in ([4, 9, 2], [1], [3, 5])]
    numbers = [BatchNumber(0, i) for i in range(3)]
    joined = SAMPLERS['joined'](**options)
    outs = joined.sample_batches(inputs, numbers)
    layers = SAMPLERS['sage_again']()
    for out, other in zip(
        outs, layers.sample_batches(inputs, numbers), strict=True
    ):
        assert_same(out, other)


@pytest.mark.parametrize('name', ['sage', 'ladies', 'shadow', 'typed'])
def test_samples_of_links_are_those_of_the_program(name):
    make = SAMPLERS[name]
    sampler, fast = make(), make(compile=True)
    edge_type = RATES if sampler.is_hetero else None
    for pairs in ([(4, 9), (4, 2), (1, 1)], [(1, 2)], [(5, 5), (5, 6)] * 3):
        inputs = graphs.links(pairs, edge_type)
        assert_same(
            fast.sample_from_edges(inputs), sampler.sample_from_edges(inputs)
        )


# Loaders #####################################################################


def node_loader(compile, **options):
    return NeighborLoader(
        DATA,
        sampler=LadiesSampler(
            DATA, [8, 8], seed=0, share_memory=True, compile=compile
        ),
        batch_size=16,
        shuffle=True,
        **options,
    )


def typed_loader(compile, **options):
    return NeighborLoader(
        TYPED,
        sampler=SAMPLERS['typed'](compile=compile),
        input_nodes='item',
        batch_size=4,
        **options,
    )


def link_loader(compile, **options):
    return LinkNeighborLoader(
        DATA,
        sampler=SAMPLERS['sage'](compile=compile, exclude_seed_edges=True),
        neg_sampling={'mode': 'triplet', 'amount': 2},
        batch_size=200,
        **options,
    )


def passes(loader):
    torch.manual_seed(2)
    return [run(loader), run(loader)]


@pytest.mark.parametrize('make', [node_loader, typed_loader, link_loader])
def test_batches_are_those_of_the_program(make):
    expected = passes(make(False))
    assert passes(make(True)) == expected
    assert passes(make(True, num_workers=2)) == expected


def test_forked_workers_inherit_compiled_programs():
    expected = run(link_loader(False))
    loader = link_loader(True, num_workers=2)
    loader.link_sampler.prepare_workers()
    with torch.compiler.set_stance('fail_on_recompile'):
        assert run(loader) == expected


def test_workers_that_are_spawned_change_no_batch():
    torch.manual_seed(2)
    expected = run(node_loader(False))
    torch.manual_seed(2)
    spawned = node_loader(True, num_workers=1, multiprocessing_context=FORKS)
    assert run(spawned) == expected


@pytest.mark.parametrize('prefetch', [0, 2])
def test_no_batch_is_compiled_again_not_the_smaller_last_one(prefetch):
    loader = node_loader(True, prefetch=prefetch)
    run(loader)
    with torch.compiler.set_stance('fail_on_recompile'):
        sizes = [batch.batch_size for batch in loader]
    assert sizes == [16, 16, 16, 12]


# Threads, copies, changes ####################################################


def test_threads_that_come_first_compile_once(monkeypatch):
    count, real = [], compiled.backend

    def backend(gm, example_inputs, **kwargs):
        count.append(gm)
        return real(gm, example_inputs, **kwargs)

    monkeypatch.setattr(compiled, 'backend', backend)
    sampler, fast = SAMPLERS['sage'](), SAMPLERS['sage'](compile=True)
    inputs = [graphs.nodes(range(i + 1)) for i in range(6)]
    start, out = threading.Barrier(6), {}

    def work(i):
        start.wait()
        for _ in range(3):
            out[i] = fast.sample_from_nodes(inputs[i])

    threads = [threading.Thread(target=work, args=[i]) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(count) == 1
    for i in range(6):
        assert_same(out[i], sampler.sample_from_nodes(inputs[i]))


def test_a_pickled_sampler_compiles_again():
    fast = SAMPLERS['ladies'](compile=True)
    expected = fast.sample_from_nodes(graphs.nodes([3, 4]))
    other = pickle.loads(pickle.dumps(fast))
    assert other.compile
    assert_same(other.sample_from_nodes(graphs.nodes([3, 4])), expected)


def test_other_fanouts_are_compiled():
    sampler, fast = SAMPLERS['sage'](), SAMPLERS['sage'](compile=True)
    for fanouts in ([4, 3], [2], [1, 1, 1]):
        sampler.fanouts = fast.fanouts = fanouts
        inputs = graphs.nodes([3, 4])
        assert_same(
            fast.sample_from_nodes(inputs), sampler.sample_from_nodes(inputs)
        )


def test_gradients_reach_the_parameters_of_a_program():
    weight = torch.ones(900, requires_grad=True)

    def scaled(A, seeds, fanouts, weight):
        A = A.with_value(A.values() * weight)
        return [A[:, seeds].individual_sample(fanouts[0])]

    grads = []
    for compile in (False, True):
        sampler = of(scaled, weight=weight)(compile=compile)
        out = sampler.sample_from_nodes(graphs.nodes([3, 4]))
        value = out.attributes.edge[None]['edge_weight']
        grads.append(torch.autograd.grad(value.square().sum(), weight)[0])
    assert grads[0].abs().sum() > 0
    torch.testing.assert_close(*grads)


def test_programs_that_cannot_be_captured_say_why():
    sampler = ready(ShaDowSampler, ppr=5)(compile=True)
    with pytest.raises(CompileError) as error:
        sampler.sample_from_nodes(graphs.nodes([3]))
    text = str(error.value)
    assert "'shadow_ppr' cannot be captured as one graph" in text
    assert 'in approximate_ppr: while pair.numel() > 0:' in text
    assert 'without `compile=True` of a sampler' in text
