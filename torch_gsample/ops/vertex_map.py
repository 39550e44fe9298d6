"""Fused kernels that were generated for vertex programs."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.ops import _check

#: What an operand or a result of a kernel has a row for, by number.
ROWS = ('center', 'neighbor', 'edge', 'one', 'any')
_layouts: dict[int, tuple[int, ...]] = {}


def load_vertex_kernel(
    library: int | str | os.PathLike[str], layout: Sequence[int]
) -> int:
    """Loads a library that ``torch_gsample.codegen`` built.

    Args:
        library (int or str): A descriptor that is open on it, or its path.
        layout (Sequence[int]): Whether results are float64, whether indices
            are int64, and the number of operands; then, of each operand and
            result, the place in :data:`ROWS`, whether it is float64, and the
            values a row.

    Returns:
        int: The number of the kernel in this process.

    Raises:
        OSError: If there is no such file.
        RuntimeError: If it is no such library, or the layout is wrong.
    """
    with _check.opened(library) as descriptor:
        kernel = torch.ops.gsample.load_vertex_kernel(descriptor, list(layout))
    _layouts[kernel] = tuple(layout)
    return kernel


def vertex_map(
    kernel: int,
    indptr: Tensor,
    indices: Tensor,
    edge_id: Tensor | None,
    order: Tensor | None,
    num_neighbors: int,
    num_edges: int,
    operands: Sequence[Tensor],
    *,
    num_threads: int = 0,
) -> list[Tensor]:
    """Runs a fused kernel at each vertex of a graph.

    Args:
        kernel (int): Its number, of :func:`load_vertex_kernel`.
        indptr (torch.Tensor): ``[num_vertices + 1]``, where the edges of each
            vertex start.
        indices (torch.Tensor): ``[num_edges]``, the neighbour of each edge.
        edge_id (torch.Tensor, optional): ``[num_edges]``, the row of each
            edge in operands of edges; its position if not given.
        order (torch.Tensor, optional): ``[num_vertices]``, a permutation: the
            order in which threads take vertices.
        num_neighbors (int): Rows of operands of neighbours.
        num_edges (int): Rows of operands of edges.
        operands (Sequence[torch.Tensor]): What it reads.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        List[torch.Tensor]: ``[rows, width]`` each. They do not depend on the
        number of threads.

    Raises:
        RuntimeError: If operands are not what the kernel reads, or an index
            is out of range.
        ValueError: If ``kernel`` was not loaded.
    """
    if kernel not in _layouts:
        raise ValueError(
            f"vertex_map: 'kernel' must be loaded in this process (got "
            f'{kernel!r})'
        )
    name = 'vertex_map'
    num_neighbors = _check.count(name, 'num_neighbors', num_neighbors, 0)
    num_edges = _check.count(name, 'num_edges', num_edges, 0)
    return torch.ops.gsample.vertex_map(
        kernel,
        *(indptr, indices, edge_id, order, num_neighbors, num_edges),
        list(operands),
        num_threads=num_threads,
    )


@torch.library.register_fake('gsample::vertex_map')
def _(
    kernel,
    indptr,
    indices,
    edge_id,
    order,
    num_neighbors,
    num_edges,
    operands,
    num_threads=0,
):
    is_double, _, count, *rest = _layouts[kernel]
    dtype = torch.float64 if is_double else torch.float32
    parts = [rest[i : i + 3] for i in range(3 * count, len(rest), 3)]
    rows = {0: indptr.shape[0] - 1, 2: num_edges}
    return [
        indptr.new_empty((rows[row], width), dtype=dtype)
        for row, _, width in parts
    ]
