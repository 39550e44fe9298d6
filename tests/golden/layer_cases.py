"""Vertex programs and fused layers, with gradients: float for float.

Kernels add up in one order, on every machine. Products of matrices do not:
where there is one, numbers are small multiples of 1/4, whose sums are exact.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.golden.graphs import data, mixed
from tests.vertex.programs import PROGRAMS
from torch_gsample.vertex import nn

#: Programs without products of matrices take any numbers.
ANY_NUMBERS = {
    'gcn': {'h': 'n3', 'norm': 'n'},
    'weighted': {'h': 'n3', 'w': 'e'},
    'gat': {'eu': 'n2', 'ev': 'n2', 'h': 'n23'},
    'gatv2': {'l': 'n23', 'r': 'n23', 'w': 'e23', 'att': '23'},
    'appnp': {'h': 'n3', 'h0': 'n3', 'w': 'e'},
    'pna': {'h': 'n3'},
}
QUARTERS = {'gin': {'h': 'n3', 'eps': '1'}}
LAYERS = {
    'GCNConv': (16, 4, {'normalize': False}),
    'GATConv': (16, 4, {'heads': 2}),
    'GATv2Conv': (16, 4, {'heads': 2}),
    'RGCNConv': (16, 4, {'num_relations': 3, 'aggr': 'add'}),
    'SAGEConv': (16, 4, {'aggr': 'add'}),
    'GINConv': (None, None, {}),
    'APPNP': (None, None, {'K': 3, 'alpha': 0.25}),
}


def numbers(shape: list[int], salt: int, divisor: float) -> Tensor:
    size = int(torch.tensor(shape).prod())
    return ((mixed(size, salt, 33) - 16) / divisor).view(shape)


def edges(name: str) -> Tensor:
    """A part of the hub's graph is enough."""
    return data(name).edge_index[:, :20_000]


def program(name: str, kind: str) -> dict[str, Any]:
    """The results of a vertex program, and gradients."""
    edge_index, size = edges(name), data(name).num_nodes
    shapes = (ANY_NUMBERS | QUARTERS)[kind]
    divisor = 4.0 if kind in QUARTERS else 19.0
    sizes = {'n': size, 'e': edge_index.shape[1]}
    inputs = {
        key: numbers([sizes.get(c) or int(c) for c in shape], i, divisor)
        for i, (key, shape) in enumerate(shapes.items(), 80)
    }
    for x in inputs.values():
        x.requires_grad_()
    out = PROGRAMS[kind](edge_index, **inputs)
    # Torch adds up the gradient of a parameter over vertices, in an order that
    # depends on the processor.
    of_rows = [
        inputs[key]
        for key, shape in shapes.items()
        if kind in QUARTERS or shape[0] in sizes
    ]
    return {'out': out, 'grad': gradients(out, of_rows)}


def gradients(out: Any, inputs: list[Tensor]) -> list[Tensor]:
    outs = [out] if isinstance(out, Tensor) else [*out]
    ones = [numbers(list(x.shape), 90, 4.0) for x in outs]
    return list(torch.autograd.grad(outs, inputs, ones))


def layer(name: str, kind: str) -> dict[str, Any]:
    """The results of a layer, and the gradient of features."""
    edge_index, size = edges(name), data(name).num_nodes
    in_channels, out_channels, options = LAYERS[kind]
    if kind == 'GINConv':
        made = nn.GINConv(torch.nn.Linear(16, 4))
    elif in_channels is None:
        made = getattr(nn, kind)(**options)
    else:
        made = getattr(nn, kind)(in_channels, out_channels, **options)
    for i, parameter in enumerate(made.parameters()):
        parameter.data = numbers(list(parameter.shape), 100 + i, 4.0)
    x = numbers([size, 16], 99, 4.0).requires_grad_()
    args = [mixed(edge_index.shape[1], 98, 3)] if kind == 'RGCNConv' else []
    out = made(x, edge_index, *args)
    if kind in ('GATConv', 'GATv2Conv'):  # backward has inexact products
        return {'out': out}
    return {'out': out, 'grad': gradients(out, [x])}


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name, which begins with that of the program."""
    out: dict[str, Callable[[], Any]] = {}
    for name in ('small', 'hub'):
        for kind in ANY_NUMBERS | QUARTERS:
            out[f'{kind}/{name}'] = partial(program, name, kind)
        for kind in LAYERS:
            out[f'{kind}/{name}'] = partial(layer, name, kind)
    return out
