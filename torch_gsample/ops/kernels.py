"""Generated kernels: loading, running and unloading."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size

#: Dtypes of tensors, in the order of their codes in a layout.
DTYPES = (
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.bfloat16,
    torch.float16,
)
#: Kinds of rows of an operand or result, in the order of their codes: ``any``
#: rows are found by an index, ``pointers`` are the start of each column.
ROWS = ('center', 'neighbor', 'edge', 'one', 'any', 'pointers')
_CENTER, _EDGE, _ANY, _POINTERS = (
    ROWS.index(name) for name in ('center', 'edge', 'any', 'pointers')
)
#: The layout of each loaded kernel.
_layouts: dict[int, tuple[int, ...]] = {}


def load_kernel(
    library: int | str | os.PathLike[str], layout: Sequence[int]
) -> int:
    """Loads a library built by ``torch_gsample.codegen``.

    Args:
        library (int or str): An open file descriptor of it, or its path.
        layout (Sequence[int]): Whether the kernel has no graph (0), an int32
            graph (1) or an int64 graph (2); the operand by which it reduces
            rows, or -1; the number of operands. Then, for each operand and
            result, the index in :data:`ROWS`, the index in :data:`DTYPES` and
            the number of values per row.

    Returns:
        int: The id of the kernel in this process.

    Raises:
        OSError: If the file does not exist.
        RuntimeError: If it is not such a library, or the layout is wrong.
    """
    with _check.opened(library) as descriptor:
        kernel = torch.ops.gsample.load_kernel(descriptor, list(layout))
    _layouts[kernel] = tuple(layout)
    return kernel


def unload_kernel(kernel: int) -> None:
    """Closes the library of a kernel after its last call.

    Args:
        kernel (int): Its id from :func:`load_kernel`.
    """
    if _layouts.pop(kernel, None) is not None:
        torch.ops.gsample.unload_kernel(kernel)


def run_kernel(
    kernel: int,
    operands: Sequence[Tensor],
    graph: Sequence[Tensor | None] = (),
    num_rows: int = 0,
    num_edges: int = 0,
    *,
    num_threads: int = 0,
) -> list[Tensor]:
    """Runs a generated kernel.

    An edge map has no graph: its operands determine the edges. Its result has
    a row for each edge, or for each column or row if it reduces them. A kernel
    of a vertex program runs over a graph, and its results have a row for each
    vertex or edge.

    Args:
        kernel (int): Its id from :func:`load_kernel`.
        operands (Sequence[torch.Tensor]): Its inputs.
        graph (Sequence[torch.Tensor], optional): ``indptr``, ``[num_vertices
            + 1]``, the start of each vertex's edges; ``indices``, the
            neighbour of each edge; ``edge_id``, the row of each edge in
            operands of edges, or ``None`` for its position; ``order``, the
            distinct vertices in the order in which threads process them, or
            ``None`` for all. The results of others are 0.
        num_rows (int, optional): Number of rows of the result of an edge map
            that reduces rows, or of operands of neighbours.
        num_edges (int, optional): Number of rows of operands of a graph's
            edges.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        List[torch.Tensor]: The results. They do not depend on the number of
        threads.

    Raises:
        RuntimeError: If operands do not match the layout, or an index is out
            of range.
        ValueError: If ``kernel`` is not loaded.
    """
    name = 'run_kernel'
    if kernel not in _layouts:
        raise ValueError(
            f"{name}: 'kernel' must be loaded in this process (got {kernel!r})"
        )
    num_rows = _check.count(name, 'num_rows', num_rows, 0)
    num_edges = _check.count(name, 'num_edges', num_edges, 0)
    return torch.ops.gsample.run_kernel(
        kernel,
        list(operands),
        *(graph or [None] * 4),
        num_rows,
        num_edges,
        num_threads=num_threads,
    )


@torch.library.register_fake('gsample::run_kernel')
def _(
    kernel,
    operands,
    indptr=None,
    indices=None,
    edge_id=None,
    order=None,
    num_rows=0,
    num_edges=0,
    num_threads=0,
):
    layout = _layouts[kernel]
    has_graph, _, count = layout[:3]
    parts = [layout[i : i + 3] for i in range(3, len(layout), 3)]
    counts = {_ANY: num_rows, _EDGE: num_edges}
    if has_graph:
        counts[_CENTER] = indptr.shape[0] - 1
    else:
        counts[_EDGE] = None
        for x, (rows, _, _) in zip(operands, parts[:count], strict=True):
            if rows == _POINTERS:
                counts[_CENTER] = x.shape[0] - 1
            elif rows == _EDGE:
                counts[_EDGE] = x.shape[0]
    out = []
    for rows, dtype, width in parts[count:]:
        size = counts[rows]
        size = dynamic_size() if size is None else size
        shape = (size, width) if has_graph or width > 1 else (size,)
        like = indptr if has_graph else operands[0]
        out.append(like.new_empty(shape, dtype=DTYPES[dtype]))
    return out
