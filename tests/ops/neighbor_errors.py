"""Errors of sample_neighbors: of the Python wrapper, and of the operator."""

import torch

from tests.ops.neighbors import call_one, sample_one, sample_typed
from torch_gsample import CSC, Graph, ops
from torch_gsample.rng import make_key

GSAMPLE = torch.ops.gsample
KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])
TIME = torch.tensor([1, 2, 3])
NONE = torch.tensor([], dtype=torch.int64)


def sample(
    indptr=INDPTR, indices=INDICES, seeds=SEEDS, fanouts=(1,), key=KEY, **kw
):
    return sample_one(indptr, indices, seeds, fanouts, key=key, **kw)


def typed(seeds=(SEEDS,), fanouts=((1,), (1,)), **kw):
    graph = [INDPTR] * 2, [INDICES] * 2, [(0, 0)] * 2, [3]
    return sample_typed(*graph, seeds, fanouts, key=KEY, **kw)


NEIGHBOR_ERRORS = [
    (
        ValueError,
        lambda: ops.sample_batches(
            Graph.from_csc(CSC(INDPTR, INDICES, 3)),
            [SEEDS] * 2,
            [1],
            KEY,
            seed_time=[None],
        ),
        "'seed_time' must have one item for each of 2 batches (got 1)",
    ),
    (IndexError, lambda: sample(seeds=SEEDS + 1), '(got 3 at position 1)'),
    (IndexError, lambda: sample(seeds=SEEDS - 1), '(got -1 at position 0)'),
    (IndexError, lambda: sample(INDPTR[:1], NONE), '[0, 0) (got 0 at positi'),
    (TypeError, lambda: sample(fanouts=[1.5]), 'must hold integers (got 1.5)'),
    (
        TypeError,
        lambda: sample(fanouts=[True]),
        "'fanouts' must hold integers",
    ),
    (ValueError, lambda: sample(fanouts=[1, -2]), '0 or positive (got -2)'),
    (
        TypeError,
        lambda: sample(key=None),
        "'key' must be an int64 tensor (got",
    ),
    (
        TypeError,
        lambda: sample(key=KEY.int()),
        "'key' must be an int64 tensor",
    ),
    (
        ValueError,
        lambda: sample(key=KEY[0]),
        'of (seed, epoch, batch) (got [3',
    ),
    (ValueError, lambda: sample(key=KEY[:, :2]), 'batch) (got [1, 2])'),
    (ValueError, lambda: sample(key=KEY.repeat(2, 1)), 'batch) (got [2, 3])'),
    (
        ValueError,
        lambda: sample(temporal_strategy='first'),
        "'temporal_strategy' must be 'uniform' or 'last' (got 'first')",
    ),
    (
        ValueError,
        lambda: sample(time_window=-1),
        "'time_window' must not be negative (got -1)",
    ),
    (
        ValueError,
        lambda: sample(edge_time=TIME, disjoint=True),
        "'seed_time' must be given if, and only if, the graph has times",
    ),
    (
        ValueError,
        lambda: sample(seed_time=SEEDS, disjoint=True),
        "'seed_time' must be given if, and only if, the graph has times",
    ),
    (
        ValueError,
        lambda: sample(edge_time=TIME, seed_time=SEEDS),
        "sample_neighbors: temporal sampling needs 'disjoint=True'",
    ),
    (
        ValueError,
        lambda: sample(edge_time=TIME, seed_time=TIME, disjoint=True),
        "'seed_time' must have 2 elements (got 3)",
    ),
    (
        TypeError,
        lambda: ops.sample_neighbors(3, SEEDS, [1], KEY),
        "'graph' must be a Graph, as returned by as_graph() (got int)",
    ),
    (
        ValueError,
        lambda: typed(seeds=SEEDS),
        "'seeds' and 'fanouts' must have one item for each node type and re",
    ),
    (
        ValueError,
        lambda: typed(fanouts=[[1], [1, 2]]),
        "'fanouts' must have the same number of hops for each of 2 relations "
        '(got [[1], [1, 2]])',
    ),
    (
        ValueError,
        lambda: typed(seeds=[SEEDS, SEEDS]),
        "'seeds' must have one item for each of 1 node types (got 2)",
    ),
    (
        ValueError,
        lambda: typed(max_edges=[1]),
        "'max_edges' must have one item for each of 2 relations (got 1)",
    ),
    (
        ValueError,
        lambda: typed(max_edges=[1, -1]),
        "sample_neighbors: 'max_edges' must be at least 0 (got -1)",
    ),
]


def call(
    indptr=INDPTR, indices=INDICES, seeds=SEEDS, fanouts=(1,), key=KEY, **kw
):
    return call_one(
        GSAMPLE.sample_neighbors, indptr, indices, seeds, fanouts, key, **kw
    )


def call_typed(
    graph=(INDPTR, INDICES) * 2,
    ends=(0, 0, 0, 0),
    num_nodes=(3,),
    seeds=(SEEDS,),
    fanouts=(2, 2),
    **kw,
):
    return GSAMPLE.sample_neighbors(
        graph, ends, num_nodes, seeds, fanouts, KEY, **kw
    )


def hub_of_trees():
    """3,000 trees of a hub with a million edges: too many nodes."""
    indptr = torch.full((1_000_001,), 1_000_000)
    indptr[0] = 0
    indices = torch.zeros(1_000_000, dtype=torch.int64)
    seeds = torch.zeros(3_000, dtype=torch.int64)
    return call(indptr, indices, seeds, [-1], disjoint=True)


