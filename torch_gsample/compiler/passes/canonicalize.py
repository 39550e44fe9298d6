"""Gives each operation one form, and removes the additions of capture.

Before::

    %2 = !.to(seeds, torch.int64): int64[?]
    %3 = !slice_cols(indptr, indices, %2, num_threads=0): 3 parts
    %7 = !new_full(%5, (%6,), 0.0): float32[?]
    %8 = !.index_add_(%7, 0, %4, %5): float32[?]
    %9 = !_assert_scalar(%1, 'Runtime assertion failed for ...')

After::

    %2 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %5 = aten.new_full(%3, [%4], 0.0): float32[?]
    %6 = aten.index_add(%5, 0, %1, %3): float32[?]

* An operator is named by its overload, with positional arguments and without
  defaults.
* A call that returns its argument (a cast to the same dtype, ``contiguous`` of
  a contiguous tensor, ``detach`` without a gradient) becomes that argument,
  and so does the row of ``x[None]``.
* An in-place change of a new tensor that nothing else reads becomes a new
  value.
* A call without an operator of its name (``1 / x``, ``x[:, None]``,
  ``F.normalize``) becomes the operators that it calls.
* Each output of an operator is extracted once.
* Assertions about sizes are removed: operators check their arguments.

Not when: the operators of a call depend on values, or it is not a function of
torch; then it stays opaque in its position. An in-place change that is visible
elsewhere, or one under ``no_grad`` of a tensor with a gradient, stays in
place. Under ``autocast`` and ``inference_mode``, only single operators are
named.
"""

import inspect
import operator
import types
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import (
    SIZE_OPERATORS,
    aten,
    example,
    is_part,
    is_pure,
    modes,
)
from torch_gsample.compiler.new_values import make_new_value
from torch_gsample.compiler.retrace import fake_mode_of, retrace
from torch_gsample.torch_private import (
    OpOverload,
    OpOverloadPacket,
    overload_name,
    schema_of,
)
from torch_gsample.torch_private.dynamo import ASSERT_SCALAR
from torch_gsample.torch_private.errors import GuardOnDataDependentSymNode

#: Python's operators on tensors, by torch's name.
_NAMES: dict[Any, str] = {
    operator.add: 'add',
    operator.sub: 'sub',
    operator.mul: 'mul',
    operator.truediv: 'div',
    operator.floordiv: 'floor_divide',
    operator.mod: 'remainder',
    operator.pow: 'pow',
    operator.neg: 'neg',
    operator.eq: 'eq',
    operator.ne: 'ne',
    operator.lt: 'lt',
    operator.le: 'le',
    operator.gt: 'gt',
    operator.ge: 'ge',
    operator.and_: 'bitwise_and',
    operator.or_: 'bitwise_or',
    operator.invert: 'bitwise_not',
}
_COMMUTES = frozenset({'add', 'mul', 'bitwise_and', 'bitwise_or', 'eq', 'ne'})
#: Functions that create a tensor from numbers; some from a shape.
_FACTORIES = frozenset({'arange', 'empty', 'full', 'ones', 'zeros'})
_OF_SHAPE = frozenset({'empty', 'ones', 'zeros'})
#: Methods that take sizes or dimensions one by one.
_OF_SIZES = frozenset(
    {'expand', 'permute', 'repeat', 'reshape', 'view'}
    | {'new_empty', 'new_full', 'new_ones', 'new_zeros'}
)
#: Methods that may return their argument.
_CASTS = frozenset({'to', 'contiguous', 'detach', 'as_tensor'})


