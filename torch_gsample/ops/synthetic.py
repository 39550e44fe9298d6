"""Edges of random graphs, for :mod:`torch_gsample.datasets`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size


def configuration_model(
    indptr: Tensor, seed: int, index_dtype: torch.dtype = torch.int32
) -> Tensor:
    """Draws a graph of fixed degrees (configuration model).

    Args:
        indptr (torch.Tensor): ``[num_nodes + 1]``; node ``v`` has
            ``indptr[v + 1] - indptr[v]`` in-edges and the same number of
            out-edges.
        seed (int): Seed of the permutation.
        index_dtype (torch.dtype, optional): Dtype of the result.

    Returns:
        torch.Tensor: ``[num_edges]``, the source of each edge.

    Example:
        >>> indices = configuration_model(torch.tensor([0, 1, 3]), seed=0)
        >>> indices.sort().values
        tensor([0, 1, 1], dtype=torch.int32)
    """
    op = 'configuration_model'
    indptr = _check.pointers(op, indptr)
    if index_dtype not in _check.INDEX_DTYPES:
        raise TypeError(
            f"{op}: 'index_dtype' must be torch.int32 or torch.int64 "
            f'(got {index_dtype})'
        )
    wide = index_dtype == torch.int64
    if wide:
        indptr = indptr.to(torch.int64)
    return torch.ops.gsample.configuration_model(indptr, seed, wide)


def rmat_edges(
    scale: int, num_edges: int, quadrants: Sequence[float], seed: int
) -> tuple[Tensor, Tensor]:
    """Draws edges of an R-MAT graph of 2^scale nodes.

    Args:
        scale (int): Logarithm of the number of nodes, at most 40.
        num_edges (int): Number of edges, duplicates counted.
        quadrants (List[float]): Probabilities of the four quadrants.
        seed (int): Seed of the draws.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: Sources and destinations
        ``[num_edges]``, int32 if it suffices.

    Raises:
        RuntimeError: If an argument is outside its range.
    """
    return torch.ops.gsample.rmat_edges(
        scale, num_edges, list(quadrants), seed
    )


@torch.library.register_fake('gsample::configuration_model')
def _(indptr, seed, wide_indices):
    size = dynamic_size()
    return indptr.new_empty(
        size, dtype=torch.int64 if wide_indices else torch.int32
    )


@torch.library.register_fake('gsample::rmat_edges')
def _(scale, num_edges, quadrants, seed):
    dtype = torch.int32 if scale < 31 else torch.int64
    return (
        torch.empty(num_edges, dtype=dtype),
        torch.empty(num_edges, dtype=dtype),
    )
