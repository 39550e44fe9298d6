"""What a ``SparseSample`` selects at random."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops._check import as_int64, detached, is_known
from torch_gsample.ops.features import select_rows
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample.errors import call_as, check_device
from torch_gsample.sparse_sample.labor import inclusion, sample_by
from torch_gsample.sparse_sample.layout import Layout
from torch_gsample.sparse_sample.row_probs import draw_rows

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample


class Select:
    """Random selection. Every draw is a function of a key.

    Inside of :func:`torch_gsample.rng.program_scope`, where samplers run
    programs, the key is the batch's and calls are numbered; elsewhere each
    call draws a key from torch's default generator.
    """

    __slots__ = ()

    def individual_sample(
        self: Any,
        k: int,
        probs: 'Tensor | SparseSample | None' = None,
        replace: bool = False,
    ) -> 'SparseSample':
        """Samples up to ``k`` edges of each column by themselves.

        Columns of one node draw the same edges, as those of
        :class:`~torch_gsample.NeighborSampler` do.

        Args:
            k (int): Edges a column; -1 takes all. A column with no more gives
                all of them.
            probs (torch.Tensor or SparseSample, optional): Not normalised
                probabilities ``[num_edges]``; an edge of 0 is never sampled.
                Uniform if not given.
            replace (bool, optional): Whether an edge may be drawn repeatedly.

        Raises:
            ValueError: If a probability is negative or not finite, or there
                is not one for each edge.

        Example:
            >>> from torch_gsample import SparseSample
            >>> A = SparseSample.from_coo(
            ...     torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])
            ... )
            >>> A.individual_sample(1).degree(dim=0)
            tensor([1, 1, 0])
        """
        layout = self.csc
        cum_weight = None
        if probs is not None:
            weight = self._edge_probs('individual_sample', probs)
            if layout.perm is not None:
                weight = weight[layout.perm]
            cum_weight = call_as(
                'individual_sample',
                ops.cumulate_weights,
                layout.indptr,
                weight,
                'probs',
            )
        key, call_id = current_program()
        indptr, edge = call_as(
            'individual_sample',
            ops.sample_cols,
            layout.indptr,
            k,
            key=key,
            call_id=call_id,
            id=self.col_ids,
            cum_weight=cum_weight,
            replace=replace,
        )
        return self._of_csc(
            Layout(indptr, select_rows(layout.indices, edge)),
            self.shape,
            edge,
            self.row_ids,
            self.col_ids,
        )

    def _edge_probs(self: Any, name: str, probs: Any) -> Tensor:
        if isinstance(probs, type(self)):
            self._check_pattern(name, probs)
            probs = probs._aligned_values(self)
        size = self.num_edges
        if probs.dim() != 1 or is_known(probs.shape[0] != size):
            raise ValueError(
                f"{name}: 'probs' must have {self.num_edges} elements, one "
                f'for each edge (got shape {list(probs.shape)})'
            )
        check_device(name, self.device, probs)
        return detached(probs)

    def collective_sample(
        self: Any,
        k: int,
        node_probs: Tensor | None = None,
        replace: bool = False,
    ) -> 'SparseSample':
        """Samples ``k`` rows for all columns together.

        Without ``node_probs`` this differs from gSampler's paper (SOSP 2023),
        whose default is the sum of ones along a row: there a row is drawn in
        proportion to its edges, which is
        ``A.collective_sample(k, A.degree(dim=1))`` here.

        Args:
            k (int): How many rows; all candidates where there are not more.
            node_probs (torch.Tensor, optional): Not normalised probabilities
                ``[num_rows]``; a row of 0 is never sampled. Uniform over the
                rows that hold an edge if not given.
            replace (bool, optional): Whether rows are drawn independently,
                and each draw becomes a row.

        Returns:
            SparseSample: Of the sampled rows, those that hold an edge.

        Raises:
            ValueError: If a probability is negative or not finite, or there
                is not one for each row, or all of them are 0.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise ValueError(
                "collective_sample: 'k' must be an integer and not negative "
                f'(got {k!r})'
            )
        if node_probs is None:
            rows = ops.unique_nodes(self._index(1), self.num_rows)[0]
            cum_weight = None
        else:
            rows, cum_weight = self._row_candidates(node_probs)
        rows = draw_rows(rows, k, cum_weight, replace)
        return self._take_rows(rows).compact()

    def _row_candidates(self: Any, probs: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of positive probability, and their cumulated weights."""
        if probs.shape != (self.num_rows,):
            raise ValueError(
                f"collective_sample: 'node_probs' must have {self.num_rows} "
                f'elements, one for each row (got shape {list(probs.shape)})'
            )
        check_device('collective_sample', self.device, probs)
        rows, cum_weight = call_as(
            'collective_sample',
            ops.positive_weights,
            detached(probs),
            'node_probs',
        )
        if not is_compiling() and rows.numel() == 0 and self.num_edges > 0:
            raise ValueError(
                "collective_sample: 'node_probs' must not be all zero"
            )
        return rows, cum_weight

    def labor_sample(
        self: Any, k: int, importance: Tensor | None = None
    ) -> 'SparseSample':
        r"""Samples about ``k`` edges a column, of few different rows.

        Row ``u`` draws one number :math:`r_u` for all columns, and the edge
        ``u -> v`` is sampled where :math:`r_u \le c_v \pi_u`: rows are shared
        as far as possible. :math:`c_v` gives the mean of a column the variance
        of ``k`` edges that are drawn without replacement; with equal
        importances, ``min(k, degree)`` are expected (`"Layer-Neighbor
        Sampling: Defusing Neighborhood Explosion in GNNs"
        <https://arxiv.org/abs/2210.13339>`_, NeurIPS 2023).

        Args:
            k (int): Edges a column, of equal variance.
            importance (torch.Tensor, optional): :math:`\pi`, positive,
                ``[num_rows]``; ones if not given (LABOR-0).

        Raises:
            ValueError: If ``k`` or an importance is not positive.
        """
        return sample_by(self, inclusion(self, k, importance))

    def random_walk_step(
        self: Any, nodes: Tensor, probs: Tensor | None = None
    ) -> Tensor:
        """Moves each walker against the direction of an edge.

        Walkers move independently. For walks of many steps,
        :func:`torch_gsample.ops.random_walk` is much faster.

        Args:
            nodes (torch.Tensor): int64 ``[num_walkers]``, positions of
                columns, as in ``A[:, nodes]``.
            probs (torch.Tensor, optional): ``[num_edges]``, not normalised.

        Returns:
            torch.Tensor: int64 ``[num_walkers]``, the position of a row each
            (its node is that of ``row_ids``, if the matrix has these); what
            was given where a column has no edge.
        """
        matrix = self
        if probs is not None:
            matrix = self._of_value(
                self._edge_probs('random_walk_step', probs)
            )
        steps = matrix[:, nodes]
        steps.col_ids = None  # walkers at one node draw by themselves
        weights = None if probs is None else steps.value
        steps = steps.individual_sample(1, weights)
        out = nodes.to(torch.int64, copy=True)
        out[steps._index(0)] = as_int64(steps._index(1))
        return out
