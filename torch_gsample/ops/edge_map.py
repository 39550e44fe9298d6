"""Kernels that were generated for a program."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size

#: The dtypes of operands, in the order of their numbers in a layout.
EDGE_DTYPES = (
    *(torch.float32, torch.float64),
    *(torch.int32, torch.int64, torch.bool),
)
#: The layout of each kernel that was loaded.
_layouts: dict[int, tuple[int, ...]] = {}


def load_edge_kernel(
    library: int | str | os.PathLike[str], layout: Sequence[int]
) -> int:
    """Loads a library that ``torch_gsample.codegen`` built.

    Args:
        library (int or str): A descriptor that is open on it, or its path.
        layout (Sequence[int]): What it reads and returns: the number of a
            dtype in :data:`EDGE_DTYPES`, values a row, whether it reduces,
            and the operand by which (-1 for columns) of the result; then
            role, dtype and values a row of each operand.

    Returns:
        int: The number of the kernel in this process.

    Raises:
        OSError: If there is no such file.
        RuntimeError: If it is no such library, or the layout is wrong.
    """
    with _check.opened(library) as descriptor:
        kernel = torch.ops.gsample.load_edge_kernel(descriptor, list(layout))
    _layouts[kernel] = tuple(layout)
    return kernel


def edge_map(
    kernel: int,
    operands: Sequence[Tensor],
    num_rows: int = 0,
    *,
    num_threads: int = 0,
) -> Tensor:
    """Runs a generated kernel.

    Args:
        kernel (int): Its number, of :func:`load_edge_kernel`.
        operands (Sequence[torch.Tensor]): What it reads.
        num_rows (int, optional): Rows of the result, if it reduces rows.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        torch.Tensor: A row for each edge, or each column or row if the kernel
        reduces them. It does not depend on the number of threads.

    Raises:
        RuntimeError: If operands are not what the kernel reads, or an index
            is out of range.
        ValueError: If ``kernel`` was not loaded.
    """
    if kernel not in _layouts:
        raise ValueError(
            f"edge_map: 'kernel' must be loaded in this process (got "
            f'{kernel!r})'
        )
    num_rows = _check.count('edge_map', 'num_rows', num_rows, 0)
    return torch.ops.gsample.edge_map(
        kernel, list(operands), num_rows, num_threads=num_threads
    )


@torch.library.register_fake('gsample::edge_map')
def _(kernel, operands, num_rows=0, num_threads=0):
    dtype, width, reduces, by, *_ = _layouts[kernel]
    roles = list(_layouts[kernel][4::3])
    size = num_rows
    if by < 0 and reduces:
        size = operands[roles.index(5)].shape[0] - 1
    elif by < 0:
        each = [
            x
            for x, role in zip(operands, roles, strict=True)
            if role in (0, 4)
        ]
        size = each[0].shape[0] if each else dynamic_size()
    shape = (size, width) if width > 1 else (size,)
    return operands[0].new_empty(shape, dtype=EDGE_DTYPES[dtype])
