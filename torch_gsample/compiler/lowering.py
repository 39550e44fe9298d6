"""Makes a function of a rewritten graph.

The graph runs as plain Python around its operators, under autograd as in eager
mode. Lowering inserts what capture cannot know: the key of each draw, and
values that are cached for a graph.
"""

import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.compiler.bodies import bodies
from torch_gsample.compiler.cache import InvariantCache
from torch_gsample.compiler.cost import Measured, sites
from torch_gsample.compiler.edge_work import device_of
from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_operator,
    placeholders,
)
from torch_gsample.compiler.native_calls import call_natively
from torch_gsample.compiler.passes.canonicalize import name_own_operators
from torch_gsample.compiler.settle import settle
from torch_gsample.ops._check import INDEX_DTYPES, raised_in_program
from torch_gsample.ops._gradient import refuse_transforms
from torch_gsample.ops.features import index_rows, select_rows
from torch_gsample.rng import current_program
from torch_gsample.torch_private import is_transformed, schema_of


def lower(module: GraphModule) -> Callable[..., Any]:
    """Returns the function of a module with a rewritten graph."""
    for body in bodies(module):
        lower_kernels(body.graph)
        lower_gathers(body.graph)
    if sites(module.graph):
        return Measured(module, _function, settle)
    return _function(module)


def _function(
    module: GraphModule, run: Callable[..., Any] | None = None
) -> 'Lowered':
    lower_kernels(module.graph)
    lower_gathers(module.graph)
    kept = split_invariant(module)
    take_keys(module.graph)
    for body in bodies(module):
        name_own_operators(body.graph)
        take_keys(body.graph)
        body.recompile()
    call_natively(module.graph)
    module.graph.lint()
    # Dynamo's own modules compile at their first call.
    module = GraphModule(module, module.graph)
    forward = module.forward if run is None else partial(run, module)
    return Lowered(forward, kept)


