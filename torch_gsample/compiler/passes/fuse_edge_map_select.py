"""Draws one edge per column while its weights are computed.

Before (walkers step to a neighbour by weights)::

    %0 = gsample.slice_cols(indptr, indices, at): 3 parts
    %1 = getitem(%0, 0): int32[?]
    %2 = getitem(%0, 1): int32[?]
    %3 = gsample.has_edges(indptr, indices, %1, %2, before): bool[?]
    %4 = aten.where.Scalar(%3, 1.0, 2.0): float32[?]
    %5 = gsample.cumulate_weights(%1, %4): int64[?]
    %6 = gsample.sample_columns(%1, 1, key, cum_weight=%5): 2 parts
    %7 = getitem(%6, 1): int64[?]
    %8 = aten.index_select(%2, 0, %7): int32[?]

After::

    %0 = number_of[edge_map[where(x0, 1.0, 2.0)]](): size
    %1 = gsample.sample_by_kernel(indptr, indices, at, %0, [before], [3], key,
                                  before=before): 2 parts
    %2 = getitem(%1, 1): int64[?]
    %3 = aten.index_select(indices, 0, %2): int32[?]

The weights are a generated kernel, as in ``fuse_edge_map``. It runs over
blocks of columns, whose edges, values and weights stay in the cache; nothing
of the extract's size is stored. A weight may depend on values of edges, of
nodes (gathered by the rows), of columns, on scalars, and on whether the row is
in another column (``has_edges``, from ``torch.isin``).

Not when: more than one edge is drawn per column; the extract or a weight has
another user; there is no compiler, or the program is exported, as a file must
run without one; the matrix is on a GPU; PyTorch may round an operation
differently (see ``fuse_edge_map``); or anything is changed in place.
"""

from typing import Any, cast

import torch
from torch.fx import Graph, Node

from torch_gsample.codegen.expression import (
    CPP_TYPES,
    Expression,
    constant,
    operand,
)
from torch_gsample.codegen.kernel import EdgeKernel, KernelNumber
from torch_gsample.codegen.operations import is_exact
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    POINTERS,
    Leaf,
)
from torch_gsample.compiler.edge_operators import NotFusible
from torch_gsample.compiler.edge_work import (
    EdgeWork,
    Reader,
    device_of,
    pointers_of,
)
from torch_gsample.compiler.ir import (
    aten,
    erase_unused,
    example,
    gathered,
    has_only,
    is_operator,
    is_part,
    live_nodes,
    part_of,
    parts,
    placeholders,
    same_size,
    tensors_of,
)
from torch_gsample.compiler.passes.fuse_extract_select import source_of
from torch_gsample.ops._check import INDEX_DTYPES
from torch_gsample.ops.sample_by_kernel import ROLES

_SAMPLE = torch.ops.gsample.sample_by_kernel.default
_OPTIONS = 'cum_weight', 'id', 'replace'
#: Fill values of new tensors with an element per edge.
_CONSTANTS = {aten.ones_like.default: 1, aten.zeros_like.default: 0}
_OF_INTEGERS = {
    aten.to.dtype,
    aten.add.Tensor,
    aten.sub.Tensor,
    aten.mul.Tensor,
    aten.where.self,
    aten.where.Scalar,
}
_ALL = 'whole'
_ROLES = {DESTINATION: 'column', PARAMETER: _ALL, POINTERS: 'pointers'}


def fuse_edge_map_select(graph: Graph) -> list[str]:
    """Fuses each draw of one edge with its weights and its extract."""
    if any(n.meta.get('is_of_graph') for n in placeholders(graph)):
        return []
    work, notes = EdgeWork.of(graph), []
    for node in list(graph.nodes):
        if not is_operator(node, 'sample_columns') or node.args[1] != 1:
            continue
        if has_only(node, *_OPTIONS) and _fuse(graph, node, work):
            notes.append(f'{node}: its kernel computes the weights')
    return notes


