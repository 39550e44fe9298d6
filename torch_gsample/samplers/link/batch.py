"""Batches of seed edges: end nodes, negatives and labels in PyG's form."""

import math
from typing import Any

import torch
from torch import Tensor
from torch_geometric import sampler as pyg
from torch_geometric.sampler import EdgeSamplerInput

from torch_gsample.graph import Graph
from torch_gsample.ops import _check
from torch_gsample.ops.has_edges import isin
from torch_gsample.samplers.attributes import Times
from torch_gsample.samplers.link.destinations import (
    SeedEdges,
    draw_destinations,
)
from torch_gsample.samplers.link.negatives import Negatives, num_negatives
from torch_gsample.samplers.link.sampling import NegativeSampling, of_pyg
from torch_gsample.samplers.output import pyg as output


class LinkBatch:
    """Seed edges of a batch, from the loader's input to PyG's output.

    Positives come first; negative ``m`` belongs to positive
    ``m % num_pos``.

    Args:
        inputs (EdgeSamplerInput): The seed edges.
        sampling (NegativeSampling, optional): How to sample negatives.
        name (str, optional): The sampler, for errors.
    """

    def __init__(
        self,
        inputs: EdgeSamplerInput,
        sampling: pyg.NegativeSampling | None,
        name: str = 'NeighborSampler',
    ):
        self.inputs = inputs
        self.sampling: NegativeSampling | None = of_pyg(sampling)
        self.edge_type = inputs.input_type
        self.num_pos = inputs.row.numel()
        self.src, self.dst = inputs.row, inputs.col
        self.edge_label = inputs.label
        self.src_positive = self.dst_positive = torch.arange(self.num_pos)
        if self.is_triplet and inputs.label is not None:
            raise ValueError(
                f"{name}: 'edge_label' must not be given with "
                "'triplet' negatives"
            )

    @property
    def is_triplet(self) -> bool:
        """Whether negatives are destinations of the positive sources."""
        return self.sampling is not None and bool(self.sampling.is_triplet())

    @property
    def end_types(self) -> tuple[Any, Any]:
        """Node types of the sources and the destinations."""
        if self.edge_type is None:
            return None, None
        return self.edge_type[0], self.edge_type[-1]

    def add_negatives(
        self, negatives: Negatives, times: Times, key: Tensor
    ) -> None:
        """Appends negatives to the ends, and zeros to binary labels."""
        if self.sampling is None:
            return
        sampling, inputs, num_pos = self.sampling, self.inputs, self.num_pos
        seed = torch.arange(num_pos)
        ids = seed if inputs.input_id is None else inputs.input_id.long()
        given = sampling.of_seeds(ids)
        if given is not None:
            size = negatives.graph.counts[self.end_types[1]]
            _check.node_ids('NegativeSampling', 'given', given, size)
            positive = seed.repeat(given.numel() // max(num_pos, 1))
            self._append(positive, inputs.row[positive], given)
        if sampling.amount == 0:
            return
        item = torch.arange(num_negatives(num_pos, sampling))
        positive = item % max(num_pos, 1)
        rounds = max(1, math.ceil(sampling.amount))
        ids = ids[positive] * rounds + item // max(num_pos, 1)
        time = None if inputs.time is None else inputs.time.long()
        if sampling.keeps_sources:
            edges = SeedEdges(
                self.edge_type, inputs.row, inputs.col, time, positive, ids
            )
            src = inputs.row[positive]
            dst = draw_destinations(negatives, sampling, edges, times, key)
        else:
            time = None if time is None else time[positive]
            src, dst = negatives.draw_pairs(
                self.edge_type, sampling, ids, times, time, key
            )
        self._append(positive, src, dst)

    def _append(self, positive: Tensor, src: Tensor, dst: Tensor) -> None:
        """Appends negatives of some seed edges, and their labels."""
        self.dst = torch.cat([self.dst, dst])
        self.dst_positive = torch.cat([self.dst_positive, positive])
        if self.is_triplet:
            return
        self.src = torch.cat([self.src, src])
        self.src_positive = torch.cat([self.src_positive, positive])
        label = self.edge_label
        label = torch.ones(self.num_pos) if label is None else label
        zeros = label.new_zeros((len(src), *label.shape[1:]))
        self.edge_label = torch.cat([label, zeros])

    def seeds(
        self, disjoint: bool
    ) -> tuple[dict[Any, Tensor], dict[Any, Tensor | None]]:
        """Returns the seed nodes of each type, and their times.

        Each node is a seed once, unless trees are disjoint.
        """
        src_type, dst_type = self.end_types
        time = self.inputs.time
        positives: dict[Any, Tensor]
        if src_type == dst_type:
            nodes = {src_type: torch.cat([self.src, self.dst])}
            positives = {
                src_type: torch.cat([self.src_positive, self.dst_positive])
            }
        else:
            nodes = {src_type: self.src, dst_type: self.dst}
            positives = {
                src_type: self.src_positive,
                dst_type: self.dst_positive,
            }
        self._positives = positives
        times = {
            t: None if time is None else time[p] for t, p in positives.items()
        }
        local = {t: torch.arange(n.numel()) for t, n in nodes.items()}
        if not disjoint:
            for t in nodes:
                nodes[t], local[t] = nodes[t].unique(return_inverse=True)
            times = dict.fromkeys(nodes)
        if src_type == dst_type:
            self._local_src = local[src_type][: self.src.numel()]
            self._local_dst = local[src_type][self.src.numel() :]
        else:
            self._local_src, self._local_dst = local[src_type], local[dst_type]
        return nodes, times

    def label(self, out: Any, graph: Graph, disjoint: bool) -> None:
        """Adds PyG's metadata, and numbers trees by their seed edge."""
        if disjoint and self.edge_type is None:
            out.batch = _lookup(self._positives[None], out.batch)
        elif disjoint:
            positive = self._tree_positive(graph)
            out.batch = {t: _lookup(positive, b) for t, b in out.batch.items()}
        time = self.inputs.time
        src_time = None if time is None else time[self.src_positive]
        if not self.is_triplet:
            ends = torch.stack([self._local_src, self._local_dst])
            out.metadata = (
                self.inputs.input_id,
                ends,
                self.edge_label,
                src_time,
            )
            return
        negative = self._local_dst[self.num_pos :]
        rounds = negative.numel() // max(self.num_pos, 1)
        out.metadata = (
            self.inputs.input_id,
            self._local_src,
            self._local_dst[: self.num_pos],
            negative.view(rounds, self.num_pos).t().squeeze(-1).contiguous(),
            src_time,
        )

    def _tree_positive(self, graph: Graph) -> Tensor:
        """Returns the seed edge of each tree. Trees follow the node types."""
        return torch.cat(
            [
                self._positives[t]
                for t in graph.node_types
                if t in self._positives
            ]
        )

    def exclude_edges(
        self, out: Any, graph: Graph, disjoint: bool, reverse: bool
    ) -> None:
        """Removes the positive edges from a sampled subgraph.

        With disjoint trees, an edge is removed from its own trees only.
        """
        src, dst = self.inputs.row, self.inputs.col
        trees = self._tree_positive(graph) if disjoint else None
        if self.edge_type is None:
            batch = None if trees is None else _lookup(trees, out.batch)
            nodes, edges = (out.node, out.node), (out.row, out.col)
            found = self._is_seed_edge(nodes, edges, batch, (src, dst))
            if reverse:
                found |= self._is_seed_edge(nodes, edges, batch, (dst, src))
            return output.keep_edges(out, ~found)
        masks: dict[Any, Any] = {}
        for edge_type in graph.edge_types:
            pairs = []
            if edge_type == self.edge_type:
                pairs.append((src, dst))
            if reverse and is_reverse(edge_type, self.edge_type):
                pairs.append((dst, src))
            source, target = graph.end_types(edge_type)
            nodes = out.node[source], out.node[target]
            edges = out.row[edge_type], out.col[edge_type]
            batch = (
                None if trees is None else _lookup(trees, out.batch[target])
            )
            for pair in pairs:
                found = self._is_seed_edge(nodes, edges, batch, pair)
                masks[edge_type] = masks.get(edge_type, True) & ~found
        output.keep_hetero_edges(out, masks)

    def _is_seed_edge(
        self,
        nodes: tuple[Tensor, Tensor],
        edges: tuple[Tensor, Tensor],
        batch: Tensor | None,
        seeds: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Whether each edge is one of ``seeds`` (of its own tree)."""
        device = edges[0].device
        seeds = seeds[0].to(device), seeds[1].to(device)
        sides = list(zip(nodes, edges, seeds, strict=True))
        is_row, is_col = (
            isin(node, seed).index_select(0, end) for node, end, seed in sides
        )
        found = is_row & is_col
        # Few edges have ends among both: these are compared as pairs.
        index = found.nonzero().view(-1)
        n, size = index.numel(), index.numel() + self.num_pos
        code = torch.zeros(size, dtype=torch.int64, device=device)
        parts = [
            torch.cat([node[end[index]], seed]) for node, end, seed in sides
        ]
        if batch is not None:
            trees = torch.arange(self.num_pos, device=device)
            parts.append(torch.cat([batch[edges[1][index]], trees]))
        for part in parts:  # dense ids keep the products small
            values, number = part.unique(return_inverse=True)
            code = (code * values.numel() + number).unique(
                return_inverse=True
            )[1]
        found[index] = torch.isin(code[:n], code[n:])
        return found


def _lookup(values: Tensor, index: Tensor) -> Tensor:
    """Indexes values on the host by an index that may be on a GPU."""
    return values.to(index.device)[index]


def is_reverse(edge_type: Any, other: Any) -> bool:
    """Whether an edge type holds the reverse edges of another one.

    By PyG's naming it is called ``rev_<relation>``. A relation between nodes
    of one type may also hold its own reverse edges.
    """
    if (edge_type[0], edge_type[2]) != (other[2], other[0]):
        return False
    return edge_type == other or edge_type[1].removeprefix('rev_') == other[
        1
    ].removeprefix('rev_')
