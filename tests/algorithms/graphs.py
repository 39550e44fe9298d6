"""Graphs and runs of programs for the tests of algorithms."""

import torch

from torch_gsample import SparseSample
from torch_gsample.rng import make_key, program_scope


def skewed_graph(num_nodes: int = 40, num_edges: int = 300) -> SparseSample:
    """A graph of self-loops and a few hubs, normalised as a GCN's."""
    generator = torch.Generator().manual_seed(7)
    weight = 1 / (torch.arange(num_nodes) + 1.0)
    row = torch.multinomial(weight, num_edges, True, generator=generator)
    col = torch.randint(num_nodes, (num_edges,), generator=generator)
    edges = torch.stack([row, col])
    loops = torch.arange(num_nodes).expand(2, -1)
    edges = torch.cat([edges, loops], dim=1).unique(dim=1)
    row, col = edges
    out_degree = row.bincount(minlength=num_nodes).double()
    in_degree = col.bincount(minlength=num_nodes).double()
    value = (out_degree[row] * in_degree[col]).rsqrt()
    return SparseSample.from_edge_index(edges, value, num_nodes)


def star(num_leaves: int, value: torch.Tensor | None = None) -> SparseSample:
    """Edges from nodes 1, 2, ... to node 0."""
    row = torch.arange(1, num_leaves + 1)
    shape = num_leaves + 1, num_leaves + 1
    return SparseSample.from_coo(row, torch.zeros_like(row), value, shape)


def features(num_nodes: int, size: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(8)
    return torch.randn(num_nodes, size, generator=generator).double()


def aggregate(layers, x):
    """The linear model `layers[0].T ... layers[-1].T x` of the seeds."""
    for S in reversed(layers):
        S = S.compact()
        out = S.T @ x[S.row_ids].to(S.dtype)
        x = x.new_zeros(len(x), out.shape[1]).index_copy(0, S.col_ids, out)
    return x[layers[0].col_ids]


def runs(program, num_runs: int) -> torch.Tensor:
    """Results of a program under the keys of `num_runs` batches."""
    out = []
    for batch in range(num_runs):
        with program_scope(make_key(11, batch=batch)):
            out.append(program())
    return torch.stack(out).detach()


def assert_mean(samples: torch.Tensor, expected: torch.Tensor) -> None:
    """The mean is the expected one, within 4 standard errors."""
    error = samples.std(dim=0) / len(samples) ** 0.5
    distance = (samples.mean(dim=0) - expected).abs()
    assert (distance <= 4 * error + 1e-9).all(), (distance / error).max()


def squared_error(samples: torch.Tensor, expected: torch.Tensor) -> float:
    return float((samples - expected).square().sum(dim=(1, 2)).mean())