def _fuse(graph: Graph, sample: Node, work: EdgeWork) -> bool:
    cumulated: Any = sample.kwargs.get('cum_weight')
    extract = part_of(sample.args[0], 'slice_cols', 0)
    if extract is None or len(extract.args) != 3 or extract.kwargs:
        return False
    if cumulated is None or not is_operator(cumulated, 'cumulate_weights'):
        return False
    if cumulated.args[0] is not sample.args[0] or len(cumulated.users) > 1:
        return False
    if device_of(extract.args[0]).type != 'cpu':  # type: ignore[arg-type]
        return False
    reader = WeightReader(work, extract)
    try:
        unit = reader.unit(cumulated.args[1])
        if not unit.leaves:  # a constant
            reader.rows()
            unit = reader.unit(cumulated.args[1])
    except NotFusible:
        return False
    kernel = EdgeKernel(unit)
    if not is_exact(unit.outputs[0].root):
        return False
    selected = parts(sample).get(1)
    if selected is None:
        return False
    gathers = _gathers(selected, extract)
    touched = {*reader.seen, *extract.all_input_nodes, *reader.tensors}
    if gathers is None or not work.changed.isdisjoint(touched):
        return False
    ends = {sample, cumulated, *gathers}
    if not _is_only_use(graph, extract, reader.seen, ends):
        return False
    if kernel.loaded is None:
        return False
    _replace(graph, sample, extract, reader, kernel)
    for user, tensor in gathers.items():
        if tensor is selected:
            user.replace_all_uses_with(selected)
            graph.erase_node(user)
            continue
        user.target, user.kwargs = aten.index_select.default, {}
        user.args = (tensor, 0, selected)
    erase_unused(graph, cumulated)
    return True


def _gathers(selected: Node, extract: Node) -> dict[Node, Any] | None:
    """Returns, for each user of the selected edges, its graph tensor."""
    found: dict[Node, Any] = {}
    for user in selected.users:
        if user.target is aten.sym_size.int:
            continue  # the number of edges does not change
        source = source_of(user, selected, extract)
        if source is None:
            return None
        found[user] = extract.args[1] if source is extract else source
    return found


def _is_only_use(
    graph: Graph, extract: Node, seen: set[Node], ends: set[Node]
) -> bool:
    """Whether nothing else reads the extract or its derived values."""
    live, waiting, done = live_nodes(graph), [extract], {extract}
    spells = (
        aten.sym_size.int,
        aten.diff.default,
        aten.repeat_interleave.self_Tensor,
        aten.to.dtype,
    )
    while waiting:
        node = waiting.pop()
        for user in live.intersection(node.users):
            if user in ends or user in done:
                continue
            if user not in seen and not (
                is_part(user) or user.target in spells or _is_id(user, extract)
            ):
                return False
            done.add(user)
            waiting.append(user)
    return True


def _is_id(node: Node, extract: Node) -> bool:
    """Whether a node gathers a graph tensor by the extracted edges."""
    found = gathered(node)
    return found is not None and (
        part_of(found[1], 'slice_cols', 2) is extract
    )


def _replace(
    graph: Graph,
    sample: Node,
    extract: Node,
    reader: 'WeightReader',
    kernel: EdgeKernel,
) -> None:
    with graph.inserting_before(sample):
        number = graph.call_function(KernelNumber(kernel))
        number.meta['example_value'] = 0
        options = {'id': sample.kwargs.get('id'), **reader.search}
        new = graph.call_function(
            _SAMPLE,
            (
                *extract.args,
                number,
                list(reader.tensors),
                reader.roles,
                *sample.args[2:],
            ),
            {key: x for key, x in options.items() if x is not None},
        )
    new.meta = dict(sample.meta)
    for part in parts(sample).values():
        part.update_arg(0, new)
    graph.erase_node(sample)


def _is_integer(node: Node) -> bool:
    """Whether a kernel computes integers like PyTorch.

    In kernels, other operations are those of floats and bools.
    """
    given = [t.dtype for n in node.all_input_nodes for t in tensors_of(n)]
    return gathered(node) is not None or (
        node.target in _OF_INTEGERS
        and not any(dtype.is_floating_point for dtype in given)
    )


