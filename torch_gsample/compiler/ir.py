"""The intermediate representation, and its guarantees for passes.

A program is a ``torch.fx.Graph``. After :mod:`.passes.canonicalize` its nodes
are

=================  ==========================================================
``placeholder``    an input: a part of a graph, a dense tensor, a size
``gsample.*``      an operator of this package, as ``OpOverload``
``aten.*``         an operator of torch without a side effect
``edge_map``       an :class:`~torch_gsample.codegen.kernel.EdgeKernel`
``getitem``        an output of an operator with several outputs
arithmetic         of sizes: ``operator.add`` and the like on ``SymInt``
``choose``         one of equal values, see :mod:`.passes.select_layout`
opaque             everything else: it runs as plain torch, in its position
``output``         the results of the program
=================  ==========================================================

**Purity comes from schemas.** A node may be merged, moved or dropped only if
:func:`is_pure` holds: its operator is of torch or of this package, writes to
no argument, returns something, and draws nothing from torch's generator. Draws
of this package are pure functions of their key. Drawing a key writes to the
state of the keys, so two draws never become one. Other nodes keep their order.
A node without a schema may change all of its inputs.
"""

import contextlib
import functools
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from torch_gsample.torch_private import (
    FakeTensor,
    OpOverload,
    schema_of,
    tree_leaves,
)
from torch_gsample.torch_private.dynamo import (
    ENTERS,
    EXITS,
    SET_GRAD_ENABLED,
    are_same,
    memory_of,
)

aten = torch.ops.aten

#: Operators on sizes.
SIZE_OPERATORS = frozenset(
    [
        getattr(operator, name)
        for name in 'add sub mul mod neg floordiv eq ne ge gt le lt'.split()
    ]
    + [operator.not_, torch.sym_max, torch.sym_min, torch.sym_not]
    + [torch.sym_sum, aten.sym_size.int]
)

#: Types of sizes, and of their comparisons.
SIZES = int, bool, torch.SymInt, torch.SymBool

#: The only pure method, which passes know by this name. Its operator is
#: private to torch, and has two more outputs.
_UNIQUE = 'unique'


def choose(site: str, **candidates: Any) -> Any:
    """Returns one of equal values: the first, until the choice is made.

    Args:
        site (str): The choice; all nodes of a site choose alike.
        **candidates (Any): The values, by candidate.
    """
    return next(iter(candidates.values()))


def is_operator(node: Node, name: str | None = None) -> bool:
    """Whether a node calls an operator of this package (by name)."""
    target = node.target
    return (
        node.op == 'call_function'
        and isinstance(target, OpOverload)
        and target.namespace == 'gsample'
        and (name is None or schema_of(target).name == f'gsample::{name}')
    )


def has_only(node: Node, *options: str) -> bool:
    """Whether a draw has only ``call_id`` and some optional arguments."""
    return len(node.args) <= 4 and node.kwargs.keys() <= {*options}


def is_part(node: Node) -> bool:
    """Whether a node is one of the outputs of an operator."""
    return (
        node.op == 'call_function'
        and node.target is operator.getitem
        and isinstance(node.args[0], Node)
        and isinstance(example(node.args[0]), (tuple, list))
    )


def is_size(node: Node) -> bool:
    """Whether a node is a number that is symbolic in Dynamo."""
    return isinstance(example(node), SIZES)


def is_pure(node: Node) -> bool:
    """Whether equal calls can be merged, and unused calls dropped."""
    if node.op in ('placeholder', 'get_attr'):
        return True
    target: Any = node.target
    if node.op != 'call_function':
        return node.op == 'call_method' and target == _UNIQUE
    if isinstance(target, OpOverload):
        is_function, changed = _effects(target)
        return is_function and not (changed and _writes(node))
    if target in SIZE_OPERATORS or target is choose or is_part(node):
        return True
    return getattr(target, 'is_pure', False)  # generated kernels


