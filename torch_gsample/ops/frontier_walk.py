"""Multidimensional random walks (frontier sampling)."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops import _walk_arguments as _walk
from torch_gsample.ops.walk import Walks


def frontier_walk(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    length: int,
    *,
    key: Tensor,
    call_id: int = 0,
) -> Walks:
    r"""Runs a multidimensional walk, which moves one walker per step.

    The walkers :math:`L` start at the seeds. A step moves the walker at
    :math:`u` to its neighbour :math:`x` with probability

    .. math::
        P(u \to x) = \frac{\deg(u)}{\sum_{v \in L} \deg(v)}
                     \cdot \frac{1}{\deg(u)}

    that is, along a uniformly drawn edge that leaves the frontier. This is
    frontier sampling of `"Estimating and Sampling Graphs with Multidimensional
    Random Walks" <https://arxiv.org/abs/1002.1751>`_ (IMC 2010), whose edges
    are asymptotically uniform, also in a graph of several components.

    Each step depends on all previous ones, so a call runs on one thread, and
    there is no CUDA kernel. The time of a step is logarithmic in the number of
    walkers.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_nodes + 1]``, on the CPU.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``, the neighbours
            of each node: rows of the graph, its CSR, for walks along edges.
        seeds (torch.Tensor): ``[num_seeds]``; each is the start of a walker,
            duplicates included.
        length (int): Number of steps, of all walkers together.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program.

    Returns:
        Walks: ``nodes``, int64 ``[length]``, the start of each step, and
        ``edges``, int64 ``[length]``, the position of its edge in ``indices``;
        both are -1 if no edge leaves the frontier.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument is invalid (the message names the rule), or
            is on a GPU.
        RuntimeError: If a walker reads a malformed part of the graph.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 1, 2, 3, 3])  # 0 -> 1 -> 2 -> 3
        >>> indices = torch.tensor([1, 2, 3])
        >>> nodes, edges = frontier_walk(
        ...     indptr, indices, torch.tensor([1, 3]), 3, key=make_key(0)
        ... )
        >>> nodes, edges
        (tensor([ 1,  2, -1]), tensor([ 1,  2, -1]))
    """
    op = 'frontier_walk'
    for name, value in (('indptr', indptr), ('seeds', seeds)):
        if isinstance(value, Tensor) and value.device.type != 'cpu':
            raise ValueError(
                f"{op}: '{name}' must be on the CPU, because each "
                'step depends on the previous one (got '
                f'{value.device})'
            )
    indptr, indices = _check.graph(op, indptr, indices)
    return Walks(
        *_check.call(
            torch.ops.gsample.frontier_walk.default,
            indptr,
            indices,
            _check.node_ids(op, 'seeds', seeds, indptr.numel() - 1),
            _walk.length(op, length),
            _check.random_key(op, key),
            _walk.call_id(op, call_id),
        )
    )


@torch.library.register_fake('gsample::frontier_walk')
def _(indptr, indices, seeds, length, key, call_id=0):
    return seeds.new_empty(length), seeds.new_empty(length)
