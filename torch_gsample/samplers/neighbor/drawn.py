"""Draws neighbourhoods of seeds, and does what the operator left to do."""

from collections.abc import Sequence
from typing import Any

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


class DrawnNeighbors(GraphSampler):
    """A sampler of neighbours that was made of its arguments."""

    subgraph_type: SubgraphType
    keep_orig_edges: bool
    _fanouts: list[list[int]]
    _neighborhood: Neighborhood

    @property
    def look_ahead(self) -> int:
        """How many batches loaders give :meth:`sample_batches`."""
        return LOOK_AHEAD if self.is_on_gpu and not self.is_hetero else 1

    def sample_batches(
        self,
        batches: Sequence[NodeSamplerInput | EdgeSamplerInput],
        numbers: Sequence[BatchNumber],
        neg_sampling: NegativeSampling | None = None,
    ) -> list[Any]:
        """Samples subgraphs for several batches, each as it is alone.

        A GPU samples around nodes of a homogeneous graph in few launches.

        Args:
            batches (List[NodeSamplerInput or EdgeSamplerInput]): The seeds of
                each.
            numbers (List[BatchNumber]): The number of each.
            neg_sampling (NegativeSampling, optional): As of
                ``sample_from_edges``.

        Raises:
            IndexError: If a node is not in the graph.
            ValueError: If times are needed and missing.
        """
        nodes = [b for b in batches if isinstance(b, NodeSamplerInput)]
        alone = self.is_hetero or self.interval.bound == 'edge'
        if alone or len(nodes) < len(batches):
            return super().sample_batches(batches, numbers, neg_sampling)
        size = max([inputs.node.shape[0] for inputs in nodes], default=1)
        most = batches_in_launch(size, self._fanouts[0])
        outs: list[Any] = []
        for i in range(0, len(nodes), most):
            part = slice(i, i + most)
            outs += self._draw_batches(nodes[part], numbers[part])
        return outs

    # Helpers #################################################################

    def _draw(
        self,
        seeds: dict[Any, Tensor],
        times: dict[Any, Tensor | None],
        key: Tensor,
    ) -> Any:
        if self.is_on_gpu:
            check_process('NeighborSampler')
        seed_time = self.interval.of_seeds(self._times.of_seeds(seeds, times))
        with self.counts.phase('sample'):
            out = self._neighborhood.sample(
                seeds, seed_time, self._fanouts, key, self._sampling()
            )
        return self._complete(out, seed_time, key)

    def _draw_batches(
        self, batches: list[NodeSamplerInput], numbers: Sequence[BatchNumber]
    ) -> list[Any]:
        """Samples around the nodes of some batches at once."""
        if self.is_on_gpu:
            check_process('NeighborSampler')
        seeds, times, keys = [], [], []
        for inputs, number in zip(batches, numbers, strict=True):
            self._check_node_type(inputs.input_type)
            seeds.append({None: inputs.node})
            seed_time = self._times.of_seeds(seeds[-1], {None: inputs.time})
            times.append(self.interval.of_seeds(seed_time))
            with batch_scope(*number):
                keys.append(self.batch_key(inputs.node, inputs.time))
        with self.counts.phase('sample'):
            outs = self._neighborhood.sample_batches(
                seeds,
                times,
                self._fanouts,
                torch.cat(keys),
                self._sampling(),
            )
        for i, inputs in enumerate(batches):
            out = self._complete(outs[i], times[i], keys[i])
            out.metadata = (inputs.input_id, inputs.time)
            outs[i] = self._finish(out)
        return outs

    def _complete(self, out: Any, seed_time: Any, key: Tensor) -> Any:
        """Does what the operator left to do."""
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