class WeightReader(Reader):
    """Reads the weights of an extract, down to tensors of the whole graph.

    Args:
        work (EdgeWork): The program.
        extract (torch.fx.Node): The columns.
    """

    def __init__(self, work: EdgeWork, extract: Node):
        super().__init__(work, set())
        self._extract = extract
        args: Any = extract.args
        self._indptr, self._indices = args[:2]
        #: Nodes that depend on the extract.
        self.seen: set[Node] = set()
        #: The searched columns, and the bound of their rows.
        self.search: dict[str, Any] = {}

    @property
    def roles(self) -> list[int]:
        """Returns the role of each operand, an index in :data:`ROLES`."""
        return [ROLES.index(self._role(leaf)) for leaf in self.leaves]

    def _role(self, leaf: Leaf) -> str:
        if leaf.kind != EDGE:
            return _ROLES[leaf.kind]
        return 'found' if leaf.name else 'edge' if leaf.index is None else _ALL

    def value(self, node: Node) -> Expression:
        """Returns the expression of a node.

        Raises:
            NotFusible: If it is not elementwise, or of another extract.
        """
        self.seen.add(node)
        if self._is_part(node, 1):
            return operand(self.rows(), example(node).dtype)
        if is_operator(node, 'has_edges'):
            return operand(self._found(node), torch.bool)
        if node.target in _CONSTANTS and not node.kwargs:
            self._check_size(node, example(self._extract)[1])
            return constant(_CONSTANTS[node.target], example(node).dtype)
        if example(node).dtype in INDEX_DTYPES and not _is_integer(node):
            raise NotFusible
        return super().value(node)

    def _is_part(self, node: Any, number: int) -> bool:
        return part_of(node, 'slice_cols', number) is self._extract

    def _operand(self, arg: Any, user: Node | None) -> Any:
        value = example(arg) if isinstance(arg, Node) else None
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            return super()._operand(arg, user)
        if user is not None and value.dim() != example(user).dim():
            raise NotFusible  # broadcast over features
        self._check_size(arg, example(self._extract)[1])
        return self.value(arg)

    def _check_size(self, node: Node, like: torch.Tensor) -> None:
        """Checks that a tensor is not broadcast to the rows of another."""
        if not same_size(example(node).shape[0], like.shape[0]):
            raise NotFusible

    def _gathered(
        self, node: Node, source: Node, index: Node, wraps: bool
    ) -> Expression:
        if example(source).dtype not in CPP_TYPES:
            raise NotFusible
        spelled = pointers_of(index)
        if spelled is not None:
            fits = same_size(example(source).shape[0], spelled[1])
            if not fits or not self._is_part(spelled[0], 0):
                raise NotFusible
            self.columns(self._indptr)
            return self._read(source, DESTINATION)
        if self._is_part(index, 2):
            self._check_size(source, example(self._indices))
            return self._read(source, EDGE)
        return self._read(source, EDGE, self.index(index, wraps))

    def index(self, index: Node, wraps: bool = False) -> int:
        """Adds the index of a gather: rows, or edge ids of the graph."""
        wide = index.target is aten.to.dtype and len(index.args) == 2
        if wide and index.args[1] is torch.int64:
            index = cast(Node, index.args[0])
        if self._is_part(index, 1):
            return self.rows(wraps)
        found = gathered(index)
        if found is None or not self._is_part(found[1], 2):
            raise NotFusible
        self._check_size(found[0], example(self._indices))
        return super().index(found[0], wraps)

    def rows(self, wraps: bool = False) -> int:
        """Adds the row of each edge; returns its index."""
        dtype = example(self._indices).dtype
        return self._add(self._indices, Leaf('', EDGE, dtype, wraps=wraps))

    def _found(self, node: Node) -> int:
        """Adds the result of a search in the extract's own matrix."""
        args: Any = node.args
        if (
            len(args) != 5
            or args[:2] != self._extract.args[:2]
            or not self._is_part(args[2], 0)
            or not self._is_part(args[3], 1)
        ):
            raise NotFusible
        search = {'before': args[4], 'num_rows': node.kwargs.get('num_rows')}
        if self.search not in ({}, search):
            raise NotFusible
        self.search = search
        return self._add(args[4], Leaf('found', EDGE, torch.bool))
