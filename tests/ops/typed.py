"""A graph with node and edge types, and arguments of its samples."""

import torch

from tests.ops.cases import some_weights
from tests.ops.neighbors import make_graph
from torch_gsample import ops
from torch_gsample.testing import random_edge_time, random_graph

# Node types: 0 users, 1 items, 2 shops without any seed, 3 nothing at all.
NUM_NODES = [30, 50, 8, 0]
RELATIONS = [(0, 1), (1, 0), (1, 1), (2, 0), (0, 0), (0, 1)]
NUM_EDGES = [200, 150, 300, 40, 0, 90]
SEEDS = [[3, 29, 3], [0, 49, 7, 7], [], []]
FANOUTS = (
    [[], [], [], [], [], []],
    [[2], [2], [2], [2], [2], [2]],
    [[2, 1], [3, 0], [-1, 2], [1, 1], [5, 5], [0, 20]],
    [[0, 1, 1], [2, 2, 2], [1, 0, 1], [0, 0, -1], [1, 1, 1], [3, 1, 0]],
    [[70], [70], [70], [70], [70], [70]],
)


def some_graphs(scale=1):
    return [
        random_graph(
            scale * NUM_NODES[dst],
            scale * num_edges,
            num_rows=scale * NUM_NODES[src],
            seed=r,
        )
        for r, ((src, dst), num_edges) in enumerate(
            zip(RELATIONS, NUM_EDGES, strict=True)
        )
    ]


def arguments(graphs, seeds, weighted=False, temporal=False, **options):
    """Arguments of the operator; relations 2 and 4 have nothing optional."""
    given = dict(options)
    if weighted:
        given['cum_weight'] = [
            None
            if r in (2, 4)
            else ops.cumulate_weights(g.indptr, some_weights(g, seed=r))
            for r, g in enumerate(graphs)
        ]
    if temporal:
        given['disjoint'] = True
        given['edge_time'] = [
            None if r in (2, 4) else random_edge_time(g, 10, seed=r)
            for r, g in enumerate(graphs)
        ]
        given['seed_time'] = [torch.arange(len(s)) * 3 % 11 for s in seeds]
    return given


def some_seeds():
    return [torch.tensor(s, dtype=torch.int64) for s in SEEDS]


def graph_and_options(graphs, seeds, scale=1, **options):
    """The graph, the times of seeds, and how to sample from it."""
    given = arguments(graphs, seeds, **options)
    graph = make_graph(
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        RELATIONS,
        [scale * n for n in NUM_NODES],
        given.pop('cum_weight', None),
        given.pop('edge_time', None),
    )
    return graph, given.pop('seed_time', None), given
