"""HetGNN: the most visited neighbours of each type."""

from collections.abc import Sequence

from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


def hetgnn(
    A: SparseSample,
    seeds: Tensor,
    node_type: Tensor,
    k: Sequence[int],
    num_walks: int,
    length: int,
    restart: float = 0.5,
) -> list[SparseSample]:
    r"""Finds the most visited nodes of each type around each seed.

    Walks restart at their seed. Group :math:`t` of the seed :math:`v` is

    .. math::
        N_t(v) = \operatorname{top}_{k_t} \{ \mathrm{visits}_v(u) :
            \mathrm{type}(u) = t \}

    From `"Heterogeneous Graph Neural Network"
    <https://dl.acm.org/doi/10.1145/3292500.3330961>`_ (KDD 2019), where walks
    continue until they have visited enough nodes of each type. Here, their
    number and length are fixed.

    Args:
        A (SparseSample): ``[N, N]``, all types and relations in one matrix.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        node_type (torch.Tensor): int64 ``[N]``, in ``[0, len(k))``.
        k (List[int]): Maximum number of neighbours of each type.
        num_walks (int): Walks per seed.
        length (int): Steps per walk.
        restart (float, optional): Probability to return to the seed at each
            step.

    Returns:
        List[SparseSample]: ``[N, num_seeds]`` for each type; values count
        visits.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 0, 2, 2, 1], [1, 0, 2, 0, 1, 2]])
        ... )
        >>> node_type = torch.tensor([0, 0, 1])
        >>> seeds = torch.tensor([0])
        >>> users, items = hetgnn(A, seeds, node_type, [1, 1], 9, 5)
        >>> users.row(), items.row()
        (tensor([1]), tensor([2]))
    """
    visits = A.visit_count(seeds, num_walks, length, restart)
    type_of_row = node_type[visits.coo()[0]]
    return [
        visits.masked(type_of_row == number).top(size)
        for number, size in enumerate(k)
    ]