@functools.cache
def _effects(operator: OpOverload) -> tuple[bool, tuple[tuple[int, str], ...]]:
    """Returns the side effects of an operator, by its schema.

    Returns:
        bool: Whether calls that change no argument have no other effect.
        Tuple[Tuple[int, str], ...]: Indices and names of the arguments that
            calls may change.
    """
    schema = schema_of(operator)
    is_function = bool(
        operator.namespace in ('aten', 'gsample')
        and schema.returns
        and torch.Tag.nondeterministic_seeded not in operator.tags
    )
    return is_function, tuple(
        (at, argument.name)
        for at, argument in enumerate(schema.arguments)
        if (argument.alias_info is not None and argument.alias_info.is_write)
        # Schemas of normalisations omit that these are updated.
        or argument.name in ('running_mean', 'running_var')
    )


def _writes(node: Node) -> list[Any]:
    """Returns the arguments that a call of an operator changes."""
    _, changed = _effects(node.target)
    found = [
        node.args[at] if at < len(node.args) else node.kwargs.get(name)
        for at, name in changed
    ]
    return [value for value in found if value is not None]


@functools.cache
def _returns_views(operator: OpOverload) -> bool:
    """Whether an operator returns views, by its schema."""
    returns = schema_of(operator).returns
    return any(item.alias_info is not None for item in returns)


def live_nodes(graph: Graph) -> set[Node]:
    """Returns nodes with results or effects, and those that they use."""
    live: set[Node] = set()
    for node in reversed(graph.nodes):
        used = any(user in live for user in node.users)
        if used or node.op == 'output' or not is_pure(node):
            live.add(node)
    return live


def may_change(graph: Graph, trusted: Node | None = None) -> set[Node]:
    """Returns values that a node (except ``trusted``) may change in place.

    An operator changes the arguments that its schema names; an opaque node may
    change all its inputs; views share changes with their tensor. Such values
    must not be read at another position, or fewer times.
    """
    values = [
        value
        for node in graph.nodes
        if node.op != 'output' and node is not trusted and not is_pure(node)
        for value in written(node)
    ]
    seen, owners, found = set[Node](), set[Node](), set[Node]()
    while values:
        value = values.pop()
        if value in seen:
            continue
        seen.add(value)
        taken = value.all_input_nodes
        if taken and is_view(value):
            values += taken
        else:
            owners.add(value)
    for node in graph.nodes:
        is_taken = any(n in found for n in node.all_input_nodes)
        if node in owners or (is_taken and is_view(node)):
            found.add(node)
    return found


def written(node: Node) -> list[Node]:
    """Returns the inputs that an impure node may change in place."""
    if not isinstance(node.target, OpOverload):
        return node.all_input_nodes
    return [n for n in tree_leaves(_writes(node)) if isinstance(n, Node)]


def is_view(node: Node) -> bool:
    """Whether a node's result may share memory with its inputs.

    Schemas of composite operators, such as ``type_as``, do not always tell.
    """
    if not isinstance(node.target, OpOverload):
        return not getattr(node.target, 'is_pure', False)
    if _returns_views(node.target):
        return True
    if node.target.namespace == 'gsample':
        return False  # opcheck has verified these schemas
    taken = {memory_of(t) for n in node.all_input_nodes for t in tensors_of(n)}
    return any(memory_of(tensor) in taken for tensor in tensors_of(node))


def modes(graph: Graph) -> dict[Node, tuple[bool, tuple[Any, ...]]]:
    """Returns the modes that a program sets for each node.

    Whether gradients are recorded, and entered modes (``torch.autocast``,
    ``torch.inference_mode``) by name and arguments.
    """
    grad, entered, found = torch.is_grad_enabled(), dict[Any, Any](), {}
    for node in graph.nodes:
        name = getattr(node.target, '__name__', '')
        if node.target is SET_GRAD_ENABLED:
            grad = bool(node.args[0])
        elif name.startswith(ENTERS):
            entered[node] = name, node.args
        elif name.startswith(EXITS):
            entered.pop(node.args[0], None)
        found[node] = grad, tuple(entered.values())
    return found


def example(node: Node) -> Any:
    """Returns the traced value of a node: fake tensors and symbols."""
    return node.meta.get('example_value')


def tensors_of(node: Node) -> list[Tensor]:
    """Returns the traced tensors of a node."""
    value = example(node)
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v for v in values if isinstance(v, Tensor)]


def needs_gradient(node: Node) -> bool:
    """Whether a tensor of a node requires gradients."""
    return any(tensor.requires_grad for tensor in tensors_of(node))


