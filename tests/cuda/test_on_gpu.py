"""On a machine with a GPU, all that has a kernel for it runs there."""

import ast
import re
from pathlib import Path

import pytest
import torch

import torch_gsample.ops  # noqa: F401  (registers the operators)
from tests.cuda.emulated import CSRC
from tests.cuda.gpu import GpuKernels, OnGpu
from tests.cuda.operands import placed
from tests.fresh import Run

HERE = Path(__file__).parent
#: Tests of what has no operator of its own: generated kernels, whole programs.
OTHERS = [
    'test_edge_map.py::test_gpu_kernels_equal_cpu_kernels',
    'test_edge_map.py::test_passes_make_the_same_kernels_on_a_gpu',
    'test_vertex_map.py::test_gpu_kernels_equal_cpu_kernels',
    'test_vertex_map.py::test_programs_run_on_a_gpu',
    'test_vertex_map.py::test_programs_are_trained_where_their_graph_is',
    'test_hubs.py::test_hubs_in_pieces_have_the_bits_of_the_cpu',
    'test_programs.py::test_programs_draw_the_samples_of_the_cpu',
    'test_programs.py::test_programs_read_a_graph_in_pinned_memory',
    'test_algorithms.py::test_algorithms_run_where_their_graph_is',
    'test_algorithms.py::test_algorithms_read_a_graph_in_pinned_memory',
    'test_algorithms.py::test_compiled_algorithms_run_where_their_graph_is',
    'test_algorithms.py::'
    'test_compiled_algorithms_read_a_graph_in_pinned_memory',
    'test_super_batch.py::test_batches_together_where_their_graph_is',
    'test_uva.py::test_graphs_are_read_in_pinned_memory',
    'test_sample_neighbors.py::test_a_cuda_graph_samples_again_for_each_key',
    'test_flat_memory.py::test_memory_stays_flat',
    'test_loader.py::test_batches_equal_those_of_the_cpu',
]
#: Collects tests without the packages that a machine with a GPU may lack.
COLLECT = """
import sys
sys.modules |= dict.fromkeys(
    ['duckdb', 'hypothesis', 'matplotlib', 'pyarrow', 'pyspark', 'scipy']
)
import pytest
sys.exit(pytest.main())
"""


def names_in_tests_that_take(fixture):
    """The strings in functions of these tests that have an argument."""
    found = set()
    for path in HERE.glob('test_*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and fixture in [
                argument.arg for argument in node.args.args
            ]:
                found |= {
                    part.value
                    for part in ast.walk(node)
                    if isinstance(part, ast.Constant)
                }
    return found


def test_each_operator_with_a_kernel_runs_on_a_gpu():
    text = ''.join(p.read_text() for p in (CSRC / 'bind').glob('*_cuda.cpp'))
    registered = set(re.findall(r'm\.impl\("(\w+)"', text))
    assert len(registered) > 20
    assert registered <= names_in_tests_that_take('cuda')


@pytest.fixture(scope='module')
def collected(tmp_path_factory):
    """What `make test-cuda-parity` runs."""
    folder = tmp_path_factory.mktemp('collected')
    script = folder / 'collect.py'
    script.write_text(COLLECT)
    args = ['--collect-only', '-q', '-o', 'addopts=', '-p', 'no:cacheprovider']
    args += ['-m', 'gpu', str(HERE)]
    env = {'GSAMPLE_TEST_GPU': '1', 'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1'}
    done = Run(script, folder / 'out', args, env)
    return done.wait().splitlines()


def test_nothing_else_is_selected_for_a_gpu(collected):
    tests = [line for line in collected if '::' in line]
    assert len(tests) > 500
    on_gpu = re.compile(r'\[(.*-)?(gpu|cuda)\b')
    assert [line for line in tests if not on_gpu.search(line)] == []


@pytest.fixture
def kernels():
    return GpuKernels()


def test_programs_run_where_their_kernels_do(programs_of_kernels):
    assert isinstance(programs_of_kernels, OnGpu)


class Moved:
    """A tensor that was moved to a GPU."""

    def __init__(self, tensor):
        self.tensor = tensor


def test_operands_are_moved_unless_the_schema_calls_them_keys():
    rows = torch.arange(12).view(4, 3)  # of the shape of a key
    index, ids = torch.tensor([1]), torch.tensor([0, 1])
    gather = torch.ops.gsample.gather_rows.default
    args, _ = placed(gather, [rows, index], {}, Moved)
    assert args[0].tensor is rows
    assert args[1].tensor is index
    args, kwargs = placed(
        torch.ops.gsample.sample_layers.default,
        [[rows, rows], [0, 0], [4], [ids], [2], [rows], [0]],
        {'seed_time': [rows]},
        lambda x: Moved(x) if isinstance(x, torch.Tensor) else x,
    )
    moved = [*args[0], *args[3], *kwargs['seed_time']]
    assert [type(x) for x in moved] == [Moved] * 4
    assert args[4:] == [[2], [rows], [0]]


@pytest.mark.parametrize('name', OTHERS)
def test_generated_kernels_and_programs_run_on_a_gpu(collected, name):
    begin = f'tests/cuda/{name}['
    mine = [line for line in collected if line.startswith(begin)]
    on_gpu = re.compile(r'\[(gpu|cuda)\b')
    assert any(on_gpu.search(line) for line in mine), mine
    assert not any('emulated' in line for line in mine)
