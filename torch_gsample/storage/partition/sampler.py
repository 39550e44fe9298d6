"""Samples a graph whose columns are split over processes.

The frontier of each hop goes to the owners of its columns. They draw, because
draws are a function of the node, and send the edges back.
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info
from torch_geometric.sampler.base import SubgraphType
from typing_extensions import Unpack

from torch_gsample import ops
from torch_gsample.options import DiskOptions, TimeInclusive, checked_names
from torch_gsample.samplers.neighbor.node_wise import NumNeighborsType
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.hops import Draw, Frontier
from torch_gsample.storage.partition.exchange import Exchange
from torch_gsample.storage.partition.graph_part import GraphPart
from torch_gsample.storage.sampler import DiskNeighborhood, DiskSampler

_NAME = 'PartitionedSampler'


class PartitionedSampler(DiskSampler):
    """A :class:`NeighborSampler` of a partitioned graph.

    Samples equal those of a :class:`NeighborSampler` of the same seed with
    the whole graph. At each hop, nodes go to the owners of their columns, and
    sampled edges come back, never whole columns.

    All processes sample at the same time, batch by batch. A process without
    further batches calls :meth:`join`, which draws for the others. If it does
    not, the others wait until their group's timeout. Loaders must sample in
    their own process (``num_workers=0``).

    Args:
        graph (GraphPart): The columns of this process.
        num_neighbors (NumNeighbors or List[int] or Dict): See
            :class:`NeighborSampler`.
        exchange (Exchange): The processes; not the exchange of the
            :class:`PartitionedFeatures`.
        time_inclusive (str, optional): See :class:`NeighborSampler`.
        **options (optional): All others are as in
            :class:`~torch_gsample.storage.RandomReadSampler`; ``seed`` is
            required.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid, or differs between processes;
            the message names the rule.

    Example:
        >>> import torch.distributed as dist
        >>> from torch_geometric.sampler import NodeSamplerInput
        >>> from torch_gsample import Graph
        >>> _ = dist.init_process_group(
        ...     'gloo', store=dist.HashStore(), rank=0, world_size=1
        ... )
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> part = GraphPart.of(Graph.from_edge_index(edge_index), 0, 1)
        >>> sampler = PartitionedSampler(part, [2, 1], Exchange(), seed=0)
        >>> inputs = NodeSamplerInput(None, torch.tensor([0]))
        >>> sampler.sample_from_nodes(inputs).node
        tensor([0, 1, 2])
        >>> sampler.join()
        >>> dist.destroy_process_group()
    """

    _graph_class: type[Any] = GraphPart

    @checked_names
    def __init__(
        self,
        graph: GraphPart,
        num_neighbors: NumNeighborsType,
        exchange: Exchange,
        subgraph_type: SubgraphType | str = 'directional',
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        *,
        time_inclusive: TimeInclusive = 'both',
        **options: Unpack[DiskOptions],
    ):
        if options.get('seed') is None:
            raise ValueError(
                f"{_NAME}: 'seed' is required, equal in all processes (got "
                'None)'
            )
        base = subgraph_type, replace, disjoint, temporal_strategy
        self.interval = TimeInterval(inclusive=time_inclusive)
        super().__init__(graph, num_neighbors, *base, **options)
        self._part, self._exchange = graph, exchange
        sizes = {len(bounds) for bounds in graph.bounds.values()}
        if sizes != {exchange.size + 1}:
            raise ValueError(
                f"{_NAME}: 'graph' must be cut for {exchange.size} processes "
                f'(got bounds of {sorted(sizes)} items)'
            )
        exchange.check_equal(
            _NAME,
            num_neighbors=repr(self._fanouts),
            options=repr([str(option) for option in base]),
            seed=options['seed'],
            rng_scope=options.get('rng_scope'),
            time_window=self.interval.width(self.time_window),
            use_weights=self.use_weights,
            use_times=self._times.given,
            bounds={t: b.tolist() for t, b in graph.bounds.items()},
        )

    @property
    def _neighborhood(self) -> Any:  # type: ignore[override]
        return _Neighborhood(self)

    def begin_batch(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Draw:
        """Returns the function that draws at the frontiers of a batch."""
        return self._begin(fanouts, options, options['key'])

    def join(self) -> None:
        """Draws for other processes until all of them have joined.

        Call it after the last batch of an epoch, unless all processes have the
        same number of batches (``drop_last=True``), or a
        :class:`PartitionedFeatures` has this sampler.
        """
        while self.serve():
            pass

    def serve(self) -> bool:
        """Draws for a batch of other processes.

        Returns:
            bool: Whether another process has a batch.
        """
        options = asdict(self._sampling())
        turn = self._begin(self._fanouts, options, None)
        turn.finish()
        return turn.is_needed

    def _begin(
        self,
        fanouts: list[list[int]],
        options: dict[str, Any],
        key: Tensor | None,
    ) -> 'Turn':
        if get_worker_info() is not None:
            raise RuntimeError(
                f'{_NAME}: workers cannot exchange data with other '
                'processes; use num_workers=0'
            )
        options |= {
            'use_weights': self.use_weights,
            'use_times': self._times.given,
        }
        return Turn(self._part, self._exchange, fanouts, options, key)


class _Neighborhood(DiskNeighborhood):
    """Ends the turn of a batch, even if it fails."""

    def sample(self, *args: Any) -> Any:
        """Samples neighbours of seeds."""
        try:
            return super().sample(*args)
        finally:
            if self.draw is not None:
                self.draw.finish()


class Turn:
    """The draws of all processes for one batch each: hop by hop, by relation.

    Args:
        part (GraphPart): The columns of this process.
        exchange (Exchange): The processes.
        fanouts (List[List[int]]): For each relation.
        options (Dict[str, Any]): Of the operators.
        key (torch.Tensor, optional): The key of this process's batch, if it
            has one.
    """

    def __init__(
        self,
        part: GraphPart,
        exchange: Exchange,
        fanouts: list[list[int]],
        options: dict[str, Any],
        key: Tensor | None,
    ):
        self._part, self._exchange = part, exchange
        self._fanouts, self._options = fanouts, options
        self._steps = [
            (hop, relation)
            for hop in range(len(fanouts[0]) if fanouts else 0)
            for relation, of_hop in enumerate(fanouts)
            if of_hop[hop] != 0
        ]
        own = torch.zeros(1, 4, dtype=torch.int64)
        if key is not None:
            own[:, :3], own[:, 3] = key, 1
        keys = torch.cat(exchange.swap([own] * exchange.size))
        #: Whether any process has a batch.
        self.is_needed = bool(keys[:, 3].any())
        self._keys = keys[:, :3].contiguous()

    def __call__(self, relation: int, hop: int, frontier: Frontier) -> Drawn:
        """Draws at a frontier of this process; see :data:`hops.Draw`."""
        while self._steps[0] != (hop, relation):
            self._swap(None)  # other processes may have columns there
        out = self._swap(frontier)
        assert out is not None
        return out

    def finish(self) -> None:
        """Draws for the others at the remaining hops."""
        while self._steps and self.is_needed:
            self._swap(None)

    def _swap(self, frontier: Frontier | None) -> Drawn | None:
        hop, relation = self._steps.pop(0)
        _, cols = self._part.types.row_and_column_type(
            self._part.types.edge_types[relation]
        )
        bounds = self._part.bounds[cols]
        asked = torch.empty(0, 3, dtype=torch.int64)
        if frontier is not None:
            none = torch.zeros_like(frontier.node)
            root = none if frontier.root is None else frontier.root
            time = none if frontier.time is None else frontier.time
            asked = torch.stack([frontier.node, root, time], 1)
        node = asked[:, 0].contiguous()
        owner = torch.searchsorted(bounds[1:], node, right=True)
        order = owner.argsort(stable=True)
        sizes = owner.bincount(minlength=self._exchange.size).tolist()
        requests = self._exchange.swap(list(asked[order].split(sizes)))
        drawn = [
            self._exchange.swap(parts)
            for parts in self._draw(
                hop, relation, int(bounds[self._exchange.rank]), requests
            )
        ]
        if frontier is None:
            return None
        count, edges = (torch.cat(parts).cpu() for parts in drawn)
        return _in_order(order, count, edges)

    def _draw(
        self, hop: int, relation: int, first: int, requests: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Draws at columns of this process, for each requesting process.

        Returns:
            Tuple[List[torch.Tensor], List[torch.Tensor]]: The counts of
            columns, and the neighbours and ids of edges, ``[n, 2]``.
        """
        csc, options = self._part.columns[relation], self._options
        device, ptr = csc.indptr.device, torch.tensor([0, *map(len, requests)])
        ptr = ptr.cumsum(0).to(device)
        asked = torch.cat(requests).t().contiguous()
        node, root, time = (x.to(device) for x in asked)
        timed = csc.edge_time is not None and options['use_times']
        indptr, edge = ops.sample_columns(
            csc.indptr,
            self._fanouts[relation][hop],
            key=self._keys,
            call_id=hop,
            relation=relation,
            cols=node - first,
            id=node,
            root=root,
            cum_weight=csc.cum_weight if options['use_weights'] else None,
            edge_time=csc.edge_time if timed else None,
            column_time=time if timed else None,
            time_window=options['time_window'] if timed else None,
            temporal_strategy=options['temporal_strategy'],
            replace=options['replace'],
            num_threads=options['num_threads'],
            ptr=ptr,
        )
        assert csc.edge_id is not None
        edges = torch.stack([csc.indices[edge], csc.edge_id[edge]], 1).long()
        sizes = [ptr.diff().tolist(), indptr[ptr].diff().tolist()]
        out = [
            x.to(self._exchange.device).split(of_process)
            for x, of_process in zip(
                [indptr.diff(), edges], sizes, strict=True
            )
        ]
        return list(out[0]), list(out[1])


def _in_order(order: Tensor, count: Tensor, edges: Tensor) -> Drawn:
    """Restores the order of columns sent in another order."""
    indptr = torch.zeros(len(order) + 1, dtype=torch.int64)
    indptr[1:][order] = count.long()
    column = torch.repeat_interleave(order, count.long())
    edges = edges[column.argsort(stable=True)]
    return Drawn.of_columns(indptr.cumsum(0), *edges.unbind(1))
