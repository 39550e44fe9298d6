"""Super-batches on simulated CUDA are those of the CPU.

Dynamo cannot trace tensors that only say they are on CUDA: programs are
captured on the CPU, and what runs batches together gets tensors on CUDA.
"""

import copy

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from tests.compiler.programs import PROGRAMS, graph, tensors
from tests.compiler.test_super_batch import batches, keys
from tests.compiler.test_super_batch_size import inputs_of
from tests.cuda.conftest import ON_GPU
from tests.cuda.simulated import DEVICE, OnCuda, Simulated, held
from torch_gsample import SparseSample, super_batch
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.compiler.super_batch import captured
from torch_gsample.rng import program_scope

#: Without generated kernels of edges, which are compiled where they run.
NAMES = [p.name for p in PASSES if 'edge_map' not in p.name]
SIZES = [5, 9, 3]
#: One of each kind, as captures take a while; all of them were seen to pass.
NAMED = ['graphsage', 'labor', 'ladies', 'saint_walk', 'shadow']


def move(node):
    """Lets a node that chooses a device (the CPU, if none) choose CUDA."""
    schema = getattr(node.target, '_schema', None)
    if schema and 'device' in [x.name for x in schema.arguments]:
        node.kwargs = {**node.kwargs, 'device': DEVICE}


@pytest.fixture
def lowered(monkeypatch):
    """Programs of several batches that were lowered, each for both devices."""
    programs, lower = [], captured.lower

    def lower_for_both(module):
        on_cpu = lower(copy.deepcopy(module))
        for node in module.graph.nodes:
            move(node)
        programs.append((on_cpu, lower(module)))
        return on_cpu

    monkeypatch.setattr(captured, 'lower', lower_for_both)
    return programs


def inputs_of_program(name):
    """The inputs of several batches of a captured program."""
    torch._dynamo.reset()
    options = {'strict': True, 'passes': NAMES}
    program = super_batch(PROGRAMS[name], 8, options=options)
    return inputs_of(program, graph(), batches(SIZES))[1]


def on_cuda(value):
    return OnCuda(value) if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize('name', NAMED)
def test_batches_together(emulated, lowered, name):
    emulated.configure(5, 2, 64, 10)
    inputs = inputs_of_program(name)
    ((on_cpu, on_gpu),) = lowered
    with program_scope(keys(len(SIZES))):
        want = [list(parts) for parts in on_cpu(*inputs)]
    with Simulated(emulated) as simulated:
        with program_scope(keys(len(SIZES))):
            found = on_gpu(*map(on_cuda, inputs))
        out = tree_map(held, [list(parts) for parts in found])
    for x, y in zip(tree_leaves(out), tree_leaves(want), strict=True):
        if isinstance(x, torch.Tensor):
            assert torch.equal(x, y)
        else:
            assert x == y
    assert simulated.kernels


@pytest.fixture(params=['cpu'] + ON_GPU)
def device(request):
    return {'cpu': 'cpu', 'gpu': 'cuda'}[request.param]


@pytest.mark.parametrize('name', [*NAMED, 'fastgcn', 'saint_node'])
def test_batches_together_where_their_graph_is(device, name):
    """The whole way, which takes a GPU: Dynamo traces no simulated tensors."""
    torch._dynamo.reset()
    program = super_batch(PROGRAMS[name], 8)
    parts, seeds = graph().to_csc(), batches(SIZES)
    A = SparseSample.from_csc(*parts)
    there = SparseSample.from_csc(*[part.to(device) for part in parts])
    with program_scope(keys(len(SIZES))):
        out = program(there, [s.to(device) for s in seeds])
    assert program.notes[0] == 'several batches run together'
    for batch, key, s in zip(
        out, keys(len(SIZES)).split(1), seeds, strict=True
    ):
        with program_scope(key):
            want = PROGRAMS[name](A, s)
        for x, y in zip(tensors(batch), tensors(want), strict=True):
            same = torch.allclose if y.is_floating_point() else torch.equal
            assert x.device.type == device
            assert same(x.cpu(), y)
