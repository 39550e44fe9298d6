"""The edges of one relation, in compressed sparse columns.

Rows are sources and columns are destinations, so that a column lists the
in-neighbours of a node: what a sampler reads.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops, placement
from torch_gsample.ops import _check
from torch_gsample.ops.formats import check_csc, cum_weight_size, index_widths

_INT32_MAX = torch.iinfo(torch.int32).max

#: Edge ids that are compared at a time: most permutations differ at once.
_IDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class CSC:
    """The edges of a relation in compressed sparse columns.

    Args:
        indptr (torch.Tensor): ``[num_cols + 1]``, the start of each column.
        indices (torch.Tensor): ``[num_edges]``, the row of each edge.
        num_rows (int): Number of sources.
        edge_id (torch.Tensor, optional): ``[num_edges]``, the id of each edge
            in the original graph; default: its position.
        cum_weight (torch.Tensor, optional): int64, see
            :func:`~torch_gsample.ops.cumulate_weights`.
        edge_time (torch.Tensor, optional): int64 ``[num_edges]``, the first
            time of each edge, ascending within each column.
        checked (bool, optional): Whether the columns are known to be valid.
    """

    indptr: Tensor
    indices: Tensor
    num_rows: int
    edge_id: Tensor | None = None
    cum_weight: Tensor | None = None
    edge_time: Tensor | None = None
    checked: bool = field(default=False, kw_only=True, repr=False)

    @property
    def num_cols(self) -> int:
        """Number of destinations."""
        return self.indptr.shape[0] - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.indices.shape[0]

    @property
    def perm(self) -> Tensor | None:
        """The former name of :attr:`edge_id`."""
        warnings.warn(
            "CSC: 'perm' is now called 'edge_id'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.edge_id

    @classmethod
    def from_coo(
        cls,
        row: Tensor,
        col: Tensor,
        num_rows: int,
        num_cols: int,
        *,
        is_sorted: bool = False,
        index_dtype: torch.dtype | None = None,
    ) -> 'CSC':
        """Sorts edges by column with a stable sort.

        Args:
            row (torch.Tensor): ``[num_edges]``, sources.
            col (torch.Tensor): ``[num_edges]``, destinations.
            num_rows (int): Number of sources.
            num_cols (int): Number of destinations.
            is_sorted (bool, optional): Whether ``col`` is already sorted.
            index_dtype (torch.dtype, optional): int32 or int64; default: int32
                if it suffices.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If ``is_sorted`` is set and edges are not sorted.
        """
        if is_sorted and bool((col[1:] < col[:-1]).any()):
            raise ValueError(
                "CSC.from_coo: with 'is_sorted', edges must be sorted by "
                'destination (they are not)'
            )
        indptr, indices, order = ops.coo_to_csc(
            row, col, num_rows, num_cols, index_dtype
        )
        edge_id = None if is_sorted else order
        return cls(indptr, indices, num_rows, edge_id, checked=True)

    @classmethod
    def from_compressed(
        cls,
        indptr: Tensor,
        indices: Tensor,
        num_rows: int,
        num_cols: int,
        *,
        edge_id: Tensor | None = None,
        index_dtype: torch.dtype | None = None,
        name: str = 'graph',
    ) -> 'CSC':
        """Checks compressed columns and wraps them.

        Tensors are shared, unless ``index_dtype`` is another dtype or columns
        are missing at the end.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If ``indptr`` is malformed.
        """
        check_csc(indptr, indices, num_rows, name)
        missing = num_cols + 1 - indptr.numel()
        if missing < 0:
            raise ValueError(
                f"CSC.from_compressed: 'indptr' of {name} must have at most "
                f'{num_cols + 1} elements (got {indptr.numel()})'
            )
        if missing > 0:
            indptr = torch.cat([indptr, indptr[-1:].expand(missing)])
        if index_dtype is not None:
            index_widths(
                'CSC.from_compressed',
                indices.numel(),
                max(num_rows, num_cols),
                index_dtype,
            )
            indptr, indices = indptr.to(index_dtype), indices.to(index_dtype)
        indptr, indices = indptr.contiguous(), indices.contiguous()
        return cls(indptr, indices, num_rows, edge_id, checked=True)

    def check(self, name: str = 'graph') -> 'CSC':
        """Checks the columns once and returns them.

        Args:
            name (str, optional): Name of the columns in errors.

        Raises:
            IndexError: If a source is out of range.
            ValueError: If ``indptr`` is malformed, or a length is wrong.
        """
        if self.checked:
            return self
        out = CSC.from_compressed(
            self.indptr, self.indices, self.num_rows, self.num_cols, name=name
        )
        num_edges = self.num_edges
        sizes = {
            'edge_id': num_edges,
            'cum_weight': cum_weight_size(num_edges, self.num_cols),
            'edge_time': num_edges,
        }
        for key, size in sizes.items():
            value = getattr(self, key)
            if value is not None and value.shape != (size,):
                raise ValueError(
                    f"CSC.check: '{key}' of {name} must have {size} elements "
                    f'(got shape {list(value.shape)})'
                )
        return replace(
            self, indptr=out.indptr, indices=out.indices, checked=True
        )

    def col(self, dtype: torch.dtype | None = None) -> Tensor:
        """Returns the column of each edge, ``[num_edges]``.

        Args:
            dtype (torch.dtype, optional): Default: that of ``indices``.
        """
        dtype = self.indices.dtype if dtype is None else dtype
        # Patterns of the compiler name neither int64 nor the CPU.
        options: dict[str, Any] = {}
        if dtype != torch.int64:
            options['dtype'] = dtype
        if self.indptr.is_cuda:
            options['device'] = self.indptr.device
        cols = torch.arange(self.num_cols, **options)
        return torch.repeat_interleave(
            cols, self.indptr.diff(), output_size=self.num_edges
        )

    def degree(self, dtype: torch.dtype | None = None) -> Tensor:
        """Returns the number of edges of each column, ``[num_cols]``.

        Args:
            dtype (torch.dtype, optional): Default: that of ``indptr``.
        """
        degree = self.indptr.diff()
        return degree if dtype is None else degree.to(dtype)

    def in_columns(self, value: Tensor) -> Tensor:
        """Returns values of the original edges in the order of the columns."""
        return value if self.edge_id is None else value[self.edge_id]

    def drop_identity(self) -> 'CSC':
        """Returns the columns without edge ids if these are the positions.

        Sampling then skips the lookup of ids: 8 bytes and a random read per
        edge.
        """
        ids = self.edge_id
        if ids is None:
            return self
        first = 0
        for part in ids.split(_IDS_AT_ONCE):
            last = first + part.numel()
            if not torch.equal(part, torch.arange(first, last).to(part)):
                return self
            first = last
        return replace(self, edge_id=None)

    def transpose(self) -> 'CSC':
        """Returns the relation with its edges reversed.

        ``edge_id`` of the result refers to the original graph.

        Raises:
            ValueError: If there are weights or times, which are stored by
                column.
        """
        self._check_no_values('transpose')
        # The columns may need int64 where the rows do not.
        sizes = self.num_rows, self.num_cols
        narrow = all(_check.is_known(size <= _INT32_MAX) for size in sizes)
        dtype = self.indices.dtype if narrow else torch.int64
        out = CSC.from_coo(
            self.col(dtype),
            self.indices.to(dtype),
            self.num_cols,
            self.num_rows,
            index_dtype=self.indices.dtype,
        )
        if self.edge_id is None:
            return out
        return replace(out, edge_id=out.in_columns(self.edge_id))

    def sort_columns(self, by: Tensor) -> tuple['CSC', Tensor]:
        """Sorts the edges of each column with a stable sort.

        Args:
            by (torch.Tensor): The sort key, ``[num_edges]``, in the current
                order.

        Returns:
            Tuple[CSC, torch.Tensor]: The sorted columns, and the former
            position of each edge.

        Raises:
            ValueError: If there are already weights or times.
        """
        self._check_no_values('sort_columns')
        order = torch.argsort(by, stable=True)
        col = self.col()[order]
        _, indices, perm = ops.coo_to_csc(
            self.indices[order],
            col,
            self.num_rows,
            self.num_cols,
            self.indices.dtype,
        )
        order = order[perm]
        edge_id = order if self.edge_id is None else self.edge_id[order]
        return replace(self, indices=indices, edge_id=edge_id), order

    def without_values(self) -> 'CSC':
        """Returns the columns without weights and times."""
        return replace(self, cum_weight=None, edge_time=None)

    def _check_no_values(self, op: str) -> None:
        if self.cum_weight is not None or self.edge_time is not None:
            raise ValueError(
                f'CSC.{op}: weights and times must be added to the result '
                '(this relation has some)'
            )

    def map(self, function: Callable[[Tensor], Tensor]) -> 'CSC':
        """Returns the columns with a function applied to each tensor."""

        def optional(value: Tensor | None) -> Tensor | None:
            return None if value is None else function(value)

        return CSC(
            function(self.indptr),
            function(self.indices),
            self.num_rows,
            optional(self.edge_id),
            optional(self.cum_weight),
            optional(self.edge_time),
            checked=self.checked,
        )

    def to(self, device: torch.device | str) -> 'CSC':
        """Returns a copy of the columns on a device."""
        return self.map(lambda tensor: tensor.to(device))

    def pin(self) -> 'CSC':
        """Returns the columns in pinned memory, for access by GPUs."""
        return self.map(placement.pin)

    def place(self, where: placement.Placement) -> 'CSC':
        """Returns a copy of the columns placed for a GPU.

        ``indptr`` is always on the GPU, as every sampled column reads it. Edge
        ids become int32 if it suffices.
        """
        ids = self.edge_id
        if ids is not None and (not len(ids) or int(ids.max()) <= _INT32_MAX):
            ids = ids.to(torch.int32)
        placed = replace(self, edge_id=ids).map(where.place)
        return replace(placed, indptr=where.on_device(self.indptr))

    def share_memory_(self) -> 'CSC':
        """Moves the tensors to shared memory."""
        self.map(Tensor.share_memory_)
        return self
