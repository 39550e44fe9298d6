"""Generated kernels of edges for a GPU, against the CPU's.

They are emulated; on a machine with a GPU they run there, too.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tests.codegen.edges import SHAPES, edges, fix_numbers, fuse, fused
from tests.codegen.test_expressions import ALL
from tests.compiler import golden
from tests.cuda.generated import (
    ARCHS,
    Kernels,
    assert_nvcc_compiles,
    assert_nvrtc_compiles,
)
from torch_gsample.codegen.cuda import cuda_kernel
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.run_cuda import run_edge_map
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.lowering import lower


def calls(name, shape):
    """The programs of a function of edges, their operands and results."""
    found = []
    run = EdgeKernel.run

    def spy(self, *operands, num_rows=0):
        out = run(self, *operands, num_rows=num_rows)
        found.append((self.unit, operands, num_rows, out))
        return out

    e = edges(shape, torch.float32)
    with pytest.MonkeyPatch.context() as patched, torch.no_grad():
        patched.setattr(EdgeKernel, 'run', spy)
        fused(ALL[name], e)(*e.inputs)
    return found


@pytest.fixture(scope='module')
def sources():
    programs = [call[0] for name in ALL for call in calls(name, 'hub')]
    return [cuda_kernel(program).source for program in programs]


@pytest.fixture(scope='module')
def kernels(kernels_from, builder, tmp_path_factory, sources):
    """All programs in one library."""
    folder = tmp_path_factory.mktemp('edge_map')
    return kernels_from(lambda: Kernels(builder, folder, sources))


def test_nvcc_compiles_each_kernel(sources, tmp_path):
    assert_nvcc_compiles(sources, tmp_path)


@pytest.mark.parametrize('arch', ARCHS)
def test_nvrtc_compiles_each_kernel(sources, arch):
    assert_nvrtc_compiles(sources, arch)


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('name', ALL)
def test_gpu_kernels_equal_cpu_kernels(kernels, name, shape):
    for program, operands, num_rows, want in calls(name, shape):
        for kernels.seed in (1, 2):
            with kernels.running():
                given = kernels.put(operands)
                got = run_edge_map(program, given, num_rows)
            kernels.assert_same(got, want, cuda_kernel(program).source)


def fused_on_cuda(name, e):
    """The function of edges after both passes, captured on CUDA."""
    module = golden.program(ALL[name], *e.inputs)
    fix_numbers(module.graph)
    with FakeTensorMode():
        for node in module.graph.nodes:
            node.meta['example_value'] = tree_map_only(
                torch.Tensor,
                lambda x: torch.empty(x.shape, dtype=x.dtype, device='cuda'),
                node.meta['example_value'],
            )
    return fuse(module)


@pytest.mark.parametrize('name', ALL)
def test_passes_make_the_same_kernels_on_a_gpu(
    kernels, programs_of_kernels, name
):
    on_gpu, e = programs_of_kernels, edges('hub', torch.float32)
    want, module = fused(ALL[name], e), fused_on_cuda(name, e)
    assert ir_text(module.graph) == ir_text(want.graph)
    found = calls(name, 'hub')
    sources = ''.join(cuda_kernel(call[0]).source for call in found)
    launches, function = kernels.launches, lower(module)
    with kernels.running(), on_gpu.running(), torch.no_grad():
        got = function(*on_gpu.put(e.inputs))
    got, want = on_gpu.get(got), want(*e.inputs)
    for x, y in zip(tree_leaves(got), tree_leaves(want), strict=True):
        kernels.assert_same(x, y, sources)
    assert kernels.launches > launches


def test_each_program_has_a_kernel(kernels, sources):
    assert len(set(sources)) > 20
    for name in ALL:
        before = kernels.launches
        for program, operands, num_rows, _ in calls(name, 'hub'):
            with kernels.running():
                run_edge_map(program, kernels.put(operands), num_rows)
        assert kernels.launches > before, name


def only_call(name):
    [call] = calls(name, 'isolated')
    return call


@pytest.mark.parametrize('value', [-1, 5])
@pytest.mark.parametrize('name', ['row', 'rows'])
def test_an_index_out_of_range_is_an_error(kernels, name, value):
    program, operands, num_rows, _ = only_call(name)
    index = program.by
    if index is None:
        [index] = {x.index for x in program.leaves} - {None}
    operands = [x.clone() for x in operands]
    operands[index][3] = value
    with kernels.running(), pytest.raises(IndexError, match='out of range'):
        run_edge_map(program, kernels.put(operands), num_rows)


@pytest.mark.parametrize(('place', 'value'), [(0, 1), (1, 5), (2, -1)])
def test_pointers_that_descend_are_an_error(kernels, place, value):
    program, operands, num_rows, _ = only_call('column')
    operands = [x.clone() for x in operands]
    operands[program.pointers][place] = value
    with kernels.running(), pytest.raises(ValueError, match='must ascend'):
        run_edge_map(program, kernels.put(operands), num_rows)


def test_operands_that_do_not_go_together_are_an_error(kernels):
    program, operands, num_rows, _ = only_call('arithmetic')
    first, *rest = operands
    for wrong, message in (
        ([first, *(x[:-1] for x in rest)], r'must have \d rows \(got \d\)'),
        ([first, *(x.double() for x in rest)], r'operand 1 must be torch'),
    ):
        with kernels.running(), pytest.raises(ValueError, match=message):
            run_edge_map(program, kernels.put(wrong), num_rows)


def test_negative_rows_count_from_the_end(kernels):
    program, operands, num_rows, want = only_call('row-index')
    [index] = {x.index for x in program.leaves} - {None}
    operands = [x.clone() for x in operands]
    operands[index] -= 5
    with kernels.running():
        out = run_edge_map(program, kernels.put(operands), num_rows)
    kernels.assert_same(out, want)
