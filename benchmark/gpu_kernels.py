"""Rows on generated kernels, which NVRTC compiles on the GPU's machine."""

from collections.abc import Iterator

import torch
from gpu_bounds import SECTOR, Bench, Row

from torch_gsample import SparseSample
from torch_gsample.codegen import unit
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import Leaf
from torch_gsample.vertex import nn

HEADS, CHANNELS = 8, 8  # of attention


def edge_kernels(bench: Bench) -> Iterator[Row]:
    """sum(x * x) of columns: values and pointers are read, sums written."""
    indptr = bench.graph[0]
    value = torch.rand(bench.host.num_edges, device=bench.device)
    x = operand(0, value.dtype)
    pointers = Leaf('', unit.POINTERS, indptr.dtype)
    operands = Leaf('', unit.EDGE, value.dtype), pointers
    kernel = EdgeKernel(edge_map(apply('mul', x, x), operands, 'sum'))
    ms, out = bench.milliseconds(lambda _: kernel.run(value, indptr))
    assert isinstance(out, torch.Tensor)
    moved = value.nbytes + indptr.nbytes + out.nbytes
    yield Row(
        f'sum(x * x) of the columns of {value.numel():,} edges',
        ms,
        1e3 * moved / bench.rates.copy,
        note=f'{moved / ms / 1e6:.0f} GB/s',
    )


def attention(bench: Bench) -> Iterator[Row]:
    """A fused layer of graph attention, forward, and with its backward.

    Forward, an edge reads its source's features and scores at random;
    backward, its destination's gradients and scores. Each also reads,
    transforms and writes the nodes' values once.
    """
    torch.manual_seed(0)
    matrix = SparseSample.from_csc(*bench.graph)
    width = HEADS * CHANNELS
    layer = nn.GATConv(width, CHANNELS, HEADS, add_self_loops=False)
    layer = layer.to(bench.device)
    x = torch.rand(bench.host.num_cols, width, device=bench.device)

    def forward(_: int) -> object:
        with torch.no_grad():
            return layer(x, matrix)

    def both(_: int) -> object:
        layer(x.requires_grad_(), matrix).square().sum().backward()
        return x.grad

    edges, rates = bench.host.num_edges, bench.rates
    sectors = edges * -(-4 * width // SECTOR) + edges * -(-4 * HEADS // SECTOR)
    copied = 3 * x.nbytes + edges * bench.graph[1].element_size()
    bound = 1e3 * (sectors / rates.reads + copied / rates.copy)
    name = f'graph attention of {HEADS} x {CHANNELS} features'
    ms, _ = bench.milliseconds(forward, rounds=9)
    yield Row(f'{name}, forward', ms, bound)
    ms, _ = bench.milliseconds(both, rounds=9)
    yield Row(f'{name}, and backward', ms, 2 * bound)
