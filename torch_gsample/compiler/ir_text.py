"""The text of a program, which shows people and tests the effect of a pass."""

from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import example, is_pure, is_size
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.torch_private import OpOverload


def ir_text(graph: Graph) -> str:
    """Prints a program, one line per node; equal programs have equal text.

    Values are numbered in order (``%0``); inputs keep their names.
    """
    names: dict[Node, str] = {}
    lines = []
    for node in graph.nodes:
        if node.op == 'placeholder':
            names[node] = node.name
            lines.append(f'{node.name}: {_type(node)}')
        elif node.op == 'output':
            lines.append(f'return {_operand(node.args[0], names)}')
        else:
            names[node] = f'%{len(names)}'
            mark = '^' if node.meta.get('invariant') else ''
            operands = [_operand(arg, names) for arg in node.args]
            operands += [
                f'{key}={_option(key, value, names)}'
                for key, value in node.kwargs.items()
            ]
            lines.append(
                f'{mark}{names[node]} = {_name(node)}({", ".join(operands)})'
                f': {_type(node)}'
            )
    return '\n'.join(lines) + '\n'


def _name(node: Node) -> str:
    target = node.target
    if isinstance(target, OpOverload):
        name = str(target).removesuffix('.default')
        return name if is_pure(node) else f'!{name}'
    if node.op == 'call_method':
        return f'!.{target}'
    name = getattr(target, '__name__', str(target))
    return name if is_pure(node) else f'!{name}'


def _type(node: Node) -> str:
    value = example(node)
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix('torch.')
        return f'{dtype}{[_size(s) for s in value.shape]}'.replace("'", '')
    if isinstance(value, (tuple, list)):
        return f'{len(value)} parts'
    return 'size' if is_size(node) else type(value).__name__


def _size(size: Any) -> str:
    return str(size) if isinstance(size, int) else '?'


def _option(key: str, value: Any, names: dict[Node, str]) -> str:
    if key == 'frontier' and isinstance(value, int):
        return FRONTIERS[value]
    return _operand(value, names)


def _operand(value: Any, names: dict[Node, str]) -> str:
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (tuple, list)):
        items = ', '.join(_operand(item, names) for item in value)
        return f'({items})' if isinstance(value, tuple) else f'[{items}]'
    if isinstance(value, dict):
        items = ', '.join(
            f'{key}: {_operand(item, names)}' for key, item in value.items()
        )
        return f'{{{items}}}'
    return str(value)
