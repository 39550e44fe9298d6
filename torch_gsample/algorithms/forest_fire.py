"""Forest-fire sampling of subgraphs."""

from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample


def forest_fire(A: SparseSample, seeds: Tensor, p: float) -> SparseSample:
    r"""Burns from seeds and induces the subgraph of all burnt nodes.

    A node that catches fire ignites a random number :math:`x` of its
    out-neighbours that do not burn yet, or all if there are fewer:

    .. math::
        P(x \geq j) = p^j, \qquad E[x] = \frac{p}{1 - p}

    Nodes that ignite in the same step spread fire in the next step, and each
    node burns once. For fire in both directions, pass a matrix with both
    directions of each edge.

    From `"Sampling from Large Graphs"
    <https://doi.org/10.1145/1150402.1150479>`_ (KDD 2006) and `"Graphs over
    Time" <https://doi.org/10.1145/1081870.1081893>`_ (KDD 2005).

    Args:
        A (SparseSample): ``[N, N]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``, the first burning nodes.
        p (float): Forward burning probability, in [0, 1).

    Returns:
        SparseSample: The subgraph of the burnt nodes, in ascending order.

    Raises:
        ValueError: If ``p`` is not in [0, 1).

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 2]]))
        >>> forest_fire(A, torch.tensor([0]), p=0.999999).col_ids
        tensor([0, 1, 2])
    """
    key, call_id = current_program()
    edges = A.csr  # out-neighbours
    return A.induce(
        ops.forest_fire(
            edges.indptr, edges.indices, seeds, p, key=key, call_id=call_id
        )
    )
