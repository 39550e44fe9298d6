"""node2vec: biased second-order random walks."""

from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


def node2vec(
    A: SparseSample,
    seeds: Tensor,
    length: int,
    p: float,
    q: float,
    weighted: bool = False,
) -> Tensor:
    r"""Runs second-order random walks (node2vec).

    A walk from :math:`t` to :math:`v` continues to :math:`x` with probability

    .. math::
        P(x \mid t, v) \propto w_{vx} \cdot \begin{cases}
            1 / p & x = t \\
            1     & t \to x \text{ is an edge} \\
            1 / q & \text{otherwise}
        \end{cases}

    where :math:`w_{vx}` is the value of the edge with ``weighted=True``, else
    1. The first step only depends on :math:`w`. From `"node2vec: Scalable
    Feature Learning for Networks" <https://arxiv.org/abs/1607.00653>`_ (KDD
    2016).

    Args:
        A (SparseSample): ``[N, N]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``, starts of walks.
        length (int): Number of steps.
        p (float): Return parameter; walks return less with a larger one.
        q (float): In-out parameter; walks stay closer with a larger one.
        weighted (bool, optional): Whether the values of edges are weights.

    Returns:
        torch.Tensor: int64 ``[num_seeds, length + 1]``, the nodes of each
        walk. A walk stays at a node whose out-edges are missing or all have
        weight 0.

    Raises:
        ValueError: If ``p`` or ``q`` is not positive, or a weight is negative
            or not finite.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> node2vec(A, torch.tensor([0, 1]), length=3, p=2., q=.5)
        tensor([[0, 1, 0, 1],
                [1, 0, 1, 0]])
    """
    walks = A.node2vec_walk(seeds, length, p, q, A if weighted else None)
    return walks.nodes
