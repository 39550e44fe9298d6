"""Marks values that do not depend on the seeds, to compute them once per
graph.

Before::

    %0 = aten.pow.Tensor_Scalar(value, 2): float32[900]
    %1 = aten.index_add(%0, 0, indices, %0): float32[40]
    %2 = gsample.positive_weights(%1): 3 parts

After (``^`` marks what is invariant)::

    ^%0 = aten.pow.Tensor_Scalar(value, 2): float32[900]
    ^%1 = aten.index_add(%0, 0, indices, %0): float32[40]
    ^%2 = gsample.positive_weights(%1): 3 parts

The compiled function caches these values for each graph of its calls, until
the graph is freed or one of its tensors is changed in place (gSampler,
section 4.2).

Values of a sampler's parameters are cached as well if no gradient is required,
until a step of the optimizer changes the parameters in place.

Not when: a value requires a gradient, depends on a draw, may have a side
effect, is computed under the program's own ``autocast`` or ``inference_mode``,
or depends on an input that has the length of the seeds or is changed in place.
"""

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    example,
    is_pure,
    is_size,
    may_change,
    modes,
    needs_gradient,
)


def hoist_invariant(graph: Graph) -> None:
    """Sets ``node.meta['invariant']`` of each node."""
    invariant = invariant_nodes(graph)
    for node in graph.nodes:
        node.meta['invariant'] = node in invariant


def invariant_nodes(graph: Graph, trusted: Node | None = None) -> set[Node]:
    """Returns nodes that depend only on the graph, without side effects."""
    changed, mode = may_change(graph, trusted), modes(graph)
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op == 'placeholder':
            invariant = is_of_graph(node) and node not in changed
        else:
            invariant = (
                node.op == 'call_function'
                and (is_pure(node) or node is trusted)
                and node not in changed
                and not is_size(node)
                and not needs_gradient(node)
                and not mode[node][1]
                and found.issuperset(node.all_input_nodes)
            )
        if invariant:
            found.add(node)
    return found


def is_of_graph(node: Node) -> bool:
    """Whether an input is likely the same in many calls."""
    value = example(node)
    if not isinstance(value, Tensor):
        return False
    if value.requires_grad and torch.is_grad_enabled():
        return False  # a trained parameter
    if node.meta.get('is_of_graph', False):
        return True
    if any(not isinstance(size, int) for size in value.shape):
        return False
    # Seeds are integer vectors that are arguments of the function itself.
    integers = not value.is_floating_point() and value.dim() <= 1
    return not (integers and node.meta.get('is_argument', False))