class Invariants:
    """Values computed once for the inputs that they depend on.

    Args:
        caches (Sequence[Tuple]): For each part, the indices of its inputs,
            and its cache.
    """

    def __init__(self, caches: Sequence[tuple[list[int], InvariantCache]]):
        self._caches = caches

    def __call__(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the values for all inputs."""
        return tuple(
            value
            for places, cache in self._caches
            for value in cache(*[inputs[i] for i in places])
        )

    def forget(self) -> None:
        """Drops the computed values."""
        for _, cache in self._caches:
            cache.forget()


class Lowered:
    """The function of a graph.

    Args:
        forward (Callable): A function of the inputs, and of values cached for
            them.
        kept (Invariants, optional): The cached values.
    """

    def __init__(self, forward: Callable[..., Any], kept: Invariants | None):
        self._forward, self._kept = forward, kept

    def __call__(self, *inputs: Any) -> Any:
        """Runs it."""
        if is_transformed():  # kernels and cached values have no tangents
            refuse_transforms('compile', inputs)
        try:
            kept = () if self._kept is None else self._kept(inputs)
            return self._forward(*inputs, *kept)
        except RuntimeError as error:
            found = raised_in_program(error)
            if found is error:
                raise
            raise found from error

    def forget(self) -> None:
        """Drops cached values."""
        if self._kept is not None:
            self._kept.forget()


def lower_kernels(graph: Graph) -> None:
    """Compiles generated kernels, and calls them by their operator.

    Kernels with gradients stay functions with autograd formulas. Kernels on a
    GPU also stay functions, and are compiled at their call.
    """
    nodes = [
        n
        for n in graph.nodes
        if isinstance(n.target, EdgeKernel)
        and device_of(n.args[0]).type == 'cpu'
    ]
    jobs: dict[EdgeKernel, set[int]] = {}
    for node in nodes:
        wanted = jobs.setdefault(node.target, set())
        wanted.update(
            i
            for i, operand in enumerate(node.args)
            if operand.meta['example_value'].requires_grad
        )
    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        done = [
            pool.submit(kernel.prepare, tuple(sorted(gradients)))
            for kernel, gradients in jobs.items()
        ]
        for future in done:
            future.result()  # raises an error of its thread
    for node in nodes:
        if not jobs[node.target] and node.target.loaded is not None:
            size = node.kwargs.get('num_rows', 0)
            node.args, node.kwargs = (list(node.args), size), {}
            node.target = node.target.loaded


def lower_gathers(graph: Graph) -> None:
    """Uses gathers with many reads in flight, as in eager mode."""
    for node in graph.nodes:
        args: Any = node.args
        if node.target is aten.index.Tensor and len(args[1]) == 1:
            [index] = args[1]
            if index is not None and example(index).dtype in INDEX_DTYPES:
                node.target, node.args = index_rows, (args[0], index)
            continue
        found = gathered(node)
        if found is not None and example(found[1]).dtype == torch.int64:
            node.target, node.args = select_rows, found


def split_invariant(module: GraphModule) -> Invariants | None:
    """Moves invariant nodes out of a graph.

    Their values become further inputs. Returns the function of all inputs that
    computes them, if there are any. Values of different inputs are cached
    separately: a changed parameter does not invalidate values of the graph.
    """
    graph = module.graph
    marked = [
        node
        for node in graph.nodes
        if node.op == 'call_function' and node.meta.get('invariant')
    ]
    wanted = [
        node
        for node in marked
        if any(not user.meta.get('invariant') for user in node.users)
        and not isinstance(node.meta.get('example_value'), (tuple, list))
    ]
    inputs = list(placeholders(graph))
    if not wanted or not inputs:
        return None
    needs = _inputs_of(inputs + marked)
    groups: dict[frozenset[Node], list[Node]] = {}
    for node in wanted:
        groups.setdefault(needs[node], []).append(node)
    caches = []
    for used, group in groups.items():
        places = [i for i, node in enumerate(inputs) if node in used]
        part = _copy(inputs, marked, needs, used, group)
        caches.append((places, InvariantCache(part)))
    last = inputs[-1]
    for node in (node for group in groups.values() for node in group):
        with graph.inserting_after(last):
            last = graph.placeholder(f'kept_{node.name}')
        node.replace_all_uses_with(last)
    for node in reversed(marked):
        if not node.users:
            graph.erase_node(node)
    return Invariants(caches)


def _inputs_of(nodes: list[Node]) -> dict[Node, frozenset[Node]]:
    """Returns the inputs of a program on which each node depends."""
    needs: dict[Node, frozenset[Node]] = {}
    for node in nodes:
        own = [node] if node.op == 'placeholder' else []
        needs[node] = frozenset(own).union(
            *(needs[n] for n in node.all_input_nodes)
        )
    return needs


def _copy(
    inputs: list[Node],
    marked: list[Node],
    needs: dict[Node, frozenset[Node]],
    used: frozenset[Node],
    wanted: list[Node],
) -> Callable[..., tuple[Any, ...]]:
    """Returns the function of some inputs for the required values."""
    part, copies = Graph(), {}
    for node in inputs:
        if node in used:
            copies[node] = part.placeholder(node.name)
    for node in marked:
        if needs[node] <= used:
            copies[node] = part.node_copy(node, lambda n: copies[n])
    part.output(tuple(copies[node] for node in wanted))
    part.eliminate_dead_code()  # all of it is pure
    return GraphModule(torch.nn.Module(), part).forward


def take_keys(graph: Graph) -> None:
    """Gives each draw the key and call id that it would get in eager mode.

    Inside a :func:`~torch_gsample.rng.program_scope`, all draws have its key
    and consecutive call ids; elsewhere each draws a key from torch's default
    generator. This is decided at run time.
    """
    for node in list(graph.nodes):
        if not is_operator(node, 'next_key') or not all(
            _is_draw(user, node) for user in node.users
        ):
            continue
        with graph.inserting_before(node):
            draw = graph.call_function(current_program)
            key = graph.call_function(operator.getitem, (draw, 0))
            call_id = graph.call_function(operator.getitem, (draw, 1))
        for user in list(node.users):
            _set_call_id(user, node, call_id)
            user.replace_input_with(node, key)
        graph.erase_node(node)


def _is_draw(node: Node, key: Node) -> bool:
    """Whether a node draws by a key, and has no call id yet."""
    if not is_operator(node) or 'call_id' not in _names(node):
        return False
    given = _argument(node, 'call_id')
    if isinstance(given, (list, tuple)):  # one per hop
        keys = _argument(node, 'key')
        given = [n for n, k in zip(given, keys, strict=True) if k is key]
        return not any(given)
    return not given


def _argument(node: Node, name: str) -> Any:
    at = _names(node).index(name)
    return node.args[at] if at < len(node.args) else node.kwargs.get(name)


def _names(node: Node) -> list[str]:
    target: Any = node.target
    return [argument.name for argument in schema_of(target).arguments]


def _set_call_id(node: Node, key: Node, value: Any) -> None:
    given: Any = _argument(node, 'call_id')
    if isinstance(given, (list, tuple)):
        keys: Any = _argument(node, 'key')
        value = [
            value if k is key else n for n, k in zip(given, keys, strict=True)
        ]
    at = _names(node).index('call_id')
    if at < len(node.args):
        node.update_arg(at, value)
    else:
        node.update_kwarg('call_id', value)
