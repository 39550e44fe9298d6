"""Programs that run on graphs in memory and on disk, and their results."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from torch_gsample import SparseSample, algorithms
from torch_gsample.graph_input import read_graph
from torch_gsample.rng import make_key, program_scope
from torch_gsample.samplers.program.input import read_matrices
from torch_gsample.sparse_sample.select import random_walk_step
from torch_gsample.storage import ChunkedGraph

NODES, EDGES = 300, 4000
SEEDS = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))[:16]
TWICE = torch.cat([SEEDS, SEEDS[:3]])
X = torch.rand(NODES, 4, generator=torch.Generator().manual_seed(2))
LINKS = SEEDS.view(2, 8)[:, :4]


def make_data(num_nodes=NODES, num_edges=EDGES):
    """A graph of duplicate edges, loops, hubs, and nodes without edges."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.rand(2, num_edges, generator=generator) ** 2
    edge_index = (edge_index * (num_nodes - 5)).long()
    weight = torch.rand(num_edges, generator=generator)
    weight = weight * (weight > 0.1)
    return Data(edge_index=edge_index, num_nodes=num_nodes, weight=weight)


def in_memory(data, weighted):
    name = 'weight' if weighted else None
    return read_matrices('test', data, read_graph(data), name)[None]


def on_disk(path, data, weighted, rows=True, chunk_bytes=4096):
    graph = ChunkedGraph.write(
        path,
        data,
        weight_attr='weight' if weighted else None,
        chunk_bytes=chunk_bytes,
    )
    if rows:
        graph.write_rows(memory_limit=1 << 28, chunk_bytes=chunk_bytes)
    return graph


AS_GCN = algorithms.AsGCN(4)


def _normalized(A, weighted):
    A = A.div(A.sum(dim=0).clamp(min=1e-9), dim=0)
    return algorithms.ladies(A, SEEDS, [30, 30], False, True)


PROGRAMS = {
    'graphsage': lambda A, w: algorithms.graphsage(A, SEEDS, [3, 2]),
    'all_edges': lambda A, w: algorithms.graphsage(A, SEEDS, [-1]),
    'ladies': lambda A, w: algorithms.ladies(A, SEEDS, [30, 30]),
    'normalized': _normalized,
    'fastgcn': lambda A, w: algorithms.fastgcn(A, SEEDS, [60, 60]),
    'labor': lambda A, w: algorithms.labor(A, SEEDS, [3, 3]),
    'labor_star': lambda A, w: algorithms.labor(
        A, SEEDS, [3, 3], -1, normalize=True, weighted=w
    ),
    'as_gcn': lambda A, w: AS_GCN(A, SEEDS, [20, 20], X),
    'shadow': lambda A, w: algorithms.shadow(A, TWICE, [3, 2]),
    'shadow_replace': lambda A, w: algorithms.shadow(A, TWICE, [3], True),
    'shadow_ppr': lambda A, w: algorithms.shadow_ppr(
        A, SEEDS[:4], 5, eps=1e-2
    ),
    'saint_node': lambda A, w: algorithms.saint_node(A, 40),
    'saint_walk': lambda A, w: algorithms.saint_walk(A, SEEDS, 4),
    'saint_frontier': lambda A, w: algorithms.saint_frontier(A, TWICE, 15),
    'deepwalk': lambda A, w: algorithms.deepwalk(A, TWICE, 7),
    'node2vec': lambda A, w: algorithms.node2vec(A, TWICE, 6, 2.0, 0.5, w),
    'pinsage': lambda A, w: algorithms.pinsage(A, SEEDS, 3, 5, 3),
    'seal': lambda A, w: algorithms.seal(A, LINKS, 1),
    'walk_step': lambda A, w: random_walk_step(A, TWICE),
    'walks': lambda A, w: A.random_walk(TWICE, 9, 0.3, A if w else None),
    'walks_back': lambda A, w: A.T.random_walk(TWICE, 9, 0.3),
    'node2vec_back': lambda A, w: A.T.node2vec_walk(TWICE, 5, 0.5, 2.0),
    'frontier': lambda A, w: A.frontier_walk(TWICE, 20),
    'rows': lambda A, w: A[TWICE, :],
    'columns_of_transpose': lambda A, w: A.T[:, TWICE],
    'rows_of_transpose': lambda A, w: A.T[TWICE, :],
    'block': lambda A, w: A[SEEDS, TWICE],
    'block_of_transpose': lambda A, w: A.T[TWICE, SEEDS],
    'induced': lambda A, w: A.induce(SEEDS),
    'induced_transpose': lambda A, w: A.T.induce(SEEDS),
    'twice': lambda A, w: A[:, SEEDS][:, torch.tensor([3, 1, 3])],
    'masked': lambda A, w: _masked(A[:, SEEDS]),
    'weighted_draws': lambda A, w: _weighted(A[:, TWICE]),
    'no_columns': lambda A, w: A[:, SEEDS[:0]].individual_sample(2),
    'arithmetic': lambda A, w: (
        1 / ((-A).sub(0.5).mul(2) + 3).add(X[:, 0], dim=1).relu() - 1
    )[:, SEEDS],
    'arithmetic_of_transpose': lambda A, w: (A.T.div(X[:, 1], dim=0))[
        :, SEEDS
    ],
    'sums': lambda A, w: [
        *(A.sum(dim=0), A.T.sum(dim=0), (A**2).sum(dim=1)),
        *(A.max(dim=0), A.min(dim=1), A.mean(dim=1), A.mean(axis=0)),
        *(A.degree(), A.degree(1), A.T.degree(0), (A + True).sum(dim=0)),
    ],
}
#: Those that read rows.
BY_ROW = {
    *('saint_node', 'saint_walk', 'saint_frontier', 'deepwalk', 'node2vec'),
    *('pinsage', 'walks', 'frontier', 'rows', 'columns_of_transpose'),
    *('induced_transpose', 'arithmetic_of_transpose'),
}


def _masked(A):
    return A.masked(A.row_ids is None and A.degree()[A.coo()[1]] > 9)


def _weighted(A):
    return A.individual_sample(3, A), A.individual_sample(9, A, replace=True)


def flat(value) -> list[Tensor]:
    """Returns all tensors in a program's results."""
    if isinstance(value, SparseSample):
        A = value._by_column()
        ids = [x for x in (A.row_ids, A.col_ids) if x is not None]
        parts = A.csc.indptr.long(), A.csc.indices.long(), A.values()
        return [*parts, A.edge_id, *ids, torch.tensor(A.shape)]
    if isinstance(value, Tensor):
        return [value]
    return [] if value is None else [t for item in value for t in flat(item)]


def run(program, A, weighted=False, key=3) -> list[Tensor]:
    with program_scope(make_key(key)):
        return flat(program(A, weighted))


def assert_same(out, want):
    """Bit by bit: NaN in memory (0 / 0) is NaN on disk."""
    assert len(out) == len(want)
    for a, b in zip(out, want, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        a, b = (x.detach().contiguous().view(torch.uint8) for x in (a, b))
        assert torch.equal(a, b)
