"""Samples neighbourhoods of seeds, and completes the operator's output."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.sampler import (
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
)
from torch_geometric.sampler.base import SubgraphType

from torch_gsample.placement import check_process
from torch_gsample.rng import BatchNumber, batch_scope
from torch_gsample.samplers.neighbor.graph_sampler import GraphSampler
from torch_gsample.samplers.neighbor.neighborhood import (
    LOOK_AHEAD,
    Neighborhood,
    batches_in_launch,
)
from torch_gsample.samplers.output.order import shuffle_columns


class Asked(NamedTuple):
    """Seeds of a batch by node type, and the last step of its sample."""

    seeds: dict[Any, Tensor]
    times: dict[Any, Tensor | None]
    key: Tensor
    finish: Callable[[Any], Any]  # of the sample


class DrawnNeighbors(GraphSampler):
    """Base of samplers of neighbours: from seeds to finished samples."""

    subgraph_type: SubgraphType
    keep_orig_edges: bool
    _fanouts: list[list[int]]
    _neighborhood: Neighborhood
    #: Whether a subclass overrides the sampling of a batch.
    _samples_otherwise = False

    @property
    def look_ahead(self) -> int:
        """Number of batches that loaders pass to :meth:`sample_batches`."""
        return LOOK_AHEAD if self.is_on_gpu else 1

    def sample_batches(
        self,
        batches: Sequence[NodeSamplerInput | EdgeSamplerInput],
        numbers: Sequence[BatchNumber],
        neg_sampling: NegativeSampling | None = None,
    ) -> list[Any]:
        """Samples several batches; each sample is as if sampled alone.

        A GPU samples them in few launches.

        Args:
            batches (List[NodeSamplerInput or EdgeSamplerInput]): Their seeds.
            numbers (List[BatchNumber]): Their ids.
            neg_sampling (NegativeSampling, optional): As in
                ``sample_from_edges``.

        Raises:
            IndexError: If a node is not in the graph.
            ValueError: If times are required and missing.
        """
        if self.interval.bound == 'edge' or self._samples_otherwise:
            return super().sample_batches(batches, numbers, neg_sampling)
        asked = []
        for inputs, number in zip(batches, numbers, strict=True):
            with batch_scope(*number):
                asked.append(
                    self._ask_nodes(inputs)
                    if isinstance(inputs, NodeSamplerInput)
                    else self._ask_edges(inputs, neg_sampling)
                )
        sizes: Counter[Any] = Counter()  # of the largest batches
        for of_batch in asked:
            sizes |= {t: s.shape[0] for t, s in of_batch.seeds.items()}
        most = batches_in_launch(sizes, self.graph, self._fanouts)
        outs: list[Any] = []
        for i in range(0, len(asked), most):
            outs += self._draw_batches(asked[i : i + most])
        return outs

    # Helpers #################################################################

    def _ask_nodes(self, inputs: NodeSamplerInput) -> Asked:
        raise NotImplementedError

    def _ask_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None
    ) -> Asked:
        raise NotImplementedError

    def _draw(
        self,
        seeds: dict[Any, Tensor],
        times: dict[Any, Tensor | None],
        key: Tensor,
    ) -> Any:
        if self.is_on_gpu:
            check_process('NeighborSampler')
        seed_time = self._seed_time(seeds, times)
        with self.counts.phase('sample'):
            out = self._neighborhood.sample(
                seeds, seed_time, self._fanouts, key, self._sampling()
            )
        return self._complete(out, seed_time, key)

    def _draw_batches(self, batches: list[Asked]) -> list[Any]:
        """Samples some batches in one call of the operator."""
        if self.is_on_gpu:
            check_process('NeighborSampler')
        times = [
            self._seed_time(asked.seeds, asked.times) for asked in batches
        ]
        with self.counts.phase('sample'):
            outs = self._neighborhood.sample_batches(
                [asked.seeds for asked in batches],
                times,
                self._fanouts,
                torch.cat([asked.key for asked in batches]),
                self._sampling(),
            )
        return [
            asked.finish(self._complete(out, time, asked.key))
            for asked, out, time in zip(batches, outs, times, strict=True)
        ]

    def _seed_time(
        self, seeds: dict[Any, Tensor], times: dict[Any, Tensor | None]
    ) -> Any:
        return self.interval.of_seeds(self._times.of_seeds(seeds, times))

    def _complete(self, out: Any, seed_time: Any, key: Tensor) -> Any:
        """Applies the order, induces edges and restores edge ids."""
        neighborhood = self._neighborhood
        if self.order == 'random':
            shuffle_columns(out, self.graph, key)
        if self.subgraph_type == SubgraphType.induced:
            with self.counts.phase('induce'):
                neighborhood.induce(out, seed_time, self._sampling())
        if neighborhood.restores_edge_ids:
            with self.counts.phase('edge_ids'):
                neighborhood.restore_edge_ids(out)
        return out

    def _finish(self, out: Any) -> Any:
        if self.subgraph_type == SubgraphType.bidirectional:
            metadata = out.metadata
            out = out.to_bidirectional(keep_orig_edges=self.keep_orig_edges)
            out.metadata = metadata
        self.counts.add_sample(out)
        return out
