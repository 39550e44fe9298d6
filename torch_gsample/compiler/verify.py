"""What holds of a program after each pass."""

from torch.fx import Graph, Node

from torch_gsample.compiler.ir import example, is_part


class InvalidGraph(RuntimeError):
    """A pass broke a rule of the representation."""


def verify(graph: Graph) -> None:
    """Checks a graph.

    Raises:
        InvalidGraph: If a node uses what does not come before it, an output
            that does not exist, or the program returns nothing.
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
