"""Moves the tensors of a matrix: to a device, pinned or shared memory."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_gsample import placement
from torch_gsample.csc import CSC
from torch_gsample.list_cache import keep_lists
from torch_gsample.sparse_sample.parts import M


def to(
    matrix: M,
    device: torch.device | str | int | torch.dtype | None = None,
    dtype: torch.dtype | None = None,
    *,
    non_blocking: bool = False,
) -> M:
    """Returns the matrix on a device, or with values of a dtype.

    Tensors already on the device are shared. Gradients flow to the values.

    Args:
        device (torch.device or torch.dtype, optional): The device of all
            tensors, or ``dtype``, as in :meth:`torch.Tensor.to`.
        dtype (torch.dtype, optional): The dtype of the values.
        non_blocking (bool, optional): Whether copies between a GPU and pinned
            memory are asynchronous. Copies from memory of :meth:`pin` never
            are, because its matrix may be released at once.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> A.to('cpu', torch.float64).dtype
        torch.float64
    """
    if isinstance(device, torch.dtype):
        device, dtype = None, device
    out = matrix
    if device is not None:
        target = torch.device(device)

        def moved(tensor: Tensor) -> Tensor:
            waits = not non_blocking or placement.is_registered(tensor)
            return tensor.to(target, non_blocking=not waits)

        out = _mapped(out, moved)
    if dtype is not None and dtype != out.dtype:
        value = out.values().to(dtype, non_blocking=non_blocking)
        out = out._of_value(value)
    return out


def cpu(matrix: M) -> M:
    """Returns the matrix in CPU memory."""
    return to(matrix, 'cpu')


def cuda(
    matrix: M,
    device: torch.device | str | int | None = None,
    *,
    non_blocking: bool = False,
) -> M:
    """Returns the matrix on a GPU, by default the current one."""
    device = 'cuda' if device is None else device
    return to(matrix, device, non_blocking=non_blocking)


def pin_memory(matrix: M) -> M:
    """Returns a copy in pinned memory, for fast transfers to a GPU.

    Loaders with ``pin_memory=True`` call it. See :meth:`pin` for sampling on a
    GPU without a transfer.
    """
    return _mapped(matrix, lambda tensor: tensor.pin_memory())


def pin(matrix: M, cache_bytes: int = 0) -> M:
    """Returns the matrix in pinned memory, for access by GPUs.

    Memory is registered with CUDA in place, for the lifetime of the result;
    see :func:`torch_gsample.placement.pin`. With seeds (or other positions) on
    a GPU, the GPU extracts, samples and walks: it reads only visited columns
    over the bus. Operations on the whole matrix run on the CPU.

    Args:
        cache_bytes (int, optional): Memory of the current GPU for a cache of
            the columns of highest in-degree, used by
            :func:`ops.sample_neighbors` and :func:`ops.sample_layers`, and so
            by compiled layers.

    Raises:
        RuntimeError: If there is no GPU with a driver.
        ValueError: If this package was built without CUDA, or
            ``cache_bytes`` is negative, or set for a matrix that is not
            square or on a GPU.
    """
    if cache_bytes < 0:
        raise ValueError(
            f"pin: 'cache_bytes' must not be negative (got {cache_bytes})"
        )
    on_cpu = matrix.device.type == 'cpu'
    if cache_bytes and not (on_cpu and matrix.num_rows == matrix.num_cols):
        raise ValueError(
            "pin: 'cache_bytes' needs a square matrix on the CPU (got "
            f'shape {list(matrix.shape)} on {matrix.device})'
        )
    out = _mapped(matrix, placement.pin)
    if cache_bytes:
        keep_lists(out.csc.indptr, out.csc.indices, cache_bytes)
    return out


def share_memory_(matrix: M) -> M:
    """Moves all tensors to shared memory."""
    _mapped(matrix, Tensor.share_memory_)
    return matrix


def _mapped(matrix: M, function: Callable[[Tensor], Tensor]) -> M:
    """Returns the matrix with a function applied to each tensor."""

    def layout(part: CSC | None) -> CSC | None:
        return None if part is None else part.map(function)

    def each(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else function(tensor)

    return matrix._made(
        layout(matrix._csc),
        layout(matrix._csr),
        matrix.shape,
        each(matrix.value),
        each(matrix._known_ids()),
        each(matrix.row_ids),
        each(matrix.col_ids),
    )