NEIGHBORS = {
    "'seed_ptr' must be on the CPU and have an element more than batches, of "
    'which there is one or more': lambda: call(seed_ptr=[SEEDS[:1]]),
    "'seed_ptr' must have one item for each node type": lambda: call(
        seed_ptr=[]
    ),
    "'seed_ptr' and 'max_edges' must not be given together": lambda: call(
        seed_ptr=[SEEDS], max_edges=1
    ),
    "'seeds' must be in [0, 3) (got 3 at position 1)": lambda: call(
        seeds=SEEDS + 1
    ),
    "'seeds' must be in [0, 3) (got -1 at position 0)": lambda: call(
        seeds=SEEDS - 1
    ),
    "'indptr' must ascend from 0 to the 3 edges": lambda: call(
        torch.tensor([2, 0, 3, 3])
    ),
    '(it does not at a column near 2 of relation 0': lambda: call(
        torch.tensor([0, 2, 3, 4]), seeds=SEEDS[1:]
    ),
    "'indices' must be in [0, 3) (they are not near edge 0 of": lambda: call(
        indices=INDICES + 1, fanouts=[-1]
    ),
    "'indices' must be in [0, 3) (they are": lambda: call(
        indices=INDICES - 2, fanouts=[-1]
    ),
    "'seeds' must be a contiguous vector": lambda: call(
        seeds=torch.arange(4)[::2]
    ),
    "'seeds' has the wrong dtype": lambda: call(seeds=SEEDS.int()),
    "'indptr' and 'indices' must be int32 or int64, and": lambda: call(
        INDPTR.int()
    ),
    "and 'indptr' not narrower than 'indices'": lambda: call(INDPTR.float()),
    "'cum_weight' must have 4 elements (got 2)": lambda: call(
        cum_weight=TIME[:2]
    ),
    "'cum_weight' has the wrong dtype": lambda: call(cum_weight=TIME.float()),
    "'key' must be a contiguous int64 tensor [1, 3]": lambda: call(key=KEY[0]),
    "'call_id' plus the number of hops must be in [0, 65536] (got 65536)": (
        lambda: call(call_id=65536)
    ),
    'of hops must be in [0, 65536] (got 9223372036854775807)': lambda: call(
        call_id=2**63 - 1
    ),
    "'fanouts' must be -1 or more, and less than 2^31 with replacement (g": (
        lambda: call(fanouts=[2**63 - 1], replace=True)
    ),
    'the number of hops must be in [0, 65536] (got -1)': lambda: call(
        call_id=-1
    ),
    "'time_window' must not be negative": lambda: call(time_window=-1),
    "times of edges and 'seed_time' must be given together": lambda: call(
        seed_time=SEEDS, disjoint=True
    ),
    "neighbors: times of edges and 'seed_time' must be given together": (
        lambda: call(edge_time=TIME, disjoint=True)
    ),
    "temporal sampling needs 'disjoint' trees": lambda: call(
        edge_time=TIME, seed_time=SEEDS
    ),
    "neighbors: 'max_edges' must be in [0, 2^31 - 1) (got -1)": lambda: call(
        max_edges=-1
    ),
    "a sample has more than 'max_edges' = 1 edges (at least 2)": lambda: call(
        fanouts=[2], max_edges=1
    ),
    "'graph' must have 2 to 4 tensors, and 'ends' 2 node types, for each re": (
        lambda: call_typed([INDPTR, INDICES])
    ),
    'relation (got 4 and 3)': lambda: call_typed(ends=[0, 0, 0]),
    "'ends' must name one of 1 node types (got 1)": lambda: call_typed(
        ends=[0, 0, 1, 0]
    ),
    "neighbors: 'seeds' and 'seed_time' must have one item for": lambda: (
        call_typed(seeds=[])
    ),
    "neighbors: 'fanouts' must have the same number of hops for each of 2": (
        lambda: call_typed(fanouts=[1, 2, 3])
    ),
    "neighbors: 'indptr' must have 5 elements (got 4)": lambda: call_typed(
        num_nodes=[4]
    ),
    "'indptr' must be a contiguous vector (got 2 dim": lambda: call_typed(
        [INDPTR[None], INDICES, INDPTR, INDICES]
    ),
    "neighbors: 'indptr' has the wrong dtype": lambda: call_typed(
        [INDPTR, INDICES, INDPTR.int(), INDICES]
    ),
    "neighbors: 'num_nodes' must not be negative (got -1)": lambda: call_typed(
        num_nodes=[3, -1], seeds=[SEEDS, NONE]
    ),
    "neighbors: 'seed_time' must have 2 elements (got 0)": lambda: call(
        edge_time=TIME, seed_time=NONE, disjoint=True
    ),
    "'max_edges' must have one item for each of 2 relations (got 1)": lambda: (
        call_typed(max_edges=[9])
    ),
    "'max_edges' must be in [0, 2^31 - 1) (got 2147483647)": lambda: (
        call_typed(max_edges=[9, 2**31 - 1])
    ),
    "'max_edges' must sum to less than 2^31 - 1 (got 2147483647)": lambda: (
        call_typed(max_edges=[2**30, 2**30 - 1])
    ),
    "'max_edges' = 1 edges (at least 2) of relation 1": lambda: call_typed(
        max_edges=[9, 1]
    ),
    'neighbors: too many seeds (2)': lambda: call_typed(
        num_nodes=[3, 2**62], seeds=[SEEDS, NONE], disjoint=True
    ),
    'neighbors: at most 65280 relations (got 65281)': lambda: call_typed(
        [INDPTR, INDICES] * 65281, [0] * 130562, fanouts=[]
    ),
    'a sample must have less than 2^31 nodes of a type': hub_of_trees,
    '(this one may have 3000003000); use fewer seeds or sm': hub_of_trees,
}
