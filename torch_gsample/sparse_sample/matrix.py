"""``SparseSample``: the functions of this package's modules as methods.

Each group of methods is named after its module.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_gsample.sparse_sample import (
    arithmetic,
    convert,
    extract,
    ids,
    labor,
    move,
    random_values,
    reduce,
    select,
    show,
    walk,
)
from torch_gsample.sparse_sample.arithmetic import Operand, binary
from torch_gsample.sparse_sample.old_names import with_old_names
from torch_gsample.sparse_sample.parts import Parts
from torch_gsample.sparse_sample.sources import EdgeType, read_source
from torch_gsample.sparse_sample.torch_function import HANDLERS


@with_old_names
class SparseSample(Parts):
    r"""A sparse matrix whose entries are edges.

    Rows are sources and columns are destinations: ``A[u, v]`` is the edge
    ``u -> v``, and ``A[:, seeds]`` holds the in-edges of ``seeds``. A sampler
    *extracts* a part of the matrix, *computes* with its values, *selects* at
    random and *finalizes* the result, as in `"gSampler: General and Efficient
    GPU-Based Graph Sampling for Graph Learning"
    <https://doi.org/10.1145/3600006.3613168>`_ (SOSP 2023).

    The constructors are :meth:`from_edge_index`, :meth:`from_csc`,
    :meth:`from_csr`, :meth:`from_coo` and :meth:`from_data`. ``dim`` is the
    reduced dimension, as in torch: ``A.sum(dim=0)`` has one entry per column.
    Gradients flow to the values of edges and to dense operands.

    Args:
        csc (CSC, optional): The compressed columns.
        csr (CSC, optional): The compressed rows. One of the two is required;
            the other one is computed on first use.
        shape (Tuple[int, int]): Number of rows and of columns.
        value (torch.Tensor, optional): ``[num_edges]`` or
            ``[num_edges, F]``, ones if not given.
        edge_id (torch.Tensor, optional): ``[num_edges]``, the ids of the edges
            in the original graph; default: their positions.
        row_ids (torch.Tensor, optional): ``[num_rows]``, the node of each row
            in the original graph; default: its position.
        col_ids (torch.Tensor, optional): ``[num_cols]``, likewise for columns.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
        >>> A = SparseSample.from_edge_index(edge_index)
        >>> A[:, torch.tensor([1])].row()
        tensor([0, 2])
        >>> A.sum(dim=0)
        tensor([1., 2., 1.])
    """

    __slots__ = ()

    #: Makes NumPy's arrays and numbers defer arithmetic to the matrix.
    __array_ufunc__ = None

    @classmethod
    def from_data(
        cls,
        data: Any,
        edge_type: EdgeType | None = None,
        value: str | Tensor | None = None,
    ) -> 'SparseSample':
        """Creates a matrix from a graph in another library's format.

        Args:
            data: PyG's ``Data``, ``HeteroData`` (with ``edge_type``) or
                ``EdgeIndex``, a torch-sparse ``SparseTensor`` (read as
                ``adj_t``: rows are destinations), a ``torch.sparse`` tensor
                in COO, CSR or CSC layout, a SciPy matrix, or a
                :class:`torch_gsample.CSC`.
            edge_type (Tuple[str, str, str], optional): The relation.
            value (str or torch.Tensor, optional): The values, or the name of
                an edge attribute.

        Raises:
            TypeError: If the format is unknown.
            ValueError: If the graph has no ``edge_index`` or ``adj_t``.
        """
        return read_source(cls, data, edge_type, value)

    # Extract.
    __getitem__ = extract.get
    masked = extract.masked
    compact = extract.compact
    induce = extract.induce
    _by_column = extract.by_column  # for adjacency.py

    # Nodes and edges of the original graph.
    row = ids.row
    nodes = ids.nodes
    edges = ids.edges

    # Arithmetic.
    with_value = arithmetic.with_value
    add = arithmetic.add
    sub = arithmetic.sub
    mul = arithmetic.mul
    div = arithmetic.div
    sddmm = arithmetic.sddmm
    relu = arithmetic.relu
    abs = __abs__ = arithmetic.abs
    exp = arithmetic.exp
    log = arithmetic.log
    sqrt = arithmetic.sqrt
    sigmoid = arithmetic.sigmoid
    clamp = arithmetic.clamp
    __matmul__ = arithmetic.matmul
    __rmatmul__ = arithmetic.rmatmul

    def __add__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'add', torch.add, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'sub', torch.sub, other)

    def __rsub__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'sub', torch.sub, other, swap=True)

    def __mul__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'mul', torch.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'div', torch.div, other)

    def __rtruediv__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'div', torch.div, other, swap=True)

    __pow__ = arithmetic.pow

    def __rpow__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'pow', torch.pow, other, swap=True)

    def __lt__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'lt', torch.lt, other)

    def __le__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'le', torch.le, other)

    def __gt__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'gt', torch.gt, other)

    def __ge__(self, other: Operand) -> 'SparseSample':
        return binary(self, 'ge', torch.ge, other)

    def __neg__(self) -> 'SparseSample':
        return self._of_value(-self.values())

    # Reduce.
    sum = reduce.sum
    mean = reduce.mean
    max = reduce.max
    min = reduce.min
    prod = reduce.prod
    norm = reduce.norm
    softmax = reduce.softmax
    degree = reduce.degree

    # Select.
    individual_sample = select.individual_sample
    collective_sample = select.collective_sample
    labor_sample = labor.labor_sample
    top = select.top
    rand = random_values.rand

    # Walk.
    random_walk = walk.random_walk
    node2vec_walk = walk.node2vec_walk
    frontier_walk = walk.frontier_walk
    visit_count = walk.visit_count

    # Convert.
    to_edge_index = convert.to_edge_index
    to_csc = convert.to_csc
    to_csr = convert.to_csr
    to_dense = convert.to_dense
    to_torch_sparse = convert.to_torch_sparse
    to_sparse_tensor = convert.to_sparse_tensor
    to_scipy = convert.to_scipy
    to_data = convert.to_data
    to_dgl = convert.to_dgl
    to_sampler_output = staticmethod(convert.to_sampler_output)

    # Move.
    to = move.to
    cpu = move.cpu
    cuda = move.cuda
    pin = move.pin
    pin_memory = move.pin_memory
    share_memory_ = move.share_memory_

    # Show.
    __repr__ = show.text
    _repr_html_ = show.table
    plot = show.plot

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        # By name, as functions are other objects while Dynamo traces.
        handler = HANDLERS.get(func.__name__)
        if handler is None:
            return NotImplemented
        return handler(*args, **(kwargs or {}))
