"""Makes a function of a rewritten graph.

The graph runs as plain Python around its operators, under autograd as eager
code does. What capture could not know is put in here: the key of each draw,
and the values that are kept for a graph.
"""

import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.compiler.cache import InvariantCache
from torch_gsample.compiler.ir import is_operator, placeholders
from torch_gsample.rng import current_program


def lower(module: GraphModule) -> Callable[..., Any]:
    """Returns the function of a module whose graph was rewritten."""
    lower_kernels(module.graph)
    kept = split_invariant(module)
    take_keys(module.graph)
    module.graph.lint()
    module.recompile()
    forward = module.forward
    return forward if kept is None else lambda *x: forward(*x, *kept(x))


def lower_kernels(graph: Graph) -> None:
    """Compiles generated kernels, and calls them by their operator.

    Those that need gradients stay functions, of which autograd knows.
    """
    nodes = [n for n in graph.nodes if isinstance(n.target, EdgeKernel)]
    jobs: dict[EdgeKernel, set[int]] = {}
    for node in nodes:
        wanted = jobs.setdefault(node.target, set())
        wanted.update(
            i
            for i, operand in enumerate(node.args)
            if operand.meta['example_value'].requires_grad
        )
    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        for kernel, gradients in jobs.items():
            pool.submit(kernel.prepare, tuple(sorted(gradients)))
    for node in nodes:
        if not jobs[node.target] and node.target.number is not None:
            size = node.kwargs.get('num_rows', 0)
            node.args = (node.target.number, list(node.args), size)
            node.kwargs = {}
            node.target = torch.ops.gsample.edge_map.default


def split_invariant(
    module: GraphModule,
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Takes what is marked as invariant out of a graph.

    Its values become further inputs. Returns the function of all inputs that
    gives them, if there are any.
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
    used = {n for node in marked for n in node.all_input_nodes}
    places = [i for i, node in enumerate(inputs) if node in used]
    part, copies = Graph(), {}
    for i in places:
        copies[inputs[i]] = part.placeholder(inputs[i].name)
    for node in marked:
        copies[node] = part.node_copy(node, lambda n: copies[n])
    part.output(tuple(copies[node] for node in wanted))
    last = inputs[-1]
    for node in wanted:
        with graph.inserting_after(last):
            last = graph.placeholder(f'kept_{node.name}')
        node.replace_all_uses_with(last)
    for node in reversed(marked):
        if not node.users:
            graph.erase_node(node)
    cache = InvariantCache(GraphModule(torch.nn.Module(), part).forward)
    return lambda args: cache(*[args[i] for i in places])


def take_keys(graph: Graph) -> None:
    """Gives each draw the key and the number that an eager one would get.

    Inside of a :func:`~torch_gsample.rng.program_scope` all draws have its
    key, and numbers that count on; elsewhere each takes a key from torch's
    default generator. That is known when the program runs, at this place.
    """
    for node in list(graph.nodes):
        if not is_operator(node, 'next_key') or not all(
            _is_draw(user) for user in node.users
        ):
            continue
        with graph.inserting_before(node):
            draw = graph.call_function(current_program)
            key = graph.call_function(operator.getitem, (draw, 0))
            call_id = graph.call_function(operator.getitem, (draw, 1))
        for user in list(node.users):
            user.replace_input_with(node, key)
            _set_call_id(user, call_id)
        graph.erase_node(node)


def _is_draw(node: Node) -> bool:
    """Whether a node draws, and is not numbered yet."""
    if not is_operator(node) or 'call_id' not in _names(node):
        return False
    at = _names(node).index('call_id')
    given = (
        node.args[at] if at < len(node.args) else node.kwargs.get('call_id')
    )
    return not given


def _names(node: Node) -> list[str]:
    target: Any = node.target
    return [argument.name for argument in target._schema.arguments]


def _set_call_id(node: Node, value: Node) -> None:
    at = _names(node).index('call_id')
    if at < len(node.args):
        node.update_arg(at, value)
    else:
        node.update_kwarg('call_id', value)
