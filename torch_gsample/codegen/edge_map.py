"""Edge maps: units over edges defined by their operands.

The result is a value for each edge, or a reduction to columns, whose edges are
contiguous, or to the rows of an index.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from torch_gsample.codegen.evaluate import aggregate, evaluate
from torch_gsample.codegen.expression import (
    Expression,
    apply,
    operand,
    sum_axis,
)
from torch_gsample.codegen.reverse import Reverse
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    SOURCE,
    Leaf,
    Output,
    Types,
    Unit,
    unit_of,
)

#: The aggregations of columns, by PyTorch's names.
REDUCTIONS = {
    **{'sum': 'sum_in', 'prod': 'prod_in'},
    **{'amax': 'max_in', 'amin': 'min_in'},
}


def edge_map(
    root: Expression,
    leaves: Sequence[Leaf],
    reduce: str | None = None,
    by: int | None = None,
    fill: float = 0.0,
    features: int = 0,
    wide: bool = False,
) -> Unit:
    """Returns the unit of an expression at each edge.

    Args:
        root (Expression): The expression.
        leaves (Sequence[Leaf]): The tensors, in order: values of edges,
            possibly gathered by an index, of columns (:data:`DESTINATION`) and
            scalars.
        reduce (str, optional): ``'sum'``, ``'amax'``, ``'amin'`` or
            ``'prod'`` of the edges of a column, or ``'sum'`` of those of a
            row; the value of each edge if not given.
        by (int, optional): The leaf with the row of each edge, if rows are
            reduced; otherwise columns are.
        fill (float): The value of a column without edges.
        features (int): Number of features; 0 for none.
        wide (bool): Whether the result has features.
    """
    kind = EDGE
    if reduce is not None:
        kind = DESTINATION if by is None else SOURCE
        op = REDUCTIONS[reduce] if by is None else f'{reduce}_out'
        root = Expression(op, root.dtype, (root,), float(fill))
    output = Output(root, kind, (0,) if wide else ())
    sizes = (features,) if features else ()
    return Unit(EDGE, tuple(leaves), sizes, (output,), by=by)


def reduction_of(unit: Unit) -> Expression | None:
    """Returns the aggregate of an edge map, if it reduces."""
    [output] = unit.outputs
    return output.root if output.root.op in AGGREGATES else None


def body_of(unit: Unit) -> Expression:
    """Returns the value of each edge."""
    total = reduction_of(unit)
    return unit.outputs[0].root if total is None else total.args[0]


def text_of(unit: Unit) -> str:
    """Returns the expression of an edge map, for operator names."""
    names = []
    for i, leaf in enumerate(unit.leaves):
        place = '' if leaf.index is None else f'[x{leaf.index}]'
        names.append(f'x{i}{"[col]" if leaf.kind == DESTINATION else place}')
    text = body_of(unit).text(names)
    value = text.removeprefix('(')
    if value != text:
        value = value.removesuffix(')')
    total = reduction_of(unit)
    if total is None:
        return f'edge_map[{value}]'
    by = 'col' if unit.by is None else f'x{unit.by}'
    reduce = {op: name for name, op in REDUCTIONS.items()}.get(total.op, 'sum')
    return f'edge_map_reduce[{reduce}({value}) by {by}]'


def gradient_of(unit: Unit, number: int) -> tuple[Unit, list[int]]:
    """Returns the edge map of the gradient of an operand.

    That of a scalar is the gradient at each edge.

    Args:
        unit (Unit): The edge map.
        number (int): The index of the operand.

    Returns:
        Tuple[Unit, List[int]]: The edge map, and its operands; the index after
        the last operand is the gradient of the result.

    Raises:
        NotImplementedError: If there is no derivative.
    """
    [output] = unit.outputs
    total, root = reduction_of(unit), body_of(unit)
    if total is not None and total.op not in ('sum_in', 'sum_out'):
        raise NotImplementedError(f'{total.op} by edges')
    of_columns = output.kind == DESTINATION
    kind = DESTINATION if of_columns else EDGE
    given = Leaf('', kind, root.dtype, output.axes, index=unit.by)
    leaves = [*unit.leaves, given]
    # Everything happens at the edge, which reads its own value of each
    # operand.
    types = Types(replace(leaf, kind=EDGE) for leaf in leaves)
    grad = operand(len(unit.leaves), root.dtype)
    if given.axes and not types.axes(root):
        grad = sum_axis(grad)
    reverse = Reverse(types, unit.sizes)
    found = reverse.run([(root, grad, EDGE)], {number}, list(root.nodes()))
    if (number, EDGE) not in found:
        raise NotImplementedError('no gradient reaches an operand')
    root, wanted = found[number, EDGE], unit.leaves[number]
    kind = EDGE
    if wanted.index is not None:
        kind, root = SOURCE, apply('sum_out', root)
    elif wanted.kind == DESTINATION:
        kind, root = DESTINATION, apply('sum_in', root)
    outputs = [Output(root, kind, wanted.axes)]
    return unit_of(EDGE, leaves, unit.sizes, outputs, wanted.index)


def run_with_torch(
    unit: Unit, tensors: Sequence[Tensor], num_rows: int = 0
) -> Tensor:
    """Runs an edge map with torch operators.

    Args:
        unit (Unit): The edge map.
        tensors (Sequence[torch.Tensor]): Its operands.
        num_rows (int): Rows of the result, if rows are reduced.
    """
    [output] = unit.outputs
    ends = _Ends(unit, tensors, num_rows)
    types, given = Types(unit.leaves), dict(enumerate(tensors))
    [value] = evaluate([output.root], types, unit.sizes, given, ends)
    rows = value.shape[0]
    if output.kind == EDGE:
        rows = ends.num_edges
    shape = (rows, *(unit.sizes[axis] for axis in output.axes))
    full = (rows, *unit.sizes) if output.axes else (rows, *value.shape[1:])
    return value.expand(full).reshape(shape).contiguous()


class _Ends:
    """The columns and rows of the edges of an edge map."""

    def __init__(self, unit: Unit, tensors: Sequence[Tensor], num_rows: int):
        self._unit, self._tensors = unit, tensors
        self._num_rows = num_rows
        self._column: Tensor | None = None
        if unit.pointers is not None:
            indptr = tensors[unit.pointers]
            self._num_columns = indptr.numel() - 1
            column = torch.arange(self._num_columns, device=indptr.device)
            self._column = column.repeat_interleave(indptr.diff())
            self.num_edges = self._column.numel()
        for leaf, tensor in zip(unit.leaves, tensors, strict=True):
            if leaf.kind == EDGE and leaf.index is None:
                self.num_edges = tensor.shape[0]

    def read(self, leaf: Leaf, value: Tensor) -> Tensor:
        """Returns an operand at each edge."""
        if leaf.kind == DESTINATION:
            assert self._column is not None
            return value.index_select(0, self._column)
        if leaf.index is None:
            return value
        index = self._tensors[leaf.index]
        if self._unit.leaves[leaf.index].wraps:
            return value[index]
        return value.index_select(0, index)

    def rows(self, kind: str) -> Tensor:
        """Unused: edge maps do not draw."""
        raise NotImplementedError(kind)

    def moved(self, value: Tensor, kind: str, to: str) -> Tensor:
        """Returns a value, which belongs to the edge already."""
        return value

    def aggregated(self, node: Expression, value: Tensor) -> Tensor:
        """Returns an aggregate of edges."""
        if self._unit.by is not None:
            index = self._tensors[self._unit.by]
            return aggregate(node, value, index, self._num_rows)
        assert self._column is not None
        return aggregate(node, value, self._column, self._num_columns)
