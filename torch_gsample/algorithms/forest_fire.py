"""Forest fire: subgraphs that spread like flames."""

from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample


def forest_fire(A: SparseSample, seeds: Tensor, p: float) -> SparseSample:
    r"""Burns from seeds and induces the subgraph of all burnt nodes.

    A node that catches fire sets a random number :math:`x` of its
    out-neighbours on fire that do not burn yet, all if there are not more:

    .. math::
        P(x \geq j) = p^j, \qquad E[x] = \frac{p}{1 - p}

    All that burn first at one time spread at the same time, and a node burns
    once. For fire against the direction of edges, too, give a matrix that has
    both.

    From `"Sampling from Large Graphs"
    <https://doi.org/10.1145/1150402.1150479>`_ (KDD 2006) and `"Graphs over
    Time" <https://doi.org/10.1145/1081870.1081893>`_ (KDD 2005).

    Args:
        A (SparseSample): ``[N, N]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``, where it starts.
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