def canonicalize(graph: Graph) -> None:
    """Converts a captured graph into the form documented in :mod:`..ir`."""
    taken: dict[tuple[Any, Any], Node] = {}
    mode, fake, gone = modes(graph), fake_mode_of(graph), set[Node]()
    for node in list(graph.nodes):
        if node.op not in ('call_function', 'call_method') or node in gone:
            continue
        grad, entered = mode[node]
        if is_part(node):
            first = taken.setdefault((node.args[0], node.args[1]), node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph.erase_node(node)
        elif node.target is ASSERT_SCALAR:
            graph.erase_node(node)
        elif node.target is torch.Size:
            _inline_sizes(node)
        elif (same := _equal(node)) is not None:
            node.replace_all_uses_with(same)
            graph.erase_node(node)
        elif node.target not in SIZE_OPERATORS or _of_tensors(node):
            _name_copy(node)
            _name_operator(node)
            if entered:
                continue
            users, made = list(node.users), None
            if not isinstance(node.target, OpOverload) and not is_pure(node):
                made = retrace(graph, node, fake, grad)
            if made is not None and isinstance(example(node), (tuple, list)):
                gone.update(users)
            for new in [node] if made is None else made:
                if new is not node:
                    same = _equal(new)
                    if same is not None:
                        new.replace_all_uses_with(same)
                        graph.erase_node(new)
                        continue
                    _name_operator(new)
                make_new_value(new, fake, grad)


def _inline_sizes(node: Node) -> None:
    """Passes sizes to a call one by one: operators take no ``torch.Size``."""
    [sizes] = node.args
    for user in list(node.users):
        if user.op != 'output' and not is_part(user):
            user.args, user.kwargs = map_arg(
                (user.args, user.kwargs),
                lambda n: sizes if n is node else n,
            )
    if not node.users:
        node.graph.erase_node(node)


def name_own_operators(graph: Graph) -> None:
    """Names this package's operators only, by which keys are found."""
    for node in graph.nodes:
        if isinstance(node.target, OpOverloadPacket):
            _name_operator(node)


def _of_tensors(node: Node) -> bool:
    return any(isinstance(example(n), Tensor) for n in node.all_input_nodes)


def _called(node: Node) -> str:
    """Returns the name of a method or function of torch."""
    if node.op == 'call_method':  # `__eq__`, for one, is operator.eq
        name = str(node.target)
        return _NAMES.get(getattr(operator, name, None), name)
    if node.target in _NAMES:
        return _NAMES[node.target]
    if isinstance(node.target, OpOverload):
        return schema_of(node.target).name.partition('::')[2]
    return getattr(node.target, '__name__', '')


def _equal(node: Node) -> Node | None:
    """Returns an operand, or one of its own, that a call returns unchanged."""
    if _is_its_argument(node):
        return cast(Node, node.args[0])
    if node.target is aten.select.int and node.args[1:] == (0, 0):
        row = cast(Node, node.args[0])
        if row.target is aten.unsqueeze.default and row.args[1] == 0:
            return cast(Node, row.args[0])
    return None


def _is_its_argument(node: Node) -> bool:
    """Whether a node returns its first argument unchanged."""
    if _called(node) not in _CASTS or not node.args:
        return False
    source = node.args[0]
    before = example(source) if isinstance(source, Node) else None
    after = example(node)
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return False
    if _called(node) == 'contiguous':
        return _is_contiguous(before)
    if _called(node) == 'detach':
        return not before.requires_grad
    copies = node.kwargs.get('copy', False)
    return not copies and True not in node.args[2:] and _is_like(node)


def _is_like(node: Node) -> bool:
    """Whether a cast returns the same kind of tensor."""
    before, after = example(node.args[0]), example(node)  # type: ignore
    return bool(
        before.dtype == after.dtype
        and before.device == after.device
        and before.requires_grad == after.requires_grad
    )


def _name_copy(node: Node) -> None:
    """Replaces ``x.to(dtype_of_x, copy=True)`` with ``x.clone()``."""
    source = node.args[0] if node.args else None
    if (
        node.op == 'call_method'
        and node.target == 'to'
        and node.kwargs == {'copy': True}
        and isinstance(source, Node)
        and isinstance(example(source), Tensor)
        and _is_like(node)
    ):
        node.target, node.args, node.kwargs = 'clone', (source,), {}


def _is_contiguous(value: Tensor) -> bool:
    try:
        return value.is_contiguous()
    except GuardOnDataDependentSymNode:  # depends on an unknown size
        return False


def _name_operator(node: Node) -> None:
    target = node.target
    if target is torch.unique and len(node.args) == 1:
        node.op, node.target = 'call_method', 'unique'
        return
    if isinstance(target, OpOverloadPacket):
        target = getattr(target, target.overloads()[0])
    if isinstance(target, OpOverload):
        node.op, node.target = 'call_function', target
        _bind(node, target, node.args, node.kwargs)
        return
    name, args = _called(node), cast(tuple[Any, ...], node.args)
    if name in _COMMUTES and not isinstance(_value(args[0]), Tensor):
        args = args[::-1]
    if name == 'getattr' and args[1:] == ('T',) and _value(args[0]).dim() == 2:
        name, args = 't', args[:1]
    if name == '__getitem__' or node.target is operator.getitem:
        name, args = _indexing(args)
    if name in _OF_SIZES and not isinstance(args[1], (tuple, list)):
        args = (
            args if isinstance(args[1], torch.dtype) else (args[0], args[1:])
        )
    if name in _OF_SHAPE and not isinstance(args[0], (tuple, list)):
        args = (args,)
    overload = _resolve(name, args, node.kwargs)
    if overload is None:
        return
    if _takes(overload, node.target, len(args)) and _gives(overload, node):
        node.op, node.target = 'call_function', overload
        _bind(node, overload, args, node.kwargs)


def _takes(overload: OpOverload, function: Any, count: int) -> bool:
    """Whether a function has the same first arguments as an operator.

    Python functions, such as ``torch.nn.functional.elu``, may differ.
    """
    if not isinstance(function, types.FunctionType):
        return True
    own = list(inspect.signature(function).parameters)[:count]
    names = [argument.name for argument in schema_of(overload).arguments][
        :count
    ]
    return own[1:] == names[1:] and names[0] in ('self', own[0])


def _gives(overload: OpOverload, node: Node) -> bool:
    """Whether an operator has the results of the captured call."""
    value, returns = example(node), schema_of(overload).returns
    several = isinstance(value, (tuple, list))
    if not returns:
        return value is None
    if len(returns) == 1:
        return several == isinstance(returns[0].type, torch.ListType)
    return several and len(value) == len(returns)


def _indexing(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Returns the operator of ``x[index]`` for integers, masks and slices."""
    source, index = _value(args[0]), _value(args[1])
    if isinstance(source, Tensor) and isinstance(args[1], slice):
        bounds = args[1].start, args[1].stop, args[1].step or 1
        return 'slice', (args[0], 0, *bounds)
    if not isinstance(source, Tensor) or not isinstance(index, Tensor):
        return '', args
    integers = index.dim() > 0 and index.dtype in (torch.int32, torch.int64)
    if integers or index.dtype == torch.bool:
        return 'index', (args[0], [args[1]])
    return '', args


def _value(operand: Any) -> Any:
    if isinstance(operand, Node):
        return example(operand)
    if isinstance(operand, (tuple, list)):
        return type(operand)(_value(item) for item in operand)
    return operand


def _resolve(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> OpOverload | None:
    """Returns the operator that torch would select for the arguments."""
    packet = getattr(aten, name, None) if name.isidentifier() else None
    if packet is None or name.startswith('__'):
        return None
    values = _value(args)
    of_tensors = args and isinstance(values[0], (Tensor, tuple, list))
    if not of_tensors and name not in _FACTORIES:
        return None
    try:
        given = {key: _value(value) for key, value in kwargs.items()}
        overload = overload_name(name, values, given)
    except RuntimeError:
        return None
    found: OpOverload = getattr(packet, overload)
    return found if _has_lists(found, values) else None


def _has_lists(overload: OpOverload, values: tuple[Any, ...]) -> bool:
    """Whether an operator gets lists for its lists of tensors.

    A tensor is a sequence: torch would turn it into a list of rows if
    ``Tensor.__getitem__`` has been patched anywhere in the process.
    """
    arguments = schema_of(overload).arguments
    return not any(
        isinstance(argument.type, torch.ListType) and isinstance(value, Tensor)
        for argument, value in zip(arguments, values, strict=False)
    )


def _bind(
    node: Node,
    overload: OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Orders arguments by the schema, without default values."""
    values: dict[str, Any] = {}
    names = [argument.name for argument in schema_of(overload).arguments]
    values.update(zip(names, args, strict=False))
    values.update(kwargs)
    positional, named, skipped = [], {}, False
    for argument in schema_of(overload).arguments:
        given = argument.name in values
        value = values.get(argument.name)
        default = argument.has_default_value() and (
            not given or _same(value, argument.default_value)
        )
        if default:
            skipped = True
        elif skipped or argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    node.args, node.kwargs = tuple(positional), named


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default
