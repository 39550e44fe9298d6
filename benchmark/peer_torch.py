"""Samplers in plain PyTorch, for a CPU, without a sampling package.

Each has the distribution of our sampler of the same name, and the same
expected gradients: AS-GCN's and PASS's parameters are trained.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_gsample import CSC

FLOOR = 1e-3, 1e-5  # of AS-GCN's and of PASS's weights, as ours have them


class Layer(NamedTuple):
    """A weighted sum over sampled edges.

    Args:
        src (torch.Tensor): int64 ``[n]``, the nodes of its rows.
        dst (torch.Tensor): int64 ``[m]``, the nodes of its columns.
        row (torch.Tensor): int64 ``[num_edges]``, positions in ``src``.
        col (torch.Tensor): int64 ``[num_edges]``, positions in ``dst``.
        weight (torch.Tensor): ``[num_edges]``.
    """

    src: Tensor
    dst: Tensor
    row: Tensor
    col: Tensor
    weight: Tensor


Sampler = Callable[[Tensor], list[Layer]]


class Columns:
    """The graph's columns, as int64 tensors."""

    def __init__(self, graph: CSC, value: Tensor):
        self.indptr, self.indices = graph.indptr.long(), graph.indices.long()
        self.value, self.num_nodes = value, graph.num_cols

    def extract(self, cols: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The row, the column (a position) and the position of each edge."""
        begin, count = self.indptr[cols], self.indptr.diff()[cols]
        col = torch.repeat_interleave(count)
        skipped = begin - count.cumsum(0) + count
        edge = torch.arange(col.numel()) + skipped[col]
        return self.indices[edge], col, edge

    def sums(self, place: Tensor, value: Tensor, size: int) -> Tensor:
        return value.new_zeros(size).index_add(0, place, value)


def graphsage(graph: Columns, fanouts: Sequence[int]) -> Sampler:
    """The mean of neighbours, drawn without replacement by sorting."""

    def sample(seeds: Tensor) -> list[Layer]:
        layers, dst = [], seeds
        for k in fanouts:
            row, col, _ = graph.extract(dst)
            order = torch.rand(row.numel()).argsort()
            order = order[col[order].argsort(stable=True)]
            count = torch.bincount(col, minlength=dst.numel())
            first = count.cumsum(0) - count
            rank = torch.arange(row.numel()) - first[col]
            kept = order[rank < k]  # columns are in order, so ranks fit
            row, col = row[kept], col[kept]
            weight = 1 / count.clamp(max=k)[col].float()
            src, row = row.unique(return_inverse=True)
            layers.append(Layer(src, dst, row, col, weight))
            dst = src
        return layers

    return sample


def _chosen(
    graph: Columns, dst: Tensor, nodes: Tensor, weight: Tensor
) -> Layer:
    """The edges from drawn nodes, each of which is a row."""
    row, col, edge = graph.extract(dst)
    nodes, order = nodes.sort()
    first = torch.searchsorted(nodes, row)
    count = torch.searchsorted(nodes, row, right=True) - first
    copy = torch.repeat_interleave(count)
    place = (
        torch.arange(copy.numel()) - (count.cumsum(0) - count - first)[copy]
    )
    value = graph.value[edge[copy]] * weight[order[place]]
    return Layer(nodes, dst, place, col[copy], value)


def ladies(graph: Columns, fanouts: Sequence[int]) -> Sampler:
    def sample(seeds: Tensor) -> list[Layer]:
        layers, dst = [], seeds
        for k in fanouts:
            row, _, edge = graph.extract(dst)
            p = graph.sums(row, graph.value[edge] ** 2, graph.num_nodes)
            nodes = torch.multinomial(p, k, replacement=True)
            weight = p.sum() / (k * p[nodes])
            layers.append(_chosen(graph, dst, nodes, weight))
            dst = nodes.unique()
        return layers

    return sample


def fastgcn(graph: Columns, fanouts: Sequence[int]) -> Sampler:
    q = graph.sums(graph.indices, graph.value**2, graph.num_nodes)
    q = q / q.sum()
    cumulated = q.double().cumsum(0)

    def sample(seeds: Tensor) -> list[Layer]:
        layers, dst = [], seeds
        for k in fanouts:
            draws = torch.rand(k, dtype=torch.double) * cumulated[-1]
            nodes = torch.searchsorted(cumulated, draws, right=True)
            layers.append(_chosen(graph, dst, nodes, 1 / (k * q[nodes])))
            dst = nodes.unique()
        return layers

    return sample


class AsGCN(torch.nn.Module):
    """``q(u) ~ sum_v p(u | v) |g(x_u)|``, of trained ``g``."""

    def __init__(self, graph: Columns, fanouts: Sequence[int], x: Tensor):
        super().__init__()
        self.graph, self.fanouts, self.x = graph, fanouts, x
        self.weight = torch.nn.Parameter(torch.randn(x.shape[1]))

    def forward(self, seeds: Tensor) -> list[Layer]:
        graph, layers, dst = self.graph, [], seeds
        for k in self.fanouts:
            row, col, edge = graph.extract(dst)
            value = graph.value[edge]
            p = value / graph.sums(col, value, dst.numel())[col]
            held, where = row.unique(return_inverse=True)
            g = (self.x[held] @ self.weight).abs() + FLOOR[0]
            q = graph.sums(where, p, held.numel()) * g
            drawn = torch.multinomial(q.detach(), k, replacement=True)
            weight = q.sum() / (k * q[drawn])
            layers.append(_chosen(graph, dst, held[drawn], weight))
            dst = held[drawn].unique()
        return layers


class Pass(torch.nn.Module):
    """Neighbours by attention; its gradient is that of the log-probability."""

    def __init__(
        self, graph: Columns, fanouts: Sequence[int], x: Tensor, hidden: int
    ):
        super().__init__()
        self.graph, self.fanouts, self.x = graph, fanouts, x
        scale = x.shape[1] ** -0.5
        shape = x.shape[1], hidden
        self.W1 = torch.nn.Parameter(torch.randn(shape) * scale)
        self.W2 = torch.nn.Parameter(torch.randn(shape) * scale)
        self.a = torch.nn.Parameter(torch.zeros(3))

    def forward(self, seeds: Tensor) -> list[Layer]:
        graph, layers, dst = self.graph, [], seeds
        for k in self.fanouts:
            row, col, edge = graph.extract(dst)
            held, where = row.unique(return_inverse=True)
            terms = []
            for W in (self.W1, self.W2):
                left, right = self.x[held] @ W, self.x[dst] @ W
                terms.append((left[where] * right[col]).sum(1))
            value = graph.value[edge]
            terms.append(value / graph.sums(col, value, dst.numel())[col])
            w = torch.stack(terms, 1) @ F.softmax(self.a, 0)
            w = w.relu() + FLOOR[1]
            q = w / graph.sums(col, w, dst.numel())[col]
            # A draw by inversion within the column's part of one sum.
            total = q.detach().double().cumsum(0)
            count = torch.bincount(col, minlength=dst.numel())
            last = count.cumsum(0)
            some = (count > 0).nonzero().flatten()
            low = (total - q.detach())[last[some] - count[some]]
            high = total[last[some] - 1]
            draws = torch.rand(some.numel(), k, dtype=torch.double)
            draws = low[:, None] + draws * (high - low)[:, None]
            drawn = torch.searchsorted(total, draws.flatten(), right=True)
            drawn = drawn.minimum((last[some] - 1).repeat_interleave(k))
            log_q = q[drawn].log()
            weight = (log_q - log_q.detach()).exp() / k
            src, near = row[drawn].unique(return_inverse=True)
            layers.append(Layer(src, dst, near, col[drawn], weight))
            dst = src
        return layers
