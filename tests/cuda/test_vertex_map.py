"""Kernels of vertex programs for a GPU, emulated, against the CPU's.

Bits are the same: functions of CUDA's library, which may round otherwise, are
those of the CPU in the emulator.
"""

from dataclasses import replace
from itertools import chain

import pytest
import torch

from tests.cuda.generated import (
    ARCHS,
    Kernels,
    assert_nvcc_compiles,
    assert_nvrtc_compiles,
)
from tests.cuda.simulated import OnCuda, Simulated, held
from tests.vertex.programs import PROGRAMS, features, graph
from torch_gsample import ops
from torch_gsample.codegen.vertex_cuda import vertex_cuda_kernel
from torch_gsample.vertex.operator import Fused


def run_program(name, edge_index, given):
    with torch.no_grad():
        out = PROGRAMS[name](edge_index, **given)
    return out if isinstance(out, tuple) else (out,)


def calls(name, edge_index, given):
    """The units of a program as they ran: inference, forward, backward."""
    found = []
    run = Fused.run

    def spy(self, graph, operands):
        out = run(self, graph, operands)
        found.append((self, graph, operands, out))
        return out

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Fused, 'run', spy)
        run_program(name, edge_index, given)
        out = PROGRAMS[name](edge_index, **given)
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
    return found | {(name, 'large'): large(name) for name in ('gatv2', 'gin')}


@pytest.fixture(scope='module')
def sources(recorded):
    found = []
    for fused, made, _, _ in chain(*recorded.values()):
        unit = replace(fused.unit, index=made.incoming.indptr.dtype)
        found.append(vertex_cuda_kernel(unit).source)
    return list(dict.fromkeys(found))


@pytest.fixture(scope='module')
def kernels(builder, tmp_path_factory, sources):
    return Kernels(builder, tmp_path_factory.mktemp('vertex_map'), sources)


def test_nvcc_compiles_each_kernel(sources, tmp_path):
    assert_nvcc_compiles(sources, tmp_path)


@pytest.mark.parametrize('arch', ARCHS)
def test_nvrtc_compiles_each_kernel(sources, arch):
    assert_nvrtc_compiles(sources, arch)


def test_kernels_for_a_gpu_compute_what_the_cpu_does(kernels, recorded):
    for name, found in recorded.items():
        assert len(found) >= 2, name
        for fused, made, operands, want in found:
            for kernels.seed in (1, 2):
                with kernels.running():
                    got = fused.run_on_gpu(made, operands)
                for a, b in zip(got, want, strict=True):
                    assert torch.equal(a, b), name
    assert kernels.launches > 60


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_run_on_a_gpu(emulated, kernels, name):
    # Without gradients: autograd looks for a GPU.
    given = {k: x.detach() for k, x in features(name, torch.float32).items()}
    want = run_program(name, graph(), given)
    emulated.configure(3, 2, 64, 10)
    kernels.launches = 0
    with kernels.running(), Simulated(emulated) as simulated:
        on_cuda = {key: OnCuda(x) for key, x in given.items()}
        got = run_program(name, OnCuda(graph()), on_cuda)
    assert not simulated.on_cpu
    assert kernels.launches > 0
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(held(a), b)
