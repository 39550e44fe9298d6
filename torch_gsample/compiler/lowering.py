"""Makes a function of a rewritten graph.

The graph runs as plain Python around its operators, under autograd as eager
code does. What capture could not know is put in here: the key of each draw,
and the values that are kept for a graph.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from torch_gsample.compiler.cache import InvariantCache
from torch_gsample.compiler.ir import is_operator, placeholders
from torch_gsample.rng import current_program


def lower(module: GraphModule) -> Callable[..., Any]:
    """Returns the function of a module whose graph was rewritten."""
    hoisted = split_invariant(module)
    num_draws = take_keys(module.graph)
    module.graph.lint()
    module.recompile()
    forward = module.forward
    if num_draws == 0 and hoisted is None:
        return forward

    def run(*args: Any) -> Any:
        kept = () if hoisted is None else hoisted(args)
        # As eager code: a key for each draw, in the order of the program.
        draws = [item for _ in range(num_draws) for item in current_program()]
        return forward(*args, *kept, *draws)

    return run


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
    if not wanted:
        return None
    inputs = [node for node in placeholders(graph)]
    used = {n for node in marked for n in node.all_input_nodes}
    places = [i for i, node in enumerate(inputs) if node in used]
    part, copies = Graph(), {}
    for i in places:
        copies[inputs[i]] = part.placeholder(inputs[i].name)
    for node in marked:
        copies[node] = part.node_copy(node, lambda n: copies[n])
    part.output(tuple(copies[node] for node in wanted))
    for node in wanted:
        replacement = _new_input(graph, f'kept_{node.name}')
        replacement.meta = dict(node.meta)
        node.replace_all_uses_with(replacement)
    for node in reversed(marked):
        if not node.users:
            graph.erase_node(node)
    cache = InvariantCache(GraphModule(torch.nn.Module(), part).forward)
    return lambda args: cache(*[args[i] for i in places])


def take_keys(graph: Graph) -> int:
    """Makes keys inputs, and the numbers of draws.

    Inside of a :func:`~torch_gsample.rng.program_scope`, all draws have its
    key, and numbers that count on; that is known when the program runs.
    """
    keys = [node for node in graph.nodes if is_operator(node, 'next_key')]
    if not all(_is_draw(user) for key in keys for user in key.users):
        return 0
    for count, node in enumerate(keys):
        key = _new_input(graph, f'key{count}')
        call_id = _new_input(graph, f'call_id{count}')
        key.meta, call_id.meta = dict(node.meta), {'example_value': 0}
        for user in list(node.users):
            user.replace_input_with(node, key)
            _set_call_id(user, call_id)
        graph.erase_node(node)
    return len(keys)


def _new_input(graph: Graph, name: str) -> Node:
    """Adds an input after the others."""
    inputs = list(placeholders(graph))
    if not inputs:
        with graph.inserting_before(next(iter(graph.nodes))):
            return graph.placeholder(name)
    with graph.inserting_after(inputs[-1]):
        return graph.placeholder(name)


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
