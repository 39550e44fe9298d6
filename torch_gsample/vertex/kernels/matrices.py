"""The elements of sparse matrices as edges, cached with the matrices."""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gsample.snapshot import Snapshot, add_keeper


class _Cache:
    """The edges of each matrix, as long as it lives and does not change."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Snapshot, Tensor]] = {}

    def of(self, matrix: Any, parts: list[Tensor]) -> Tensor:
        """Returns the edges of a matrix, which has these indices."""
        if any(part.is_inference() for part in parts):
            return _edges(matrix, parts)  # they have no version
        key = id(matrix)
        found = self._known.get(key)
        if found is None:
            weakref.finalize(matrix, self._known.pop, key, None)
        if found is None or not found[0].holds(parts):
            made = Snapshot(parts), _edges(matrix, parts)
            found = self._known[key] = made
        return found[1]

    def forget(self) -> None:
        """Drops all edges; matrices in use get new ones."""
        for key, (_, edges) in list(self._known.items()):
            self._known[key] = Snapshot([]), edges


_cache = add_keeper(_Cache())


def edges_of_matrix(matrix: Any) -> tuple[Tensor, Tensor | None] | None:
    """Returns the edges and values of a sparse matrix.

    Args:
        matrix (Any): Rows are destinations, as in PyG's ``adj_t``.

    Returns:
        Tuple[torch.Tensor, torch.Tensor], optional: int64 ``[2, num_edges]``,
        and the values of ``torch.sparse`` matrices in CSR or coalesced COO
        layout, and of those of torch-sparse that have values; None if it is
        something else.
    """
    if torch.compiler.is_compiling():
        return None
    if isinstance(matrix, SparseTensor):
        row, col, values = matrix.coo()
        return _cache.of(matrix, [row, col]), values
    if not isinstance(matrix, Tensor) or matrix.dim() != 2:
        return None
    if matrix.layout == torch.sparse_csr:
        parts = [matrix.crow_indices(), matrix.col_indices()]
    elif matrix.layout == torch.sparse_coo and matrix.is_coalesced():
        parts = [matrix.indices()]
    else:
        return None
    return _cache.of(matrix, parts), matrix.values()


def _edges(matrix: Any, parts: list[Tensor]) -> Tensor:
    if len(parts) == 1:
        return parts[0].flip(0)
    row, col = parts
    if isinstance(matrix, Tensor):
        rows = torch.arange(len(matrix), device=col.device)
        count = len(col)
        row = torch.repeat_interleave(rows, row.diff(), output_size=count)
    return torch.stack([col.long(), row])
