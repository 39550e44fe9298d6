"""Invariants of a program, checked after each pass."""

from typing import Any

from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import SIZES, example, is_part
from torch_gsample.torch_private import tree_leaves


class InvalidGraph(RuntimeError):
    """A pass violated the representation."""


def kinds(graph: Graph) -> dict[Node, Any]:
    """Returns properties that passes preserve: dtype and rank of nodes.

    For results of the program, also their number, and whether they require
    gradients.
    """
    found = {node: _kind(example(node)) for node in graph.nodes}
    output = graph.output_node()
    found[output] = tuple(
        (_kind(value), getattr(value, 'requires_grad', False))
        for value in map_arg(tree_leaves(output.args), example)
    )
    return found


def _kind(value: Any) -> Any:
    if isinstance(value, Tensor):
        return str(value.dtype).removeprefix('torch.'), value.dim()
    if isinstance(value, (tuple, list)):
        return tuple(map(_kind, value))
    return 'size' if isinstance(value, SIZES) else type(value).__name__


def verify(
    graph: Graph, before: dict[Node, Any] | None = None
) -> dict[Node, Any]:
    """Checks a graph, and returns its :func:`kinds`.

    Args:
        graph (torch.fx.Graph): The graph after a pass.
        before (Dict[torch.fx.Node, Any], optional): Its :func:`kinds` before
            the pass.

    Raises:
        InvalidGraph: If a node uses a later node or an output that does not
            exist, the program has no result, or the dtype or rank of an
            earlier node or of a result has changed.
    """
    seen: set[Node] = set()
    outputs = 0
    for node in graph.nodes:
        for used in node.all_input_nodes:
            if used not in seen:
                raise InvalidGraph(f'{node} uses {used}, which comes later')
        if node.op == 'placeholder' and any(
            n.op != 'placeholder' for n in seen
        ):
            raise InvalidGraph(f'the input {node} comes after other nodes')
        if is_part(node):
            size = len(example(node.args[0]))
            if not 0 <= node.args[1] < size:
                raise InvalidGraph(f'{node} takes output {node.args[1]}')
        outputs += node.op == 'output'
        seen.add(node)
    if outputs != 1:
        raise InvalidGraph(f'the program has {outputs} outputs')
    graph.lint()
    now = kinds(graph)
    for node, kind in (before or {}).items():
        if now.get(node, kind) != kind:
            what = 'the result' if node.op == 'output' else node
            raise InvalidGraph(f'{what} was {kind} and is {now[node]}')
    return now
