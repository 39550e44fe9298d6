"""Kernels and their libraries go with what used them."""

import gc
import re
from pathlib import Path

import pytest
import torch

from tests.vertex.programs import N, graph
from torch_gsample.codegen import loaded, unit
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, constant, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import Leaf
from torch_gsample.ops import kernels
from torch_gsample.vertex import program as programs
from torch_gsample.vertex import vertex_program
from torch_gsample.vertex.kernels import operator
from torch_gsample.vertex.plan import plan as plans

X = operand(0, torch.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Programs that differ in a number share a library: g++ takes long."""
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(tmp_path))
    build, known = loaded.build, {}

    def build_once(source, flags=()):
        form = re.sub(r'\d\.\d+', '', source)
        return build(known.setdefault(form, source), flags)

    monkeypatch.setattr(loaded, 'build', build_once)
    return tmp_path


def run_program(number):
    @vertex_program
    def scaled(v):
        return sum(u.x * number for u in v.innbs)

    x = torch.ones(N, 2, requires_grad=True)
    scaled(graph(), x=x).sum().backward()
    scaled(graph(), x=x.detach())


def run_edge_map(number):
    root = apply('mul', X, constant(number, torch.float32))
    kernel = EdgeKernel(edge_map(root, [Leaf('', unit.EDGE, torch.float32)]))
    kernel(torch.ones(3, requires_grad=True)).sum().backward()


def tables():
    """How much each table of kernels has, and the libraries of a process."""
    gc.collect()
    return [
        *map(len, (kernels._layouts, loaded._loaded, operator.fused_units)),
        *map(len, (plans._plans, programs._programs)),
    ]


def libraries(folder):
    maps = Path('/proc/self/maps').read_text()
    return {line for line in maps.splitlines() if str(folder) in line}


@pytest.mark.parametrize('run', [run_program, run_edge_map])
def test_programs_that_are_dropped_leave_nothing(folder, run):
    torch.compiler.reset()  # drops what other tests left
    before = tables()
    for i in range(50):
        run(1.5 + i)
    assert tables() == before
    assert not libraries(folder)


def test_a_kernel_in_use_is_loaded_once(folder):
    root = apply('mul', X, X)
    kernel, same = (
        EdgeKernel(edge_map(root, [Leaf('', unit.EDGE, torch.float32)]))
        for _ in range(2)
    )
    assert kernel.loaded is same.loaded
    number = same.loaded.number
    del same
    gc.collect()
    assert number in kernels._layouts
    assert kernel(torch.tensor([3.0])).item() == 9
    assert libraries(folder)
    del kernel
    gc.collect()
    assert number not in kernels._layouts
    assert not libraries(folder)
