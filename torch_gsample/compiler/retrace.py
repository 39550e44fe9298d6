"""Replaces an opaque call with the torch operators that it calls.

Python functions, methods of Python's operators and indexing are not torch
operators, but call some. Only the call is traced again, above autograd, where
operators still are those of the program: tracing the whole program would take
ten times as long.
"""

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import (
    SIZE_OPERATORS,
    aten,
    example,
    is_pure,
    needs_gradient,
    tensors_of,
)
from torch_gsample.torch_private import FakeTensor, OpOverload
from torch_gsample.torch_private.dynamo import examples_of, operators_of

#: Modules of functions whose only effect is that of their operators.
_MODULES = frozenset(
    {'torch', 'torch.functional', 'torch.nn.functional', '_operator'}
    | {f'torch._C._{name}' for name in ('fft', 'linalg', 'nn', 'special')}
    | {'torch._jit_internal'}  # functions with optional results
)
#: Attributes that are operators.
_VIEWS = frozenset({'H', 'T', 'imag', 'mH', 'mT', 'real'})
#: The end of an unbounded slice.
_LAST = 2**63 - 1


def retrace(
    graph: Graph, node: Node, mode: Any, keeps_gradient: bool
) -> list[Node] | None:
    """Replaces an opaque call.

    Args:
        graph (torch.fx.Graph): Its program.
        node (torch.fx.Node): The call.
        mode (FakeTensorMode, optional): The mode of the examples.
        keeps_gradient (bool): Whether gradients are recorded at the call.

    Returns:
        List[torch.fx.Node]: Its replacement, in order; None if the call is
        unchanged because its operators are unknown.
    """
    if not _is_of_torch(node):
        return None
    inputs = node.all_input_nodes
    try:
        module = operators_of(
            _caller(node), [example(n) for n in inputs], mode, keeps_gradient
        )
        found: Graph = module.graph
        _give_examples(found, inputs, mode, keeps_gradient)
        _replace_constants(module)
        _drop_what_does_nothing(found)
    except Exception:  # such as a branch on a value
        return None
    result = found.output_node().args[0]
    if not all(map(_is_known, found.nodes)) or not _fits(node, result):
        return None
    return _splice(graph, node, found, result)


def fake_mode_of(graph: Graph) -> Any:
    """Returns the fake mode of a program's examples."""
    tensors = (t for node in graph.nodes for t in tensors_of(node))
    fake = (t.fake_mode for t in tensors if isinstance(t, FakeTensor))
    return next(fake, None)


def _is_of_torch(node: Node) -> bool:
    """Whether a call is a documented torch function with known examples."""
    if node.target is getattr:
        if node.args[1] not in _VIEWS:
            return False
    elif node.op == 'call_function':
        module = getattr(node.target, '__module__', None) or 'torch'
        private = getattr(node.target, '__name__', '_').startswith('_')
        if module not in _MODULES or private:
            return False
    values = [example(n) for n in node.all_input_nodes]
    kinds = Tensor, torch.SymInt, torch.SymBool, torch.SymFloat
    if not all(isinstance(value, (*kinds, int, float)) for value in values):
        return False
    return bool(tensors_of(node)) or node.target is operator.setitem


def _caller(node: Node) -> Any:
    """Returns a function of the inputs of a call."""
    target: Any = node.target
    inputs = node.all_input_nodes

    def call(*values: Any) -> Any:
        known = dict(zip(inputs, values, strict=True))
        given = map_arg((node.args, node.kwargs), known.__getitem__)
        args, kwargs = given
        if node.op == 'call_method':
            return getattr(args[0], target)(*args[1:], **kwargs)
        return target(*args, **kwargs)

    return call


