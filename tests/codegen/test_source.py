"""The text of generated kernels: golden files, and compilers."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from tests.codegen.edges import edges, only_kernel
from tests.codegen.test_expressions import ALL
from torch_gsample.codegen.cpp import PREAMBLE, REDUCE_COLUMNS, cpp_source
from torch_gsample.codegen.cuda import cuda_source
from torch_gsample.codegen.expression import apply, constant, operand
from torch_gsample.codegen.program import Operand, Program, Role

GOLDEN = Path(__file__).with_name('golden')
NVCC = shutil.which('nvcc')
NAMES = 'row-index', 'column', 'rows-of-columns', 'maximum', 'sddmm'


def program(name):
    return only_kernel(ALL[name], edges(dtype=torch.float32))[0].program


def check(request, path, text):
    if request.config.getoption('--update-golden'):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize('name', NAMES)
def test_the_text_for_the_cpu(request, name):
    text = cpp_source(program(name)).removeprefix(PREAMBLE)
    text = text.removeprefix('\n' + REDUCE_COLUMNS)
    check(request, GOLDEN / f'{name}.cpp.txt', text)


@pytest.mark.parametrize('name', ['row-index', 'maximum', 'sddmm'])
def test_the_text_for_a_gpu(request, name):
    check(request, GOLDEN / f'{name}.cu.txt', cuda_source(program(name)))


@pytest.mark.skipif(NVCC is None, reason='there is no nvcc')
def test_the_text_for_a_gpu_compiles(tmp_path):
    done = []
    for name in set(ALL) - {'rows', 'rows-of-columns', 'rows-of-features'}:
        text = cuda_source(program(name))
        scope = f'namespace kernel_{len(done)} {{\n'
        includes, body = text.split('__device__', 1)
        body = body.replace('gsample_kernel', f'kernel_{len(done)}_run')
        done.append(f'{includes}\n{scope}__device__{body}}}\n')
    path = tmp_path / 'kernels.cu'
    path.write_text('\n'.join(done))
    command = [NVCC, '-std=c++17', '-ptx', str(path), '-o', f'{path}.ptx']
    compiled = subprocess.run(command, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    assert Path(f'{path}.ptx').read_text().count('.entry') == len(done) > 15


def test_rows_are_not_reduced_in_order_on_a_gpu():
    with pytest.raises(NotImplementedError, match='on the CPU only'):
        cuda_source(program('rows'))


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (float('inf'), 'float(INFINITY)'),
        (float('-inf'), 'float(-INFINITY)'),
        (float('nan'), 'float(NAN)'),
        (1e-5, 'float(1e-05)'),
    ],
)
def test_numbers_that_are_no_digits(value, text):
    x = operand(0, torch.float32)
    root = apply('add', x, constant(value, torch.float32))
    each = Operand(Role.EDGE, torch.float32)
    assert text in cpp_source(Program(root, (each,)))
