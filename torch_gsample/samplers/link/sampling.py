"""Negatives of a link loader: given ones, and the source of drawn ones."""

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric import sampler as pyg
from torch_geometric.sampler.base import NegativeSamplingMode

from torch_gsample.ops import _check

_NAME = 'NegativeSampling'
Candidates = tuple[Tensor, Tensor]


class NegativeSampling(pyg.NegativeSampling):
    """PyG's ``NegativeSampling`` with hard, in-batch and shared negatives.

    PyG's ``'binary'`` mode draws both ends of a negative from the graph. In
    all other cases, negatives are destinations for the sources of the seed
    edges. With ``'binary'``, they are edges with label 0; with ``'triplet'``,
    the columns of ``dst_neg_index``, given ones first.

    Args:
        mode (str): ``'binary'`` or ``'triplet'``.
        amount (int or float, optional): Number of negatives to draw for each
            seed edge; may be 0 if there are given ones.
        src_weight (torch.Tensor, optional): As in PyG.
        dst_weight (torch.Tensor, optional): As in PyG.
        given (torch.Tensor, optional): int64 ``[num_seed_edges, m]``, hard
            negatives: destinations of each seed edge, by its ``input_id``.
            They may be edges of the graph.
        among (str or Tuple[torch.Tensor, torch.Tensor], optional): Candidates
            of drawn negatives: all nodes of the type (``'graph'``), the
            destinations of the other seed edges in the batch (``'batch'``, in
            proportion to their frequency; all nodes if there is no other
            one), or a set for each source as compressed rows ``(indptr
            [num_src_nodes + 1], indices)``. Sets may contain edges of the
            graph.
        shared (bool, optional): Whether all seed edges of a batch share their
            negatives, so that the batch has fewer seeds.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> NegativeSampling('triplet', 2, among='batch')
        NegativeSampling(mode='triplet', amount=2, among='batch')
    """

    amount: int | float

    def __init__(
        self,
        mode: NegativeSamplingMode | str,
        amount: int | float = 1,
        src_weight: Tensor | None = None,
        dst_weight: Tensor | None = None,
        *,
        given: Tensor | None = None,
        among: Literal['graph', 'batch'] | Candidates = 'graph',
        shared: bool = False,
    ):
        only_given = given is not None and amount == 0
        _check_mode(mode, 1 if only_given else amount)
        for name, weight in (
            ('src_weight', src_weight),
            ('dst_weight', dst_weight),
        ):
            if weight is not None:
                _check.check_tensor(_NAME, name, weight)
        super().__init__(
            mode, 1 if only_given else amount, src_weight, dst_weight
        )
        if only_given:
            self.amount = 0
        self.given = None if given is None else _given(given)
        self.among: Any = _among(among)
        self.shared = shared
        if among != 'graph' and (shared or dst_weight is not None):
            other = 'shared' if shared else 'dst_weight'
            raise ValueError(
                f"{_NAME}: '{other}' needs among='graph' (got "
                f'{self._shown_among()})'
            )
        if shared and amount != math.ceil(amount):
            raise ValueError(
                f"{_NAME}: 'amount' must be an integer with shared=True (got "
                f'{amount})'
            )

    @property
    def keeps_sources(self) -> bool:
        """Whether drawn negatives keep the sources of the seed edges."""
        return self.is_triplet() or self.among != 'graph' or self.shared

    def of_seeds(self, ids: Tensor) -> Tensor | None:
        """Returns the given negatives of seed edges, round by round.

        Args:
            ids (torch.Tensor): int64 ``[n]``, the ids of the seed edges.

        Returns:
            torch.Tensor: int64 ``[m * n]``, or None.

        Raises:
            IndexError: If an id has no given negatives.
        """
        if self.given is None:
            return None
        _check.in_range(_NAME, 'given', ids, self.given.size(0))
        return self.given[ids].t().reshape(-1)

    def _shown_among(self) -> str:
        return repr(self.among) if isinstance(self.among, str) else 'sets'

    def __repr__(self) -> str:
        parts = [f'mode={self.mode.value!r}', f'amount={self.amount}']
        if self.given is not None:
            parts.append(f'given={list(self.given.shape)}')
        if self.among != 'graph':
            parts.append(f'among={self._shown_among()}')
        parts += ['shared=True'] if self.shared else []
        return f'{_NAME}({", ".join(parts)})'


def of_pyg(sampling: Any) -> NegativeSampling | None:
    """Returns PyG's ``neg_sampling`` argument with our fields."""
    known = pyg.NegativeSampling.cast(sampling)
    if known is None or isinstance(known, NegativeSampling):
        return known
    return NegativeSampling(
        known.mode, known.amount, known.src_weight, known.dst_weight
    )


def check_given(name: str, sampling: Any, edges: Any) -> None:
    """Checks that each seed edge of a loader has a row of given negatives.

    Raises:
        ValueError: If the number of rows is wrong.
    """
    given = getattr(sampling, 'given', None)
    # A user's own ids may select any rows.
    if given is None or edges.input_id is not None:
        return
    if given.size(0) != edges.row.numel():
        raise ValueError(
            f"{name}: 'given' of 'neg_sampling' must have one row for each of "
            f'{edges.row.numel()} seed edges (got {given.size(0)})'
        )


def _check_mode(mode: Any, amount: Any) -> None:
    if getattr(mode, 'value', mode) not in ('binary', 'triplet'):
        raise ValueError(
            f"{_NAME}: 'mode' must be 'binary' or 'triplet' (got {mode!r})"
        )
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        raise TypeError(f"{_NAME}: 'amount' must be a number (got {amount!r})")
    if amount <= 0:
        raise ValueError(f"{_NAME}: 'amount' must be positive (got {amount})")
    if amount != int(amount) and getattr(mode, 'value', mode) == 'triplet':
        raise ValueError(
            f"{_NAME}: 'amount' must be an integer with triplets (got "
            f'{amount})'
        )


def _given(given: Any) -> Tensor:
    if not isinstance(given, Tensor) or given.dtype not in (
        torch.int32,
        torch.int64,
    ):
        shown = given.dtype if isinstance(given, Tensor) else type(given)
        raise TypeError(
            f"{_NAME}: 'given' must be an int32 or int64 tensor (got {shown})"
        )
    if given.dim() != 2 or given.size(1) == 0:
        raise ValueError(
            f"{_NAME}: 'given' must have shape [num_seed_edges, m], m > 0 "
            f'(got {list(given.shape)})'
        )
    return given.long().cpu()


def _among(among: Any) -> Any:
    if isinstance(among, str) and among in ('graph', 'batch'):
        return among
    if not isinstance(among, tuple) or len(among) != 2:
        raise ValueError(
            f"{_NAME}: 'among' must be 'graph', 'batch' or a pair (indptr, "
            f'indices) (got {among!r})'
        )
    indptr = _check.int64_vector(_NAME, 'indptr', among[0])
    indices = _check.int64_vector(_NAME, 'indices', among[1])
    rises = indptr.numel() > 0 and bool((indptr.diff() >= 0).all())
    if not rises or int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        raise ValueError(
            f"{_NAME}: 'indptr' must ascend from 0 to the {len(indices)} "
            "elements of 'indices'"
        )
    return indptr, indices
