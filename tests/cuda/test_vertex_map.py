"""Kernels of vertex programs for a GPU, against the CPU's.

They are emulated; on a machine with a GPU they run there, too. Bits are the
same, but for functions of CUDA's library, which may round otherwise; in the
emulator these are the CPU's.
"""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from types import SimpleNamespace

import pytest
import torch

from tests.cuda.conftest import ON_GPU
from tests.cuda.generated import (
    ARCHS,
    Kernels,
    assert_nvcc_compiles,
    assert_nvrtc_compiles,
    clear_kernels,
)
from tests.cuda.simulated import OnCuda, Simulated, held
from tests.vertex.programs import EXTRA, PROGRAMS, E, N, features, graph
from torch_gsample import ops
from torch_gsample.codegen import cuda
from torch_gsample.codegen.build import BuildError
from torch_gsample.codegen.cuda import cuda_kernel
from torch_gsample.codegen.run_cuda import run_vertex_unit
from torch_gsample.vertex.kernels import run
from torch_gsample.vertex.kernels.fused_unit import Fused
from torch_gsample.vertex.kernels.layout import Layout, Loops
from torch_gsample.vertex.kernels.layouts import Layouts, layouts_of

ALL = PROGRAMS | EXTRA


def run_program(name, edge_index, given):
    with torch.no_grad():
        out = ALL[name](edge_index, **given)
    return out if isinstance(out, tuple) else (out,)