def _give_examples(
    found: Graph, inputs: list[Node], mode: Any, keeps_gradient: bool
) -> None:
    """Sets examples, which the trace has without gradients."""
    inputs = list(inputs)
    for node in found.nodes:
        value = node.meta.get('val')
        if node.op == 'placeholder':
            value = example(inputs.pop(0))
        elif node.op == 'call_function' and any(
            map(needs_gradient, node.all_input_nodes)
        ):
            args, kwargs = map_arg((node.args, node.kwargs), example)
            with examples_of(mode, keeps_gradient):
                value = node.target(*args, **kwargs)
        node.meta = {'example_value': value}


def _replace_constants(module: Any) -> None:
    """Replaces ``torch.tensor(2.0)`` with an operator."""
    for node in list(module.graph.nodes):
        if node.target is not aten.lift_fresh_copy.default:
            continue
        [constant] = node.args
        value = getattr(module, constant.target)
        if value.dim() == 0:
            node.target, node.args = aten.full.default, ([], value.item())
            node.kwargs = {'dtype': value.dtype, 'device': value.device}
            module.graph.erase_node(constant)


def _drop_what_does_nothing(graph: Graph) -> None:
    for node in reversed(list(graph.nodes)):
        if node.op == 'call_function' and not node.users and is_pure(node):
            graph.erase_node(node)
    for node in list(graph.nodes):
        kwargs = dict(node.kwargs)
        if kwargs.get('pin_memory', 0) is False:
            del kwargs['pin_memory']
            node.kwargs = kwargs
        whole = node.target is aten.slice.Tensor and node.args[3] == _LAST
        if whole:
            node.update_arg(3, None)
        if (
            (whole and node.args[2] == 0 and len(node.args) == 4)
            # On new tensors, where `torch.tensor` calls it.
            or (
                node.target is aten.detach_.default
                and node.args[0].op != 'placeholder'
                and not needs_gradient(node)
            )
        ):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _is_known(node: Node) -> bool:
    if node.op != 'call_function':
        return node.op in ('placeholder', 'output')
    target = node.target
    if not isinstance(target, OpOverload):
        return target is operator.getitem or target in SIZE_OPERATORS
    # Operators that change metadata invalidate Dynamo's information.
    return torch.Tag.inplace_view not in target.tags


def _fits(node: Node, result: Any) -> bool:
    """Whether a trace has results of the captured kinds."""
    value = example(node)
    if not isinstance(value, (tuple, list)):
        return _is_like(result, value) and not (
            # A change without an operator, such as `requires_grad_`.
            isinstance(result, Node)
            and result.op == 'placeholder'
            and str(node.target).endswith('_')
        )
    return (
        isinstance(result, (tuple, list))
        and len(result) == len(value)
        and all(map(_is_like, result, value))
        and all(user.target is operator.getitem for user in node.users)
    )


def _is_like(result: Any, value: Any) -> bool:
    if not isinstance(result, Node) or not isinstance(value, Tensor):
        return result is None and value is None
    other = example(result)
    return (
        isinstance(other, Tensor)
        and other.dtype == value.dtype
        and other.dim() == value.dim()
        and other.device == value.device
        and other.requires_grad == value.requires_grad
    )


def _splice(graph: Graph, node: Node, found: Graph, result: Any) -> list[Node]:
    """Copies a trace into a program at the position of a call."""
    new: dict[Node, Node] = {}
    copies = []
    inputs = iter(node.all_input_nodes)
    for inner in found.nodes:
        if inner.op == 'placeholder':
            new[inner] = next(inputs)
        elif inner.op == 'call_function':
            with graph.inserting_before(node):
                copy = graph.node_copy(inner, new.__getitem__)
            copy.meta = {**node.meta, **inner.meta}
            new[inner] = copy
            copies.append(copy)
    if isinstance(result, Node):
        ends = [(node, result)]
    else:
        users = list(node.users)
        ends = [(user, result[user.args[1]]) for user in users]
    for old, inner in ends:
        end = new[inner]
        if end in copies:  # keep sizes known to the program
            end.meta['example_value'] = example(old)
        old.replace_all_uses_with(end)
        graph.erase_node(old)
    if node not in [old for old, _ in ends]:
        graph.erase_node(node)
    return copies
