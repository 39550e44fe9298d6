"""Probabilities of the rows of a ``SparseSample``."""

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.ops._check import detached
from torch_gsample.ops.formats import positive_weights
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample.errors import call_as


class NodeProbs:
    """Probabilities of rows, preprocessed once for many samples.

    Draws use the keys of :meth:`SparseSample.individual_sample`.

    Args:
        probs (torch.Tensor): Unnormalised probabilities ``[num_rows]``. A row
            of probability 0 is never sampled; if all are 0, no row is.

    Raises:
        ValueError: If a probability is negative or not finite.

    Example:
        >>> import torch
        >>> q = NodeProbs(torch.tensor([0.0, 3.0, 1.0]))
        >>> q.probs
        tensor([0.0000, 0.7500, 0.2500])
        >>> q.sample(2)
        tensor([1, 2])
    """

    __slots__ = ('cum_weight', 'probs', 'rows')

    #: Normalised; gradients flow through them.
    probs: Tensor

    def __init__(self, probs: Tensor):
        self.rows, self.cum_weight = call_as(
            'NodeProbs', positive_weights, detached(probs), 'probs'
        )
        total = probs.sum()
        self.probs = probs / torch.where(total > 0, total, 1)

    def share_memory_(self) -> 'NodeProbs':
        """Moves all tensors to shared memory."""
        for tensor in (self.probs, self.rows, self.cum_weight):
            tensor.share_memory_()
        return self

    def sample(self, k: int, replace: bool = False) -> Tensor:
        """Samples rows.

        Args:
            k (int): Number of rows. Without replacement, if at most ``k`` rows
                have a positive probability, all of them in order.
            replace (bool, optional): Whether rows are drawn independently.

        Returns:
            torch.Tensor: int64, of at most ``k`` rows.

        Raises:
            ValueError: If ``k`` is negative.
        """
        return draw_rows(self.rows, k, self.cum_weight, replace)


def draw_rows(
    rows: Tensor, k: int, cum_weight: Tensor | None, replace: bool
) -> Tensor:
    """Draws from candidates by cumulated weights, or uniformly."""
    key, call_id = current_program()
    chosen = ops.sample_nodes(
        rows.numel(),
        k,
        key=key,
        call_id=call_id,
        cum_weight=cum_weight,
        replace=replace,
        device=rows.device,
    )
    return rows.index_select(0, chosen)