def same_size(first: Any, second: Any) -> bool:
    """Whether two sizes (numbers, symbols, nodes) are known to be equal.

    Comparing symbols directly would add an assertion to the program.
    """
    first, second = (
        example(size) if isinstance(size, Node) else size
        for size in (first, second)
    )
    if isinstance(first, torch.SymInt) and isinstance(second, torch.SymInt):
        return are_same(first, second)
    return type(first) is type(second) is int and first == second


def parts(node: Node) -> dict[int, Node]:
    """Returns the nodes of an operator's outputs, by index."""
    return {
        user.args[1]: user  # type: ignore[misc]
        for user in node.users
        if is_part(user) and user.args[0] is node
    }


def arguments(node: Node) -> dict[str, Any]:
    """Returns the arguments of an operator by name, with defaults."""
    target: Any = node.target
    given = dict(node.kwargs)
    names = [a.name for a in schema_of(target).arguments]
    given.update(zip(names, node.args, strict=False))
    for argument in schema_of(target).arguments:
        if argument.name not in given and argument.has_default_value():
            given[argument.name] = argument.default_value
    return given


def unique_options(node: Node) -> tuple[bool, bool] | None:
    """Returns whether ``x.unique()`` has inverse positions, and counts.

    None for other calls, and for distinct rows or an order that is not
    ascending.
    """
    if node.op != 'call_method' or node.target != _UNIQUE:
        return None
    given = {'sorted': True, 'dim': None} | dict(node.kwargs)
    order = given.pop('sorted'), given.pop('dim')
    inverse = given.pop('return_inverse', False)
    counts = given.pop('return_counts', False)
    if len(node.args) > 1 or order != (True, None) or given:
        return None
    return bool(inverse), bool(counts)


def part_of(value: Any, operator: str, number: int) -> Node | None:
    """Returns the operator call whose output of this index a value is."""
    if not isinstance(value, Node) or not is_part(value):
        return None
    call, place = value.args
    if place != number or not is_operator(call, operator):  # type: ignore
        return None
    return call  # type: ignore[return-value]


def gathered(node: Any) -> tuple[Any, Any] | None:
    """Returns tensor and index of a gather along the first dimension."""
    if not isinstance(node, Node):
        return None
    args: Any = node.args
    if node.target is aten.index_select.default and args[1] == 0:
        return args[0], args[2]
    if node.target is aten.index.Tensor and len(args[1]) == 1:
        [index] = args[1]
        integers = example(index).dtype in (torch.int32, torch.int64)
        if integers and example(index).dim() == 1:
            return args[0], index
    return None


def call(
    graph: Graph, target: Any, args: tuple[Any, ...], **kwargs: Any
) -> Node:
    """Adds the call of an operator, with an example of its result."""
    node = graph.call_function(target, args, kwargs)
    given = map_arg((args, kwargs), example)
    fake = [v for v in tree_leaves(given) if isinstance(v, FakeTensor)]
    with fake[0].fake_mode if fake else contextlib.nullcontext():
        node.meta['example_value'] = target(*given[0], **given[1])
    return node


def placeholders(graph: Graph) -> Iterator[Node]:
    """Yields the inputs, in order."""
    return (node for node in graph.nodes if node.op == 'placeholder')


def add_node(
    graph: Graph, value: Tensor, like: Node, target: Any, *args: Any
) -> Node:
    """Inserts a call.

    Args:
        graph (torch.fx.Graph): The graph.
        value (torch.Tensor): An example of its shape and dtype.
        like (torch.fx.Node): The result requires gradients if this node does.
        target (Callable): The function.
        *args (Any): Its arguments.
    """
    node = graph.call_function(target, args)
    needs_gradient = example(like).requires_grad
    node.meta['example_value'] = value.detach().requires_grad_(needs_gradient)
    return node


def erase_unused(graph: Graph, node: Node) -> None:
    """Erases a node without users, and nodes that only it used."""
    waiting, erased = [node], set[Node]()
    while waiting:
        node = waiting.pop()
        kept = node.users or node.op == 'placeholder' or not is_pure(node)
        if node in erased or kept:
            continue
        waiting += node.all_input_nodes
        graph.erase_node(node)
        erased.add(node)
