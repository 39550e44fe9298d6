"""One call of a captured layer: torch, a kernel, and torch again."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.torch_private import tree_map
from torch_gsample.vertex.capture.nodes import EDGE, SOURCE, Node
from torch_gsample.vertex.frontend.precision import cast, kernel_dtype
from torch_gsample.vertex.kernels.products import product_of_ends
from torch_gsample.vertex.kernels.run import Feature

#: Matrices with fewer rows or columns get the layout of a fast gradient.
_FEW = 16


class Tensors:
    """Computes the nodes around the kernel with torch.

    Args:
        module (torch.nn.Module): The layer, whose parameters are read.
        inputs (Dict): The tensors of the call.
        rows (Tuple[int, int, int]): Sources, destinations and edges.
        graph (torch.Tensor): ``[2, num_edges]``.
        target (int): Its row of destinations.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: dict[Any, Tensor],
        rows: tuple[int, int, int],
        graph: Tensor,
        target: int,
    ):
        self._module, self._inputs, self._rows = module, inputs, rows
        self._graph, self._target = graph, target
        self.done: dict[Node, Any] = {}

    def of(self, node: Node) -> Tensor:
        """Returns the value of a node, with rows of vertices if possible."""
        if node not in self.done:
            self.done[node] = self._computed(node)
        return self.done[node]

    def _computed(self, node: Node) -> Tensor:
        if node.op == 'input':
            return self._inputs[node.args[0]]
        if node.op == 'parameter':
            path, name = node.args
            return getattr(self._module.get_submodule(path), name)
        if node.op == 'fill':
            return self._filled(node)
        if node.op == 'constant':
            return node.args[0].tensor
        x = self.of(node.args[0]) if isinstance(node.args[0], Node) else None
        if node.op == 'gather':
            assert x is not None
            return x
        if node.op in ('view', 'expand'):
            assert x is not None
            shape = list(node.shape)
            if node.row is not None:
                before = node.args[0].row
                shape[node.row] = x.shape[before]
            return x.reshape(shape) if node.op == 'view' else x.expand(shape)
        args, kwargs = tree_map(self._argument, (node.args, node.kwargs))
        if node.op == 'typed':
            is_source = node.args[0].kind == SOURCE
            end = self._graph[self._target ^ int(is_source)]
            x, weight, kind = args
            return product_of_ends(x, weight, kind, end)[:, None]
        if node.op in ('mm', 'addmm'):
            args = *args[:-1], with_fast_gradient(args[-1])
        return node.func(*args, **kwargs)

    def _argument(self, x: Any) -> Any:
        return self.of(x) if isinstance(x, Node) else x

    def _filled(self, node: Node) -> Tensor:
        like = next(iter(self._inputs.values()))
        shape = list(node.shape)
        if node.row is not None:
            shape[node.row] = self._rows[2 if node.kind == EDGE else 1]
        return torch.full(
            shape, node.args[0], dtype=node.dtype, device=like.device
        )

    def operand(
        self, node: Node, lost: int | None, name: str, dtype: torch.dtype
    ) -> Feature:
        """Returns an operand of the kernel."""
        x = self.of(node)
        if kernel_dtype(x.dtype) != dtype:
            x = cast(x, dtype)
        if name[0] == 'p':
            return x if lost is None else x.squeeze(lost)
        if node.row:
            x = x.movedim(node.row, 0)
        if name[0] == 's':
            return x, None
        if name[0] == 'd':
            return None, x
        return x


def with_fast_gradient(weight: Tensor) -> Tensor:
    """Returns a matrix in the layout whose gradient BLAS computes faster.

    The gradient of ``x @ weight`` is ``x.T @ grad`` or, where the matrix is
    stored by columns, ``(grad.T @ x).T``. With fewer than 16 rows, the first
    matrix of that product is the smaller one: MKL takes 6 to 16 times as long
    the other way round.
    """
    first, last = weight.shape
    if min(first, last) >= _FEW or not weight.is_cpu:
        return weight
    if first <= last:
        return weight.contiguous()
    return weight.t().contiguous().t()


def restored(x: Tensor, node: Node) -> Tensor:
    """Returns a result of the kernel in the shape of its node."""
    features = node.features
    missing = len(features) - (x.dim() - 1)
    x = x.reshape(x.shape[0], *[1] * missing, *x.shape[1:])
    x = x.expand(x.shape[0], *features)
    return x.movedim(0, node.row) if node.row else x
