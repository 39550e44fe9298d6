"""EXP3: bandits whose arms are the edges of each node."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


class EdgeBandit(torch.nn.Module):
    r"""One bandit per node; its arms are the edges into the node.

    Weights :math:`w` define the probabilities of the :math:`n_v` edges of
    :math:`v`. The rewards :math:`r` of :math:`k` draws update them:

    .. math::
        q_{uv} = (1 - \eta) \frac{w_{uv}}{\sum_j w_{jv}} + \frac{\eta}{n_v},
        \quad
        w_{uv} \gets w_{uv} \exp \Big( \frac{\delta}{n_v k}
            \sum_{\text{draws of } u} \frac{r_{uv}}{q_{uv}} \Big)

    This is EXP3 of `"The Nonstochastic Multiarmed Bandit Problem"
    <https://doi.org/10.1137/S0097539701398375>`_ (SICOMP 2002). As
    :math:`q_{uv}` is the probability of a draw, the mean exponent is
    :math:`\delta r_{uv} / n_v`. Subclasses define the weights of edges and the
    rewards.

    Args:
        num_edges (int): Number of edges of the graph.
        eta (float, optional): Share of uniform exploration, in (0, 1].
        delta (float, optional): Learning rate.
        max_step (float, optional): Bound of the exponent.
    """

    log_weight: Tensor
    #: Whether draws of a node are independent, each with probability q.
    replace = True

    def __init__(
        self,
        num_edges: int,
        eta: float = 0.4,
        delta: float = 0.1,
        max_step: float = 1.0,
    ):
        super().__init__()
        if not 0 < eta <= 1:
            raise ValueError(
                f"{type(self).__name__}: 'eta' must be in (0, 1] (got {eta})"
            )
        self.eta, self.delta, self.max_step = eta, delta, max_step
        self.register_buffer('log_weight', torch.zeros(num_edges))

    def probs(self, sub: SparseSample) -> SparseSample:
        """Returns the probabilities of the edges of whole columns."""
        q = sub.with_value(self.log_weight[sub.edge_id]).softmax(dim=0)
        explore = self.eta / sub.degree(dim=0)
        return (q * (1 - self.eta)).add(explore, dim=0)

    def forward(
        self, A: SparseSample, seeds: Tensor, fanouts: Sequence[int]
    ) -> list[SparseSample]:
        """Samples a matrix for each layer.

        Args:
            A (SparseSample): The graph, ``[num_nodes, num_nodes]``.
            seeds (torch.Tensor): int64 ``[num_seeds]``.
            fanouts (Sequence[int]): Draws per node in each layer.

        Returns:
            List[SparseSample]: ``[num_nodes, num_cols]`` each; an edge drawn
            twice becomes two edges.
        """
        layers = []
        for k in fanouts:
            S = self.drawn(A[:, seeds], k)
            layers.append(S)
            seeds = S.row()
        return layers

    def drawn(self, sub: SparseSample, k: int) -> SparseSample:
        """Draws edges of whole columns, and weighs them.

        Args:
            sub (SparseSample): All edges of its columns.
            k (int): Draws per column.
        """
        q = self.probs(sub)
        return self.weighed(sub, q, k).individual_sample(k, q, replace=True)

    def weighed(self, sub: SparseSample, q: SparseSample, k: int) -> Any:
        """Returns a matrix of the weights of a layer's edges.

        Args:
            sub (SparseSample): All edges of its columns.
            q (SparseSample): Their probabilities.
            k (int): Draws per column.
        """
        raise NotImplementedError

    def rewards(self, arms: SparseSample, q: Tensor, h: Tensor) -> Tensor:
        """Returns the reward of each draw of a layer.

        Args:
            arms (SparseSample): The layer, ``[num_rows, num_cols]``, with the
                values of the graph.
            q (torch.Tensor): ``[num_draws]``, their probabilities.
            h (torch.Tensor): ``[num_rows, F]``, activations of rows.
        """
        raise NotImplementedError

    @torch.no_grad()
    def update(
        self,
        A: SparseSample,
        layers: Sequence[SparseSample],
        hidden: Sequence[Tensor],
    ) -> None:
        """Updates the bandits by a model's activations on a sample.

        Args:
            A (SparseSample): The graph.
            layers (Sequence[SparseSample]): The sampled layers.
            hidden (Sequence[torch.Tensor]): ``[len(S.row()), F]`` for each
                layer ``S``, the activations of its rows.
        """
        steps = torch.zeros_like(self.log_weight)
        for S, h in zip(layers, hidden, strict=True):
            arms, q = self._arms(A, S.compact())
            # each draw of u -> v adds r / (q n_v k)
            step = arms.with_value(self.step(self.rewards(arms, q, h), q))
            num_arms = A.degree(dim=0)[arms.col_ids]
            num_draws = arms.degree(dim=0) if self.replace else 1
            step = step.div(num_arms * num_draws, dim=0)
            steps.index_add_(0, arms.edge_id, step.values().to(steps.dtype))
        bound = self.max_step
        self.log_weight += (self.delta * steps).clamp(-bound, bound)

    def step(self, reward: Tensor, q: Tensor) -> Tensor:
        """Returns the reward of each draw, divided by its probability."""
        return reward / q

    def chances(self, sub: SparseSample, size: Tensor) -> Tensor:
        """Returns :math:`q` of the edges of whole columns.

        Args:
            sub (SparseSample): All edges of its columns.
            size (torch.Tensor): int64 ``[num_cols]``, number of draws.
        """
        return self.probs(sub).values()

    def _arms(
        self, A: SparseSample, S: SparseSample
    ) -> tuple[SparseSample, Tensor]:
        """Returns a layer with values of `A`, and the draws' probabilities."""
        assert S.col_ids is not None
        sub = A[:, S.col_ids]
        q = self.chances(sub, S.degree(dim=0))
        both = torch.stack([sub.values(), q], dim=1)
        table = both.new_zeros((self.log_weight.shape[0], 2))
        table[sub.edge_id] = both
        value, q = table[S.edge_id].unbind(dim=1)
        return S.with_value(value), q
