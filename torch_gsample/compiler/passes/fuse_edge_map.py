"""Generates one kernel for a chain of elementwise work on edges.

Before::

    %0 = aten.arange(4): int64[4]
    %1 = aten.diff(indptr): int64[4]
    %2 = aten.repeat_interleave.self_Tensor(%0, %1): int64[9]
    %3 = aten.index_select(total, 0, %2): float32[9]
    %4 = aten.div.Tensor(value, %3): float32[9]
    %5 = aten.mul.Tensor(%4, 2): float32[9]

After::

    %0 = edge_map[(x0 / x1[col]) * 2.0](value, total, indptr): float32[9]

Operands are values of edges, of rows (gathered by an index of each edge), of
columns (found by pointers, without storing the column of each edge) and
scalars. Intermediate values are not stored. Gradients are generated kernels,
too.

A value that is used more than once is computed once and stored, except for
gathers, which each kernel repeats. Work that depends only on the graph becomes
a kernel of its own, for ``hoist_invariant``.

Not when: there is only one operation; a value is broadcast over features;
anything is changed in place; a required derivative does not exist; or PyTorch
may round an operation differently (``exp``, ``log``, ``sigmoid``, ``sqrt``,
``tanh``, most powers, sums of features) and a draw depends on it: samples
equal those of eager code bit by bit.
"""

from torch.fx import Graph, Node

from torch_gsample.compiler.edge_operators import NotFusible
from torch_gsample.compiler.edge_work import (
    EdgeWork,
    Reader,
    differentiable,
    gather,
    replace,
)
from torch_gsample.compiler.ir import erase_unused


def fuse_edge_map(graph: Graph) -> list[str]:
    """Fuses each stored value with the values inlined in it."""
    work, notes = EdgeWork.of(graph), []
    inlined = inlined_nodes(graph, work)
    for node in list(graph.nodes):
        if node in inlined or not work.is_fusible(node):
            continue
        reader = Reader(work, inlined)
        try:
            unit = reader.unit(node)
        except NotFusible:
            continue
        if reader.operations < 2:
            continue
        if not differentiable(unit, reader.tensors):
            notes.append(f'{node}: unchanged, it has no derivative')
            continue
        replace(graph, node, unit, reader.tensors)
        erase_unused(graph, node)
        notes.append(f'{node}: {reader.operations} operations are one kernel')
    return notes


def inlined_nodes(graph: Graph, work: EdgeWork) -> set[Node]:
    """Returns values that are computed in a kernel instead of stored.

    These are values that one kernel uses, and gathers that only kernels use.
    """
    roots: dict[Node, Node] = {}
    inlined: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        if not work.is_fusible(node):
            continue
        users = list(node.users)
        free = all(
            work.is_fusible(user) and _as_value(user, node) for user in users
        )
        wanted = {roots[user] for user in users if user in roots}
        roots[node] = node
        free = free and all(work.may_join(node, root) for root in wanted)
        if free and len(wanted) == 1:
            [roots[node]] = wanted
            inlined.add(node)
        elif free and wanted and gather(node) is not None:
            inlined.add(node)
    return inlined


def _as_value(user: Node, node: Node) -> bool:
    """Whether a node is used edge by edge, not as a gather's operand."""
    found = gather(user)
    return found is None or node not in found[:2]
