"""The text of generated kernels: golden files."""

import re
from pathlib import Path

import pytest
import torch

from tests.codegen.edges import edges, only_kernel
from tests.codegen.test_expressions import ALL
from torch_gsample.codegen import unit
from torch_gsample.codegen.cpp import cpp_source, preamble
from torch_gsample.codegen.cuda import PREAMBLE as CUDA_PREAMBLE
from torch_gsample.codegen.cuda import cuda_kernel
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, constant, operand
from torch_gsample.codegen.unit import Leaf

GOLDEN = Path(__file__).with_name('golden')
NAMES = 'row-index', 'column', 'rows-of-columns', 'maximum', 'sddmm'


def program(name):
    return only_kernel(ALL[name], edges(dtype=torch.float32))[0].unit


def check(request, path, text):
    if request.config.getoption('--update-golden'):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize('name', NAMES)
def test_the_text_for_the_cpu(request, name):
    unit = program(name)
    text = cpp_source(unit).removeprefix(preamble(unit))
    check(request, GOLDEN / f'{name}.cpp.txt', text)


@pytest.mark.parametrize('name', NAMES)
def test_headers_that_take_long_to_read_are_not_needed(name):
    """They took more than half of each compilation."""
    headers = re.findall(r'#include <(.*)>', cpp_source(program(name)))
    assert set(headers) <= {'stdint.h'}


@pytest.mark.parametrize(
    'name', ['row-index', 'maximum', 'rows-of-columns', 'sddmm']
)
def test_the_text_for_a_gpu(request, name):
    text = cuda_kernel(program(name)).source.removeprefix(CUDA_PREAMBLE)
    check(request, GOLDEN / f'{name}.cu.txt', text)


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
    each = Leaf('', unit.EDGE, torch.float32)
    assert text in cpp_source(edge_map(root, (each,)))
