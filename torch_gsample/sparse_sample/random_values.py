"""Random values of edges, which programs draw from their key."""

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample.arithmetic import binary
from torch_gsample.sparse_sample.parts import M

#: Bits of the fraction of a number below 1, by dtype.
_BITS = {
    torch.float64: 53,
    torch.float32: 24,
    torch.float16: 11,
    torch.bfloat16: 8,
}


def rand(matrix: M) -> M:
    """Draws a number in ``[0, 1)`` for each edge.

    A number is a function of the key, the index of the draw in its program
    and the id of the edge. So batches do not depend on the number of workers
    and threads or on the device, unlike those of :func:`torch.rand`.
    ``torch.bernoulli(A)`` draws 1 with the probability in the value of an
    edge, and 0 otherwise, in the same way.

    Returns:
        SparseSample: The numbers, in the dtype of the values if these are
        floating point, or torch's default dtype.

    Example:
        >>> from torch_gsample import SparseSample
        >>> edge_index = torch.arange(20).view(2, 10) % 4
        >>> A = SparseSample.from_edge_index(edge_index)
        >>> kept = A.masked(A.rand() < 0.5)  # DropEdge
        >>> noise = -torch.log(-torch.log(A.rand().clamp(min=1e-6)))
        >>> (A.log() + noise).top(1).num_edges  # Gumbel-top-k
        4
    """
    key, call_id = current_program()
    drawn = ops.random_uniform(matrix.edge_id, key=key, call_id=call_id)
    dtype = matrix.values().dtype
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    if dtype != torch.float64:
        # Rounding to the nearest number could return 1.
        scale = 2.0 ** _BITS[dtype]
        drawn = ((drawn * scale).floor() / scale).to(dtype)
    return matrix._of_value(drawn)


def bernoulli(matrix: M) -> M:
    """Draws 1 with the probability of each edge; see :func:`rand`."""
    held: Tensor = binary(rand(matrix), 'lt', torch.lt, matrix).values()
    return matrix._of_value(held.to(matrix.values().dtype))
