"""Samples whole batches of a stored graph, each in one task.

Seeds come in, shuffled by batch. A task samples the batches of its range as
the local sampler does: it reads the edges drawn by their nodes from a
:class:`~torch_gsample.storage.ChunkedGraph`. So no edge is shuffled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample.spark.assemble import seeds_of
from torch_gsample.spark.batch_types import BatchTypes
from torch_gsample.spark.batches import SampledBatches, by_batch, seed_rows
from torch_gsample.spark.frames import DataFrame, F, map_arrow, pa
from torch_gsample.spark.shard_files import segments
from torch_gsample.spark.stored import opened
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.hops import (
    Frontier,
    SampledHops,
    sample_by_hops,
)
from torch_gsample.storage.stored_graph import StoredGraph

#: The numeric columns of a sampled edge.
_EDGE = 'batch tree hop relation slot src id dst'.split()


@dataclass(frozen=True)
class StoredSampling:
    """Samples a batch from its seeds, in a task.

    Args:
        path (str): The folder of the graph.
        generation (int): The expected generation.
        key (Tuple[int, int, int]): Seed, epoch and batch.
        fanouts (List[List[int]]): For each relation, those of all hops.
        weighted (bool): Whether to draw by weight.
        replace (bool): Whether an edge may be drawn repeatedly.
        time_window (int, optional): Width of the window.
        temporal_strategy (str): ``'uniform'`` or ``'last'``.
    """

    path: str
    generation: int
    key: tuple[int, int, int]
    fanouts: list[list[int]]
    weighted: bool
    replace: bool
    time_window: int | None
    temporal_strategy: str

    def batches(
        self, seeds: DataFrame, types: BatchTypes, batches: range
    ) -> SampledBatches:
        """Returns batches that are sampled by the tasks that write them.

        Args:
            seeds (DataFrame): ``batch``, ``tree``, ``position``, ``id`` and,
                with times, ``time``.
            types (BatchTypes): Of the sample.
            batches (range): The batches.
        """
        facts = types.facts({})

        def edges(parts: Iterator[pa.RecordBatch]) -> Iterator[Any]:
            for batch, rows in segments(parts):
                lists = self.sample(seeds_of(rows), facts)
                yield from _edge_rows(batch, lists, facts)

        rows = by_batch(seed_rows(seeds, types), batches)
        schema = ', '.join(f'{name} long' for name in _EDGE)
        sampled = map_arrow(rows, edges, schema)
        nodes = [
            _nodes(seeds, sampled, types, t) for t in range(types.num_nodes)
        ]
        return SampledBatches(
            seeds, sampled, nodes, types, batches, sampling=self
        )

    def sample(
        self, seeds: dict[str, Tensor], facts: Mapping[str, Any]
    ) -> dict[str, Tensor]:
        """Samples a batch.

        Args:
            seeds (Dict[str, torch.Tensor]): Of :func:`seeds_of`.
            facts (Dict[str, Any]): Of :meth:`BatchTypes.facts`.

        Returns:
            Dict[str, torch.Tensor]: The lists that :func:`assemble` writes.
        """
        graph, readers = opened(self.path, self.generation)
        options = {
            'key': torch.tensor([self.key]),
            'disjoint': facts['disjoint'],
            'replace': self.replace,
            'time_window': self.time_window,
            'temporal_strategy': self.temporal_strategy,
            'num_threads': 1,
        }

        def draw(relation: int, hop: int, frontier: Frontier) -> Drawn:
            fanout = self.fanouts[relation][hop]
            columns = readers[relation].draw(
                relation, hop, frontier, fanout, options, self.weighted
            )
            return Drawn.of_columns(*columns)

        own = facts['nodes'][facts['input_type']]
        out = sample_by_hops(
            graph.sampler_graph(),
            {own: seeds['dst']},
            {own: seeds['src']} if facts['timed'] else None,
            self.fanouts,
            options,
            draw,
        )
        return _lists(out, graph, facts)


def _lists(
    out: SampledHops, graph: StoredGraph, facts: Mapping[str, Any]
) -> dict[str, Tensor]:
    """The lists of numbers of a sample, in the order of the index."""
    lists = {}
    node_types = graph.meta.node_types
    edge_types = [r.edge_type for r in graph.meta.relations]
    for t, name in enumerate(facts['nodes']):
        at = node_types.index(name)
        lists[f'node_{t}'] = out.node[at]
        lists[f'num_nodes_{t}'] = torch.tensor(
            out.num_nodes[at], dtype=torch.int64
        )
        if out.batch is not None:
            lists[f'tree_{t}'] = out.batch[at]
    for r, name in enumerate(facts['edges']):
        at = edge_types.index(None if name is None else tuple(name))
        lists[f'row_{r}'] = out.row[at]
        lists[f'col_{r}'] = out.col[at]
        lists[f'edge_{r}'] = out.edge[at]
        lists[f'num_edges_{r}'] = torch.tensor(
            out.num_edges[at], dtype=torch.int64
        )
    return lists


def _edge_rows(
    batch: int, lists: dict[str, Tensor], facts: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Yields a row for each edge; those of a repeated seed once."""
    for r, (source, target) in enumerate(facts['ends']):
        row, col = lists[f'row_{r}'], lists[f'col_{r}']
        counts, node = lists[f'num_edges_{r}'], lists[f'node_{target}']
        hop = torch.repeat_interleave(torch.arange(len(counts)), counts)
        # A column's edges are contiguous, and in one hop only.
        _, length = col.unique_consecutive(return_counts=True)
        first = torch.repeat_interleave(length.cumsum(0) - length, length)
        tree = lists.get(f'tree_{target}')
        columns = {
            'batch': torch.full_like(col, batch),
            'tree': torch.zeros_like(col) if tree is None else tree[col],
            'hop': hop,
            'relation': torch.full_like(col, r),
            'slot': torch.arange(len(col)) - first,
            'src': lists[f'node_{source}'][row],
            'id': lists[f'edge_{r}'],
            'dst': node[col],
        }
        if tree is None:
            kept = ~_repeated(node, int(lists[f'num_nodes_{target}'][0]))[col]
            columns = {name: value[kept] for name, value in columns.items()}
        yield pa.RecordBatch.from_pydict(
            {name: value.numpy() for name, value in columns.items()}
        )


def _repeated(node: Tensor, num_seeds: int) -> Tensor:
    """Marks nodes that are repeated seeds."""
    out = torch.zeros(len(node), dtype=torch.bool)
    order = node[:num_seeds].argsort(stable=True)
    seeds = node[order]
    out[order[1:][seeds[1:] == seeds[:-1]]] = True
    return out


def _nodes(
    seeds: DataFrame, edges: DataFrame, types: BatchTypes, t: int
) -> DataFrame:
    """The nodes of a type: ends of its edges, and seeds."""
    own = [r for r, (source, _) in enumerate(types.ends) if source == t]
    nodes = edges.where(F.col('relation').isin(own)).select(
        'batch', 'tree', F.col('src').alias('node')
    )
    if t == types.input_type:
        tree = F.col('tree') if types.disjoint else F.lit(0).cast('bigint')
        node = F.col('id').alias('node')
        nodes = nodes.union(seeds.select('batch', tree, node))
    return nodes.distinct()
