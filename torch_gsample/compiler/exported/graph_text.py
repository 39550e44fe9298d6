"""The graph of an exported program as JSON.

A graph after all passes comes in, plain JSON values go out, and back. Nodes
refer to earlier nodes by index; kernels are in a list.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.compiler.errors import line_of
from torch_gsample.compiler.exported.allowed import (
    METHODS,
    check_keywords,
    function_of,
    name_of,
)
from torch_gsample.compiler.exported.unit_text import (
    unit_from_json,
    unit_to_json,
)
from torch_gsample.compiler.ir import example
from torch_gsample.torch_private import schema_of

#: Torch classes whose values are arguments, by the name of their kind.
_ENUMS: dict[str, type] = {
    'dtype': torch.dtype,
    'layout': torch.layout,
    'memory_format': torch.memory_format,
}


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """Returns a graph as plain values.

    Raises:
        ValueError: If it calls a function or has a value that a file does not
            support; the error names it.
    """
    index = {node: i for i, node in enumerate(graph.nodes)}
    kernels: dict[EdgeKernel, int] = {}
    nodes = []
    for node in graph.nodes:
        try:
            target = _target_of(node, kernels)
            check_keywords(node.target, node.kwargs)
        except ValueError as error:
            raise ValueError(f'{error}{_line_of(node)}') from error
        args = () if node.op == 'placeholder' else node.args
        nodes.append(
            {
                'op': node.op,
                'target': target,
                'args': [_spell(arg, index) for arg in args],
                'kwargs': {
                    key: _spell(value, index)
                    for key, value in node.kwargs.items()
                },
                'invariant': bool(node.meta.get('invariant')),
                'example': _spell_example(node),
            }
        )
    operators = {
        str(node.target): str(schema_of(node.target))
        for node in graph.nodes
        if schema_of(node.target) is not None
    }
    return {
        'nodes': nodes,
        'kernels': [unit_to_json(kernel.unit) for kernel in kernels],
        'operators': operators,
    }


def _target_of(node: Node, kernels: dict[EdgeKernel, int]) -> Any:
    """Returns the target of a node by name, or the index of a kernel.

    Raises:
        ValueError: If a file may not call it.
    """
    if node.op in ('placeholder', 'output'):
        return None
    if isinstance(node.target, EdgeKernel):
        return kernels.setdefault(node.target, len(kernels))
    if node.op == 'call_method' and node.target in METHODS:
        return node.target
    if not node.op.startswith('call'):  # the body of a torch loop
        name_of(next(iter(node.users)).target)
        raise ValueError(f'a file cannot hold {node.op} {node.target!r}')
    return name_of(node.target)


def _line_of(node: Node) -> str:
    """Returns the source line of a node, for errors."""
    for found in (node, *node.users):
        line = line_of(found.meta.get('stack_trace') or '')
        if line:
            return f' at {line}'
    return ''


def graph_from_json(value: Any) -> GraphModule:
    """Returns the module of plain values.

    Raises:
        KeyError, TypeError or ValueError: If they are not a supported graph.
    """
    for name, schema in value['operators'].items():
        here = str(schema_of(function_of(name)))
        if here != schema:
            raise ValueError(
                f'{name} has different arguments: {here} here, in the file '
                f'{schema}'
            )
    kernels = [EdgeKernel(unit_from_json(unit)) for unit in value['kernels']]
    graph, done = Graph(), list[Node]()
    for item in value['nodes']:
        op, target = item['op'], item['target']
        if done and done[-1].op == 'output':
            raise ValueError('a node comes after the output')
        args = tuple(_read(arg, done) for arg in item['args'])
        kwargs = {k: _read(v, done) for k, v in item['kwargs'].items()}
        function: Any = None
        if op == 'call_function':
            function = (
                kernels[target]
                if type(target) is int and 0 <= target < len(kernels)
                else function_of(target)
            )
        elif op == 'call_method':
            if target not in METHODS:
                raise ValueError(f'a file may not call the method {target!r}')
            function = target
        elif op not in ('placeholder', 'output'):
            raise ValueError(f"'op' must be known (got {op!r})")
        check_keywords(function, kwargs)
        if op == 'placeholder':
            if any(node.op != 'placeholder' for node in done):
                raise ValueError('an input comes after other nodes')
            node = graph.placeholder(f'input_{len(done)}')
        elif op == 'output':
            node = graph.output(*args)
        else:
            node = graph.create_node(op, function, args, kwargs)
        node.meta['invariant'] = bool(item['invariant'])
        node.meta['example_value'] = _read_example(item['example'])
        done.append(node)
    if not done or done[-1].op != 'output':
        raise ValueError('a program must end in an output')
    return GraphModule(torch.nn.Module(), graph)


def _spell_example(node: Node) -> Any:
    """Returns the properties that lowering reads: dtype, rank, gradient."""
    value = example(node)
    if isinstance(value, Tensor):
        dtype = str(value.dtype).removeprefix('torch.')
        return [dtype, value.dim(), value.requires_grad]
    return len(value) if isinstance(value, (tuple, list)) else None


def _read_example(value: Any) -> Any:
    if isinstance(value, list):
        dtype, rank, grad = value
        empty = torch.empty((0,) * min(rank, 64), dtype=_enum('dtype', dtype))
        return empty.requires_grad_(bool(grad))
    return None if value is None else (None,) * min(value, 1 << 10)


def _spell(value: Any, index: dict[Node, int]) -> Any:
    """Returns an argument of a node as plain values."""
    if isinstance(value, Node):
        return {'node': index[value]}
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float('inf') else {'float': str(value)}
    if isinstance(value, list):
        return [_spell(item, index) for item in value]
    if isinstance(value, tuple):  # also sizes of torch
        return {'tuple': [_spell(item, index) for item in value]}
    if isinstance(value, slice):
        parts = value.start, value.stop, value.step
        return {'slice': [_spell(item, index) for item in parts]}
    if isinstance(value, torch.device):
        return {'device': str(_device(value))}
    for name, kind in _ENUMS.items():
        if isinstance(value, kind):
            return {name: str(value).removeprefix('torch.')}
    if value is Ellipsis:
        return {'ellipsis': None}
    raise ValueError(f'a file cannot hold {value!r}')


def _read(value: Any, done: Sequence[Node]) -> Any:
    if isinstance(value, list):
        return [_read(item, done) for item in value]
    if not isinstance(value, dict):
        return value
    [(kind, inner)] = value.items()
    readers: dict[str, Callable[[], Any]] = {
        'node': lambda: done[_number(inner, len(done))],
        'float': lambda: float(inner),
        'tuple': lambda: tuple(_read(item, done) for item in inner),
        'slice': lambda: slice(*(_read(item, done) for item in inner)),
        'device': lambda: _device(inner),
        'ellipsis': lambda: Ellipsis,
    }
    if kind in _ENUMS:
        return _enum(kind, inner)
    return readers[kind]()


def _device(name: Any) -> torch.device:
    if str(name) != 'cpu':
        raise ValueError(f"a device must be 'cpu' (got '{name}')")
    return torch.device('cpu')


def _number(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f'a node must come before its users (got {value!r})')
    return value


def _enum(kind: str, name: Any) -> Any:
    found = vars(torch).get(name)
    if not isinstance(found, _ENUMS[kind]):
        raise ValueError(f'torch has no {kind} {name!r}')
    return found
