"""Parts of a program that are unknown to passes, and their cost."""

from torch.fx import Graph, Node

from torch_gsample.compiler.errors import line_of
from torch_gsample.compiler.ir import is_operator, is_pure, written
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes
from torch_gsample.torch_private import OpOverload
from torch_gsample.torch_private.dynamo import ENTERS, EXITS, SET_GRAD_ENABLED


def describe_opaque(graph: Graph) -> list[str]:
    """Describes nodes that may have an effect, their lines and costs.

    Args:
        graph (torch.fx.Graph): A program after all passes.

    Returns:
        List[str]: A sentence for each node.
    """
    return [_describe(graph, node) for node in graph.nodes if _is_opaque(node)]


def _is_opaque(node: Node) -> bool:
    if not node.op.startswith('call') or is_pure(node) or is_operator(node):
        return False
    name = getattr(node.target, '__name__', '')
    mode = node.target is SET_GRAD_ENABLED or name.startswith((ENTERS, EXITS))
    return not mode


def _describe(graph: Graph, node: Node) -> str:
    name = str(getattr(node.target, '__name__', node.target))
    name = name.removesuffix('.default')
    line = line_of(node.meta.get('stack_trace') or '')
    text = f'`{name}`{f" at {line}" if line else ""}'
    if not written(node):
        return f'{text} draws, or may: it is not merged, moved or dropped'
    known = isinstance(node.target, OpOverload)
    text += ' changes a tensor' if known else ' may change its inputs'
    lost = invariant_nodes(graph, node) - invariant_nodes(graph) - {node}
    count = sum(n.op.startswith('call') for n in lost)
    if not count:
        return f'{text}: it runs in its place'
    operators = 'operator runs' if count == 1 else 'operators run'
    return f'{text}: {count} {operators} in each call, not once a graph'
