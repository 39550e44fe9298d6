"""Finds elementwise work on edges in a program, as expressions."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.codegen.edge_map import edge_map, gradient_of
from torch_gsample.codegen.expression import (
    CPP_TYPES,
    Expression,
    operand,
    sum_axis,
)
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.operations import is_exact
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    POINTERS,
    Leaf,
    Types,
    Unit,
)
from torch_gsample.compiler.edge_operators import BUILDERS, NotFusible
from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_operator,
    is_pure,
    may_change,
    same_size,
)
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes

_FLOATS = (torch.float32, torch.float64)
#: Devices with kernels.
DEVICES = ('cpu', 'cuda')
#: Maximum size of an expression in one kernel.
_MAX_SIZE = 64
#: Maximum number of features in the sum of one value.
_MAX_FEATURES = 256


def gather(node: Any) -> tuple[Node, Node, bool] | None:
    """Returns tensor and index of a gather; whether the index wraps."""
    found = gathered(node)
    return found and (*found, node.target is aten.index.Tensor)


def device_of(node: Node) -> torch.device:
    """Returns the device of a tensor."""
    return example(node).device


def pointers_of(index: Node) -> tuple[Node, Any] | None:
    """Returns the pointers and the number of columns behind an index."""
    while index.target in (aten.to.dtype, aten.view.default) or (
        index.target is aten.expand_as.default
    ):
        if example(index).dim() != 1:
            return None
        index = index.args[0]  # type: ignore[assignment]
    args: Any = index.args
    if index.target is not aten.repeat_interleave.self_Tensor:
        return None
    columns, counts = args
    plain = isinstance(columns, Node) and (
        columns.target is aten.arange.default and not columns.kwargs
    )
    if not plain or not isinstance(counts, Node):
        return None
    if counts.target is not aten.diff.default or len(counts.args) != 1:
        return None
    return counts.args[0], columns.args[0]  # type: ignore[return-value]


def is_edge_value(node: Any, dtypes: Any = CPP_TYPES) -> bool:
    """Whether a node has one or several values for each edge."""
    value = example(node) if isinstance(node, Node) else None
    return (
        isinstance(value, Tensor)
        and value.dim() in (1, 2)
        and value.dtype in dtypes
        and value.device.type in DEVICES
        and (value.dim() == 1 or isinstance(value.shape[1], int))
        and (value.dim() == 1 or 1 < value.shape[1] <= _MAX_FEATURES)
    )


def decide_draws(graph: Graph) -> set[Node]:
    """Returns values on which a draw or control flow depends.

    Except for floating-point arithmetic, operators depend on every bit.
    """
    found: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        for user in node.users:
            if user.target is aten.sym_size.int:
                continue  # reads no element
            value = example(user)
            returned = user.op == 'output'
            continuous = (returned and 'is_decisive' not in user.meta) or (
                not returned
                and is_pure(user)
                and not is_operator(user)
                and isinstance(value, Tensor)
                and value.is_floating_point()
            )
            if not continuous or user in found:
                found.add(node)
    return found


@dataclass
class EdgeWork:
    """Reads nodes of a graph as expressions of edges.

    Args:
        changed (Set[torch.fx.Node]): Values that are changed in place.
        decisive (Set[torch.fx.Node]): See :func:`decide_draws`.
        invariant (Set[torch.fx.Node]): Nodes computed once per graph.
    """

    changed: set[Node]
    decisive: set[Node]
    invariant: set[Node]
    _known: dict[Node, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph) -> 'EdgeWork':
        """Analyses a graph."""
        return cls(
            may_change(graph), decide_draws(graph), invariant_nodes(graph)
        )

    def is_fusible(self, node: Node) -> bool:
        """Whether a node is elementwise work, or a gather, on edges."""
        if node not in self._known:
            self._known[node] = self._is_fusible(node)
        return self._known[node]

    def may_join(self, node: Node, root: Node) -> bool:
        """Whether a node may be computed together with another one.

        Nodes computed once per graph are not recomputed in each call.
        """
        return node not in self.invariant or root in self.invariant

    def _is_fusible(self, node: Node) -> bool:
        if not is_edge_value(node, (*_FLOATS, torch.bool)):
            return False
        if not self.changed.isdisjoint([node, *node.all_input_nodes]):
            return False
        try:
            root = Reader(self, set()).value(node)
        except NotFusible:
            return False
        if not is_exact(root) and node in self.decisive:
            return False
        # A float without gradient from inputs with gradients: in no_grad.
        lost = not example(node).requires_grad and any(
            isinstance(example(n), Tensor) and example(n).requires_grad
            for n in node.all_input_nodes
        )
        return not lost or root.dtype == torch.bool or root.op == 'detach'


class Reader:
    """Reads one expression, and collects its operands.

    Args:
        work (EdgeWork): The graph.
        inlined (Set[torch.fx.Node]): Nodes that become part of it; all others
            are operands.
    """

    def __init__(self, work: EdgeWork, inlined: set[Node]):
        self._inlined = inlined
        self._work = work
        self.tensors: list[Node] = []
        self.leaves: list[Leaf] = []
        self.features = 0
        self.operations = 0
        self._done: dict[Node, Expression] = {}

    def unit(self, node: Node) -> Unit:
        """Returns the edge map of the values of a node.

        Raises:
            NotFusible: If it is not elementwise.
        """
        return self._unit(self.value(node), node)

    def stored(self, node: Node) -> Unit:
        """Returns the edge map that reads the stored values of a node."""
        return self._unit(self._read(node, EDGE), node)

    def _unit(self, root: Expression, node: Node) -> Unit:
        wide = example(node).dim() == 2
        return edge_map(root, self.leaves, features=self.features, wide=wide)

    def value(self, node: Node) -> Expression:
        """Returns the expression of a node.

        Raises:
            NotFusible: If it is not elementwise.
        """
        if node in self._done:
            return self._done[node]
        value = example(node)
        if value.dim() == 2:
            self._widen(value.shape[1])
        found = gather(node)
        if found is not None:
            root = self._gathered(node, *found)
        elif node.target is aten.sum.dim_IntList:
            root = self._sum_features(node)
        else:
            builder = BUILDERS.get(node.target)
            if builder is None or node.kwargs.keys() - {'max', 'min'}:
                raise NotFusible
            args = [self._operand(arg, node) for arg in node.args]
            if node.kwargs:  # bounds of clamp
                low = args[1] if len(args) > 1 else node.kwargs.get('min')
                args = [args[0], low, node.kwargs.get('max')]
            root = builder(value.dtype, *args)
            self.operations += root.op != 'detach'
        if root.dtype != value.dtype or root.size > _MAX_SIZE:
            raise NotFusible
        self._done[node] = root
        return root

    def _widen(self, features: Any) -> None:
        if not isinstance(features, int) or features < 2:
            raise NotFusible
        if self.features not in (0, features):
            raise NotFusible
        self.features = features

    def _sum_features(self, node: Node) -> Expression:
        source, dims = node.args[:2]
        if dims not in (-1, [-1], 1, [1]) or node.kwargs:
            raise NotFusible
        if len(node.args) > 2 or not is_edge_value(source, _FLOATS):
            raise NotFusible
        x = self._operand(source, None)
        if not isinstance(x, Expression) or not Types(self.leaves).axes(x):
            raise NotFusible
        self.operations += 1
        return sum_axis(x)

    def _operand(self, arg: Any, user: Node | None) -> Any:
        """Returns an argument of an operation: an expression or a number."""
        if not isinstance(arg, Node):
            if isinstance(arg, (bool, int, float, torch.dtype, type(None))):
                return arg
            raise NotFusible
        value = example(arg)
        if not isinstance(value, Tensor) or value.dtype not in CPP_TYPES:
            raise NotFusible
        if arg in self._inlined:
            return self.value(arg)
        if value.device.type not in DEVICES:
            raise NotFusible
        if value.dim() == 0:
            return self._read(arg, PARAMETER)
        if not is_edge_value(arg):
            raise NotFusible
        if user is not None and not _same_shape(value, example(user)):
            raise NotFusible
        return self._read(arg, EDGE)

    def _gathered(
        self, node: Node, source: Node, index: Node, wraps: bool
    ) -> Expression:
        if not is_edge_value(source, (*_FLOATS, torch.bool)):
            raise NotFusible
        self.operations += 1
        found = pointers_of(index)
        if (
            found is not None
            and same_size(example(source).shape[0], found[1])
            and self.columns(found[0])
        ):
            self.operations += 1  # the index is not stored
            return self._read(source, DESTINATION)
        place = self.index(index, wraps)
        return self._read(source, EDGE, place)

    def columns(self, indptr: Node) -> bool:
        """Adds pointers; returns whether they are the only ones."""
        if indptr in self._work.changed:
            return False
        for leaf, tensor in zip(self.leaves, self.tensors, strict=True):
            if leaf.kind == POINTERS:
                return tensor is indptr
        self._add(indptr, Leaf('', POINTERS, example(indptr).dtype))
        return True

    def index(self, index: Node, wraps: bool = False) -> int:
        """Adds an index of edges; returns its number."""
        dtype = example(index).dtype
        if dtype not in (torch.int32, torch.int64):
            raise NotFusible
        return self._add(index, Leaf('', EDGE, dtype, wraps=wraps))

    def _read(
        self, tensor: Node, kind: str, index: int | None = None
    ) -> Expression:
        value = example(tensor)
        wide = value.dim() == 2
        if wide:
            self._widen(value.shape[1])
        leaf = Leaf('', kind, value.dtype, (0,) if wide else (), index)
        return operand(self._add(tensor, leaf), value.dtype)

    def _add(self, tensor: Node, leaf: Leaf) -> int:
        for i, known in enumerate(zip(self.tensors, self.leaves, strict=True)):
            if known == (tensor, leaf):
                return i
        if self.tensors and device_of(tensor) != device_of(self.tensors[0]):
            raise NotFusible
        self.tensors.append(tensor)
        self.leaves.append(leaf)
        return len(self.leaves) - 1


def _same_shape(first: Tensor, second: Tensor) -> bool:
    """Whether two shapes are known to be equal, without broadcasting."""
    if first.dim() != second.dim():
        return False
    return all(map(same_size, first.shape, second.shape))


def differentiable(unit: Unit, tensors: list[Node]) -> bool:
    """Whether all required gradients of operands exist."""
    try:
        for i, node in enumerate(tensors):
            if example(node).requires_grad:
                gradient_of(unit, i)
    except NotImplementedError:
        return False
    return True


def replace(
    graph: Graph, node: Node, unit: Unit, tensors: list[Node], *size: Any
) -> Node:
    """Replaces a node with a kernel."""
    with graph.inserting_before(node):
        new = graph.call_function(EdgeKernel(unit), tuple(tensors))
    if size:
        new.kwargs = {'num_rows': size[0]}
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    return new
