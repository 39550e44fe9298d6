"""Graphs, seeds and shapes of launches that tests of CUDA kernels share."""

import torch

DTYPES = [
    (torch.int64, torch.int64),
    (torch.int64, torch.int32),
    (torch.int32, torch.int32),
]
#: Blocks and threads of a launch, and how often threads take turns.
SHAPES = [(1, 32, 20), (2, 64, 50), (3, 96, 5), (5, 32, 20)]


def skewed_graph(seed, hub=70, num_nodes=80):
    """Many short columns, some empty ones and a few long ones."""
    generator = torch.Generator().manual_seed(seed)
    degree = torch.randint(0, 9, (num_nodes,), generator=generator)
    degree[::37] += 30
    degree[5] = hub
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    size = (int(indptr[-1]),)
    indices = torch.randint(0, num_nodes, size, generator=generator)
    return indptr, indices


def some_seeds(seed, num_nodes=80):
    """Seeds with duplicates, and among them the hub."""
    generator = torch.Generator().manual_seed(seed)
    seeds = torch.randint(0, num_nodes, (9,), generator=generator)
    seeds[4] = seeds[1]
    seeds[2] = 5
    return seeds
