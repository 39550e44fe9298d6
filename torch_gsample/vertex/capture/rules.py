"""Rules of ATen operators for rows: which operators are row-wise."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from torch_gsample.vertex.capture.decomposed import DECOMPOSED
from torch_gsample.vertex.capture.dropout import native_dropout
from torch_gsample.vertex.capture.ends import aggregation, end_of, gather
from torch_gsample.vertex.capture.meta import meta
from torch_gsample.vertex.capture.nodes import (
    AGGREGATE,
    ELEMENTWISE,
    GRAPH,
    INDEX,
    MIXED,
    OF_EDGES,
    PARAMETER,
    VERTEX,
    Node,
    NotCaptured,
)
from torch_gsample.vertex.capture.norms import layer_norm
from torch_gsample.vertex.capture.products import by_type, distributed
from torch_gsample.vertex.capture.shapes import (
    reduced_cat,
    reshaped,
    through_cat,
)
from torch_gsample.vertex.capture.slices import (
    glu,
    select,
    slice_of,
    split,
    unbind,
)

aten = torch.ops.aten

_IDENTITY = frozenset({'alias', 'clone', 'contiguous', 'lift_fresh'})
VIEWS = frozenset({'view', '_unsafe_view', 'reshape', 'unsqueeze', 'squeeze'})
#: Operators along dimensions of features: the position of ``dim``.
REDUCTIONS = {
    **{name: 1 for name in ('sum', 'mean', 'amax', 'amin', 'logsumexp')},
    **{'linalg_vector_norm': 2, 'norm': 2, 'prod': 1},
}
_ARITHMETIC = frozenset(('add', 'sub', 'rsub', 'mul', 'div'))


def record(
    recorder: Any, func: Any, args: Any, kwargs: Any, where: str
) -> Any:
    """Returns the node(s) of an operator call.

    Args:
        recorder (Recorder): The recorder.
        func (OpOverload): The operator.
        args (Tuple): Its arguments, with nodes in place of tensors.
        kwargs (Dict[str, Any]): Named arguments.
        where (str): The line.

    Raises:
        NotCaptured: If it is not row-wise.
    """
    return Call(recorder, func, args, kwargs, where).record()


class Call:
    """A call of an operator while a layer is captured."""

    def __init__(
        self, recorder: Any, func: Any, args: Any, kwargs: Any, where: str
    ):
        self.recorder, self.func, self.where = recorder, func, where
        self.name = func.overloadpacket.__name__
        self.args, self.kwargs = tuple(args), dict(kwargs)
        probe = Node(self.name, '', (), torch.bool, None, args, kwargs)
        self.nodes = probe.operands

    def fail(self, reason: str = '') -> NotCaptured:
        """Returns an error with operator and line."""
        text = f'torch.{self.name} is not supported'
        return NotCaptured(f'{text}: {reason}' if reason else text, self.where)

    def call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Records another operator on the same line."""
        return record(self.recorder, func, args, kwargs, self.where)

    def record(self) -> Any:
        """Returns the node(s)."""
        name = self.name
        kinds = {node.kind for node in self.nodes}
        if GRAPH in kinds or INDEX in kinds:
            return self._of_index()
        self.kind = self._kind()
        if self.kind == PARAMETER:
            return self.node(None)
        if name in _IDENTITY:
            return self.args[0]
        if name in ELEMENTWISE:
            if self.kind == MIXED:
                parts = through_cat(self)
                if parts is not None:
                    return parts
                self._promote()
            return self.node(self._broadcast_row())
        if name in VIEWS:
            return self._view()
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self)
        if name in REDUCTIONS:
            return self.reduced()
        raise self.fail()

    def _promote(self) -> None:
        """Converts integers that torch adds or multiplies to floats."""
        if self.name not in _ARITHMETIC:
            return
        dtype = self.meta().dtype

        def promoted(x: Any) -> Any:
            alike = not isinstance(x, Node) or x.dtype.is_floating_point
            if alike or x.kind == MIXED or not dtype.is_floating_point:
                return x
            return self.call(aten._to_copy.default, x, dtype=dtype)

        self.args = tuple(map(promoted, self.args))

    # Kinds and shapes.

    def _kind(self) -> str:
        kinds = {node.kind for node in self.nodes} - {PARAMETER}
        if len(kinds) < 2:
            return kinds.pop() if kinds else PARAMETER
        if kinds == {AGGREGATE, VERTEX}:
            return AGGREGATE
        if kinds <= OF_EDGES:
            return MIXED
        raise self.fail('it combines values of vertices and of edges')

    def meta(self) -> Any:
        """Runs the operator on shapes."""
        return meta(self.func, self.args, self.kwargs)

    def node(self, row: int | None, shape: Any = None) -> Any:
        """Returns the node of the operator for known rows."""
        dtype = None
        if shape is None:
            out = self.meta()
            if not isinstance(out, torch.Tensor):
                raise self.fail('it returns several tensors')
            shape, dtype = tuple(out.shape), out.dtype
        kwargs = {k: v for k, v in self.kwargs.items() if k != 'device'}
        return Node(
            *(self.name, self.kind, shape, dtype or self.args[0].dtype, row),
            *(self.args, kwargs, self.func, self.where),
        )

    def _broadcast_row(self) -> int:
        """Checks that rows are aligned with rows."""
        found = {
            (x.row - x.rank, x.rows) for x in self.nodes if x.row is not None
        }
        if len(found) != 1:
            raise self.fail('it combines rows with features')
        [(row, _)] = found
        for node in self.nodes:
            meets = node.row is None and node.rank >= -row
            if meets and node.shape[row] != 1:
                raise self.fail('it combines rows with features')
        return max(x.rank for x in self.nodes) + row

    def features(self, dims: Any, of: Node | None = None) -> list[int]:
        """Returns dimensions, none of which may be that of rows."""
        x: Node = of or self.args[0]
        if dims is None or (isinstance(dims, (list, tuple)) and not dims):
            dims = list(range(x.rank))
        dims = [dims] if isinstance(dims, int) else list(dims)
        dims = [d % x.rank for d in dims]
        if x.row in dims:
            raise self.fail('it runs along rows')
        return dims

    # Operators.

    def _view(self) -> Node:
        x, shape = self.args[0], tuple(self.meta().shape)
        if x.row is None:
            raise self.fail()
        before = math.prod(x.shape[: x.row])
        for i, n in enumerate(shape):
            if n == x.rows and math.prod(shape[:i]) == before:
                return reshaped(self, x, shape, i)
        raise self.fail('it mixes rows and features')

    def _expand(self) -> Node:
        x, shape = self.args[0], tuple(self.meta().shape)
        row = x.row + len(shape) - x.rank
        node = self.node(row, shape)
        return node if shape != x.shape else x

    def _repeat(self) -> Node:
        x, times = self.args
        row = x.row + len(times) - x.rank
        if times[row] != 1:
            raise self.fail('of rows')
        return self.node(row)

    def _permute(self) -> Node:
        x = self.args[0]
        order = list(range(x.rank))
        if self.name == 'permute':
            order = [d % x.rank for d in self.args[1]]
        else:
            a, b = (0, 1) if self.name == 't' else self.args[1:3]
            order[a % x.rank], order[b % x.rank] = b % x.rank, a % x.rank
        row = order.index(x.row)
        kept = [d for d in order if x.shape[d] != 1]
        if kept == sorted(kept):  # only dimensions of size 1 move
            shape = tuple(x.shape[d] for d in order)
            return reshaped(self, x, shape, row)
        return self.node(row)

    def _layer_norm(self) -> Any:
        x, over = self.args[:2]
        self.features(list(range(-len(over), 0)))
        outs = self.meta()
        rest = [
            Node('unused', x.kind, tuple(y.shape), y.dtype, x.row)
            for y in outs[1:]
        ]
        if x.kind == MIXED:
            return [layer_norm(self, list(range(-len(over), 0))), *rest]
        self.func, self.name = aten.layer_norm.default, 'layer_norm'
        return [self.node(x.row, x.shape), *rest]

    def _log_sigmoid(self) -> Any:
        [x] = self.args
        unused = Node('unused', PARAMETER, (0,), x.dtype)
        return [self.call(aten.log_sigmoid.default, x), unused]

    def _batch_norm(self) -> Any:
        x, weight, bias, mean, var, training, _, eps = self.args
        if training or mean is None or x.row != 0 or x.rank != 2:
            raise self.fail('statistics are over all edges')
        scale = self.call(aten.add.Tensor, var, eps)
        scale = self.call(aten.rsqrt.default, scale)
        if weight is not None:
            scale = self.call(aten.mul.Tensor, scale, weight)
        out = self.call(aten.sub.Tensor, x, mean)
        out = self.call(aten.mul.Tensor, out, scale)
        if bias is not None:
            out = self.call(aten.add.Tensor, out, bias)
        empty = Node('unused', PARAMETER, (0,), x.dtype)
        return [out, empty, empty]

    def reduced(self) -> Node:
        """Records a reduction of features."""
        place = REDUCTIONS[self.name]
        x = self.args[0]
        dims = self.args[place] if len(self.args) > place else None
        gone = self.features(self.kwargs.get('dim', dims))
        of_parts = reduced_cat(self, gone)
        if of_parts is not None:
            return of_parts
        row = x.row
        if self.meta().dim() < x.rank:
            row -= sum(d < x.row for d in gone)
        return self.node(row)

    def _cat(self) -> Node:
        parts = list(self.args[0])
        dim = self.args[1] if len(self.args) > 1 else 0
        dim = self.kwargs.get('dim', dim)
        if self.name == 'stack':
            dim %= parts[0].rank + 1
            views = [
                self.call(aten.unsqueeze.default, part, dim) for part in parts
            ]
            return self.call(aten.cat.default, views, dim)
        parts = [x for x in parts if x.shape != (0,)]
        if len({(x.row, x.rank) for x in parts}) > 1:
            raise self.fail('it combines rows with features')
        [dim] = self.features(dim, parts[0])
        if len(parts) == 1:
            return parts[0]
        self.args, self.kwargs = (parts, dim), {}
        return self.node(parts[0].row)

    def _mm(self) -> Node:
        """Products of rows with a matrix of parameters."""
        bias, x, weight = None, *self.args[-2:]
        if self.name in ('addmm', 'addmv'):
            bias = self.args[0]
            if self.kwargs:
                raise self.fail('beta and alpha are not 1')
        if weight.kind != PARAMETER or x.row != 0:
            raise self.fail('the second matrix must be of parameters')
        if x.kind == MIXED:
            return distributed(self, x, weight, bias)
        return self.node(0)

    def _bmm(self) -> Node:
        x, y = self.args[:2]
        if y.kind == PARAMETER and x.kind != MIXED and x.row == 1:
            return self.node(1)
        if x.row != 0 or y.row != 0:
            raise self.fail('rows must be the batch')
        found = by_type(self, *self.args)
        return self.node(0) if found is None else found

    def _indexed(self) -> Node:
        """Rows of parameters, chosen by an integer of each row."""
        source, *rest = self.args
        if self.name == 'index_select':
            dim, index = rest
        elif self.name == 'embedding':
            dim, index = 0, self.args[1]
        else:
            dim, index = 0, rest[0][0] if len(rest[0]) == 1 else None
        if (
            not isinstance(index, Node)
            or source.kind != PARAMETER
            or (index.rank, index.row) != (1, 0)
            or index.dtype == torch.bool
        ):
            raise self.fail('the selected rows depend on values')
        return self.node(dim % source.rank)

    def _of_index(self) -> Node:
        """Rules for ``edge_index`` and its ends."""
        name, x = self.name, self.args[0]
        if x.kind == GRAPH and name == 'select':
            if self.args[1] == 0:
                return end_of(self.recorder, self.args[2] % 2, self.where)
        elif x.kind == INDEX:
            views = name in VIEWS or name in _IDENTITY
            if views or name in ('expand', '_to_copy', 'detach'):
                shape = tuple(self.meta().shape)
                return replace(x, shape=shape, row=None)
        elif name in ('index_select', 'index') and x.kind in (
            *(VERTEX, AGGREGATE),
        ):
            dim, index = 0, self.args[-1]
            if name == 'index_select':
                dim = self.args[1] % x.rank
            elif len(index) == 1:
                [index] = index
            if isinstance(index, Node) and dim == x.row:
                return gather(self, x, index)
        elif name in _SCATTERS and x.kind in (VERTEX, AGGREGATE):
            return aggregation(self)
        raise self.fail('it reads indices of vertices')


_SCATTERS = frozenset(
    {'scatter_add', 'scatter_reduce', 'index_add', 'index_reduce'}
)
_SPECIAL: dict[str, Callable[[Call], Any]] = {
    **DECOMPOSED,
    'native_dropout': native_dropout,
    'native_layer_norm': Call._layer_norm,
    'native_batch_norm': Call._batch_norm,
    'log_sigmoid_forward': Call._log_sigmoid,
    'expand': Call._expand,
    'repeat': Call._repeat,
    'permute': Call._permute,
    't': Call._permute,
    'transpose': Call._permute,
    'cat': Call._cat,
    'stack': Call._cat,
    'select': select,
    'slice': slice_of,
    'split': split,
    'split_with_sizes': split,
    'unbind': unbind,
    'glu': glu,
    'mm': Call._mm,
    'mv': Call._mm,
    'addmm': Call._mm,
    'addmv': Call._mm,
    'bmm': Call._bmm,
    'index_select': Call._indexed,
    'index': Call._indexed,
    'embedding': Call._indexed,
}