@contextmanager
def as_on_gpu():
    """Units for a GPU, also where one operator takes their place."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, '_joins_levels', lambda device: False)
        yield patched


def calls(name, edge_index, given):
    """The units of a program as they ran: inference, forward, backward."""
    found = []
    run_unit = Fused.run

    def spy(self, graph, operands):
        out = run_unit(self, graph, operands)
        # Autograd adds to gradients in place.
        found.append((self, graph, operands, [x.clone() for x in out]))
        return out

    with as_on_gpu() as patched:
        patched.setattr(Fused, 'run', spy)
        run_program(name, edge_index, given)
        out = ALL[name](edge_index, **given)
        outs = out if isinstance(out, tuple) else (out,)
        sum(x.square().sum() for x in outs).backward()
    return found


def large(name):
    """A program on a hub, of more features than a warp has lanes."""
    row, col = ops.rmat_edges(6, 400, [0.57, 0.19, 0.19, 0.05], 1)
    f = features(name, torch.float32, n=64, e=400, h=3, c=23)
    return calls(name, torch.stack([row, col]), f)


@pytest.fixture(scope='module')
def recorded():
    single, double = torch.float32, torch.float64
    found = {
        (name, dtype): calls(name, graph(), features(name, dtype))
        for name in PROGRAMS
        for dtype in (single, double)
        if name in ('gat', 'gatv2') or dtype == single
    }
    for name, dtype in (
        *(('gat', torch.bfloat16), ('gat', torch.float16)),
        ('pna', torch.bfloat16),
    ):
        found[name, dtype] = calls(name, graph(), features(name, dtype))
    for name in ('dropped', 'squashed'):
        given = features(name, single)
        found[name, single] = calls(name, graph(), given)
    wide = 'gatv2', 'gin', 'softmax_weighted', 'dropped', 'squashed'
    return found | {(name, 'large'): large(name) for name in wide}


@pytest.fixture(scope='module')
def sources(recorded):
    found = []
    for fused, made, _, _ in chain(*recorded.values()):
        unit = replace(fused.unit, index=made.incoming.indptr.dtype)
        found.append(cuda_kernel(unit).source)
    return list(dict.fromkeys(found))


@pytest.fixture(scope='module')
def kernels(kernels_from, builder, tmp_path_factory, sources):
    folder = tmp_path_factory.mktemp('vertex_map')
    return kernels_from(lambda: Kernels(builder, folder, sources))


def placed(kernels, made):
    """A graph where kernels run, with the layouts that it has here."""
    layouts = {}
    for name in ('incoming', 'outgoing'):
        layout = getattr(made, name)
        parts = layout.indptr, layout.indices, layout.edge_id
        indptr, indices, edge_id = kernels.put(parts)
        layouts[name] = Layout(indptr, indices, layout.num_rows, edge_id)
    out = Layouts(layouts['incoming'], made.num_edges)
    out.outgoing = layouts['outgoing']
    return out


def source_of(fused, made):
    unit = replace(fused.unit, index=made.incoming.indptr.dtype)
    return cuda_kernel(unit).source


def test_nvcc_compiles_each_kernel(sources, tmp_path):
    assert_nvcc_compiles(sources, tmp_path)


@pytest.mark.parametrize('arch', ARCHS)
def test_nvrtc_compiles_each_kernel(sources, arch):
    assert_nvrtc_compiles(sources, arch)


def test_gpu_kernels_equal_cpu_kernels(kernels, recorded):
    for name, found in recorded.items():
        assert len(found) >= 2, name
        for fused, made, operands, want in found:
            source = source_of(fused, made)
            there = placed(kernels, made), kernels.put(operands)
            for kernels.seed in (1, 2):
                with kernels.running():
                    got = fused.run_on_gpu(*there)
                for a, b in zip(got, want, strict=True):
                    kernels.assert_same(a, b, source)
    assert kernels.launches > 60


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_run_on_a_gpu(kernels, programs_of_kernels, name):
    # Without gradients: autograd looks for a GPU, which may not be there.
    on_gpu = programs_of_kernels
    given = {k: x.detach() for k, x in features(name, torch.float32).items()}
    want = run_program(name, graph(), given)
    kernels.launches = 0
    with as_on_gpu(), kernels.running(), on_gpu.running():
        got = run_program(name, on_gpu.put(graph()), on_gpu.put(given))
    on_gpu.assert_own()
    assert kernels.launches > 0
    for a, b in zip(on_gpu.get(got), want, strict=True):
        torch.testing.assert_close(a, b)


@pytest.fixture(params=['cpu'] + ON_GPU)
def device(request):
    return {'cpu': 'cpu', 'gpu': 'cuda'}[request.param]


@pytest.mark.parametrize('name', ALL)
def test_programs_are_trained_where_their_graph_is(device, name):
    def gradients(place):
        given = features(name, torch.float32)
        given = {
            key: x.detach().to(place).requires_grad_(x.requires_grad)
            for key, x in given.items()
        }
        torch.manual_seed(0)
        out = ALL[name](graph().to(place), **given)
        outs = out if isinstance(out, tuple) else (out,)
        sum(x.square().sum() for x in outs).backward()
        return [x.grad for x in given.values() if x.requires_grad]

    for ours, theirs in zip(gradients(device), gradients('cpu'), strict=True):
        assert ours.device.type == device
        torch.testing.assert_close(ours.cpu(), theirs)


def test_loops_are_replaced_on_a_gpu():
    # Where tensors are is in question, so kernels of the CPU will do.
    on_cpu = SimpleNamespace(operator=partial(getattr, torch.ops.gsample))
    want = layouts_of([graph()], N, N, Loops.REPLACE).incoming
    with Simulated(on_cpu) as simulated:
        made = layouts_of([OnCuda(graph())], N, N, Loops.REPLACE).incoming
    assert not simulated.on_cpu
    for name in ('indptr', 'indices', 'edge_id'):
        assert torch.equal(held(getattr(made, name)), getattr(want, name))


@pytest.mark.parametrize(
    ('place', 'value', 'fault'),
    [
        *((1, -1, [1, 0]), (1, N, [1, 0]), (2, -1, [1, 0]), (2, E, [1, 0])),
        *((3, -1, [1, 0]), (3, N, [1, 0]), (0, E + 1, [0, 1])),
    ],
)
def test_a_malformed_graph_is_noted_and_not_read(
    kernels, recorded, place, value, fault
):
    # Indices, ids of edges, the order, pointers; the first call is inference.
    fused, made, operands, want = recorded['weighted', torch.float32][0]
    layout = made.incoming
    vertices = torch.arange(N, dtype=layout.indptr.dtype)
    parts = [layout.indptr, layout.indices, layout.edge_id, vertices]
    parts = [part.clone() for part in parts]
    unit = replace(fused.unit, index=layout.indptr.dtype)

    def run():
        with kernels.running():
            given = kernels.put(parts), N, E, kernels.put(operands)
            out = run_vertex_unit(unit, *given)
        return out[0], kernels.last[-1].tolist()

    out, found = run()
    kernels.assert_same(out, want[0])
    assert found == [0, 0]
    parts[place][3] = value
    assert run()[1] == fault


def test_too_many_features_are_left_to_torch(monkeypatch, recorded):
    fused, made, operands, want = recorded['gat', torch.float32][0]
    monkeypatch.setattr(cuda, '_SHARED', 8)
    with pytest.raises(BuildError, match='more than the 8 of shared'):
        cuda_kernel(fused.unit)
    clear_kernels()
    with pytest.warns(UserWarning, match='of shared memory: torch operators'):
        [out] = fused.run_on_gpu(made, operands)
    clear_kernels()
    torch.testing.assert_close(out, want[0])


def test_few_groups_share_a_block_where_they_need_much_memory(recorded):
    fused, _, _, _ = recorded['gatv2', 'large'][1]
    kernel = cuda_kernel(fused.unit)
    assert (kernel.groups, kernel.threads) == (4, 128)
    # Groups that took vertices of others, too, would be as right, and slow.
    assert 'i += gridDim.x * int64_t{kGroups})' in kernel.source
    widened = replace(fused.unit, sizes=(3, 23 * 40))
    kernel = cuda_kernel(widened)
    assert kernel.groups < 4
    assert kernel.threads == 32 * kernel.groups


def test_edges_that_are_not_in_the_graph_have_no_gradient(kernels, recorded):
    # The gradient of a weight of each edge, with one weight too many.
    fused, made, operands, want = recorded['weighted', torch.float32][2]
    [output] = fused.unit.outputs
    assert output.kind == 'E'
    more = [
        torch.cat([x, x[:1]]) if leaf.kind == 'E' else x
        for x, leaf in zip(operands, fused.unit.leaves, strict=True)
    ]
    torch.use_deterministic_algorithms(True)  # fills unwritten memory
    try:
        with kernels.running():
            longer = Layouts(placed(kernels, made).incoming, E + 1)
            [out] = fused.run_on_gpu(longer, kernels.put(more))
    finally:
        torch.use_deterministic_algorithms(False)
    kernels.assert_same(out[:E], want[0])
    assert out[E].item() == 0
