"""Removes unused values.

Before::

    %0 = aten.pow.Tensor_Scalar(value, 2): float32[?]
    %1 = aten.neg(value): float32[?]
    return %1

After::

    %0 = aten.neg(value): float32[?]
    return %0

Not when: the node has a side effect, or may have one (it is opaque). Draws are
pure functions of their key and are dropped. Their keys stay, so that later
draws get the same keys as before. Inputs stay.
"""

from torch.fx import Graph

from torch_gsample.compiler.ir import is_pure


def eliminate_dead(graph: Graph) -> None:
    """Erases pure nodes without users, from the end."""
    for node in reversed(list(graph.nodes)):
        if node.op != 'placeholder' and not node.users and is_pure(node):
            graph.erase_node(node)
