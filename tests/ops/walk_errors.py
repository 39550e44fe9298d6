"""The errors of the walk operators: calls and messages."""

import torch

from tests.ops.fake_cuda import on_cuda
from torch_gsample import ops
from torch_gsample.rng import make_key

GSAMPLE = torch.ops.gsample

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])
WEIGHT = torch.ones(3, dtype=torch.float64)
NONE = torch.tensor([], dtype=torch.int64)


def walk(seeds=SEEDS, length=3, key=KEY, indptr=INDPTR, **kw):
    return ops.random_walk(indptr, INDICES, seeds, length, key=key, **kw)


def second(p=2.0, q=0.5, length=3, **kw):
    return ops.node2vec_walk(
        INDPTR, INDICES, SEEDS, length, p, q, key=KEY, **kw
    )


def meta(path=(0, 0), indptr=(INDPTR,), indices=(INDICES,), **kw):
    return ops.metapath_walk(indptr, indices, path, SEEDS, key=KEY, **kw)


def fire(p=0.5, seeds=SEEDS):
    return ops.forest_fire(INDPTR, INDICES, seeds, p, key=KEY)


def frontier(indptr=INDPTR, seeds=SEEDS, length=3):
    return ops.frontier_walk(indptr, INDICES, seeds, length, key=KEY)


def scale(weight=WEIGHT, k=2, value=None):
    return ops.labor.labor_scale(INDPTR, weight, k, value)


#: (type, call, message) of the Python fronts.
WALK_ERRORS = [
    (IndexError, lambda: walk(SEEDS + 1), "'seeds' must be in [0, 3) (got 3)"),
    (TypeError, lambda: walk(length=1.0), "'length' must be an integer (got "),
    (TypeError, lambda: walk(length=True), 'must be an integer (got True)'),
    (ValueError, lambda: walk(length=-1), 'in [0, 2^31) (got -1)'),
    (ValueError, lambda: second(length=2**31), '(got 2147483648)'),
    (TypeError, lambda: walk(key=KEY.int()), "'key' must be an int64 tensor"),
    (ValueError, lambda: walk(indptr=NONE), "'indptr' must have at least one"),
    (ValueError, lambda: walk(call_id=-1), 'in [0, 65536) (got -1)'),
    (ValueError, lambda: second(call_id=65536), "'call_id' must be in [0, 6"),
    (ValueError, lambda: walk(restart=1.01), 'a probability (got 1.01)'),
    (ValueError, lambda: meta(restart=-0.1), "'restart' must be a probabili"),
    (ValueError, lambda: walk(restart=torch.nan), 'probability (got nan)'),
    (
        ValueError,
        lambda: walk(cum_weight=SEEDS),
        "random_walk: 'cum_weight' must have 4 elements (got 2)",
    ),
    (
        ValueError,
        lambda: second(cum_weight=SEEDS),
        "node2vec_walk: 'cum_weight' must have 4 elements (got 2)",
    ),
    (
        TypeError,
        lambda: second(ascending=INDICES.int()),
        "'ascending' must be of the dtype of 'indices', torch.int64 (got ",
    ),
    (
        ValueError,
        lambda: second(ascending=SEEDS),
        "node2vec_walk: 'ascending' must have 3 elements, one for each edge",
    ),
    (ValueError, lambda: second(p=0), "'p' must be positive and finite (got "),
    (ValueError, lambda: second(p=torch.inf), 'finite (got inf)'),
    (ValueError, lambda: second(q=-1), "'q' must be positive and finite (got"),
    (ValueError, lambda: second(q=torch.nan), 'finite (got nan)'),
    (
        ValueError,
        lambda: meta(indices=[]),
        'must have one item for each relation (got 1 and 0)',
    ),
    (ValueError, lambda: meta([]), "'path' must have at least one step"),
    (TypeError, lambda: meta([0.0]), 'indices of relations (got 0.0)'),
    (TypeError, lambda: meta([False]), 'indices of relations (got False)'),
    (IndexError, lambda: meta([0, 1]), 'relations in [0, 1) (got 1)'),
    (ValueError, lambda: fire(p=1), "forest_fire: 'p' must be in [0, 1) (go"),
    (ValueError, lambda: fire(p=torch.nan), "'p' must be in [0, 1) (got nan"),
    (
        IndexError,
        lambda: fire(seeds=SEEDS + 1),
        "forest_fire: 'seeds' must be in [0, 3) (got 3)",
    ),
    (
        TypeError,
        lambda: ops.sum_columns(INDPTR, INDPTR),
        "sum_columns: 'value' must be float32 or float64 (got torch.int64)",
    ),
    (
        ValueError,
        lambda: ops.sum_columns(INDPTR, torch.ones(3, 1, 1)),
        "'value' must have shape [num_edges] or [num_edges, size] (got [3, 1,",
    ),
    (
        ValueError,
        lambda: frontier(seeds=on_cuda(SEEDS)),
        "frontier_walk: 'seeds' must be on the CPU, because each step depends",
    ),
    (
        ValueError,
        lambda: frontier(indptr=on_cuda(INDPTR)),
        "frontier_walk: 'indptr' must be on the CPU",
    ),
    (
        IndexError,
        lambda: frontier(seeds=SEEDS + 1),
        "frontier_walk: 'seeds' must be in [0, 3) (got 3)",
    ),
    (
        ValueError,
        lambda: frontier(length=-1),
        "frontier_walk: 'length' must be in [0, 2^31) (got -1)",
    ),
    (ValueError, lambda: scale(k=0), "labor_scale: 'k' must be at least 1 ("),
    (
        TypeError,
        lambda: scale(torch.ones(3)),
        "labor_scale: 'weight' must be a float64 tensor",
    ),
    (
        TypeError,
        lambda: scale(value=torch.ones(3)),
        "labor_scale: 'value' must be a float64 tensor",
    ),
    (IndexError, lambda: meta([-1]), "'path' must hold relations in [0, 1) "),
]


def raw_walk(
    indptr=INDPTR, indices=INDICES, seeds=SEEDS, length=3, call=0, **kw
):
    return GSAMPLE.random_walk(indptr, indices, seeds, length, KEY, call, **kw)


def raw_second(p=1.0, q=1.0, indptr=INDPTR, indices=INDICES, **kw):
    return GSAMPLE.node2vec_walk(indptr, indices, SEEDS, 4, p, q, KEY, **kw)


def raw_meta(path, indptr=(INDPTR,), indices=(INDICES,), seeds=SEEDS):
    return GSAMPLE.metapath_walk(indptr, indices, path, seeds, KEY)


def raw_fire(indptr=INDPTR, indices=INDICES, p=1 - 1e-9, seeds=SEEDS):
    return GSAMPLE.forest_fire(indptr, indices, seeds, p, KEY)


def raw_frontier(indptr=INDPTR, indices=INDICES, seeds=SEEDS, length=5):
    return GSAMPLE.frontier_walk(indptr, indices, seeds, length, KEY)


#: Messages of the operators without their Python wrappers.
WALK_OPERATOR_ERRORS = {
    "random_walk: 'indptr' must not be empty": lambda: raw_walk(NONE),
    "random_walk: 'seeds' has the wrong dtype": lambda: raw_walk(
        seeds=SEEDS.int()
    ),
    "random_walk: 'seeds' must be in [0, 3) (got 3 at position 1)": (
        lambda: raw_walk(seeds=SEEDS + 1)
    ),
    "metapath_walk: 'seeds' must be in [0, 3) (got -1 at position 0)": (
        lambda: raw_meta([0], seeds=SEEDS - 1)
    ),
    "'length' must be in [0, 2^31) (got -1)": lambda: raw_walk(length=-1),
    "'length' must be in [0, 2^31) (got 2147483648)": lambda: raw_walk(
        length=2**31
    ),
    "random_walk: 'call_id' must be in [0, 65536) (got 65536)": (
        lambda: raw_walk(call=65536)
    ),
    "'restart' must be in [0, 1] (got 1.5": lambda: raw_walk(restart=1.5),
    "'restart' must be in [0, 1] (got nan": lambda: raw_walk(
        restart=torch.nan
    ),
    "random_walk: 'cum_weight' must have 4 elements (got 2)": lambda: raw_walk(
        cum_weight=SEEDS
    ),
    "'indptr' must ascend from 0 to the 3 edges (it does not at column 2 of": (
        lambda: raw_walk(torch.tensor([0, 2, 3, 4]))
    ),
    'edges (it does not at column 2 of relation 0)': lambda: raw_second(
        indptr=torch.tensor([0, 2, 3, 2])
    ),
    'must be columns of the graph of the next step (got 3 at edge ': (
        lambda: raw_walk(indices=INDICES + 1)
    ),
    'of the next step (got -1 at edge 2 of relation 0)': lambda: raw_second(
        indices=torch.tensor([1, 1, -1])
    ),
    "'p' and 'q' must be positive and finite (got 0": lambda: raw_second(0.0),
    'positive and finite (got 1 and inf': lambda: raw_second(q=torch.inf),
    "metapath_walk: 'indptr' and 'indices' must have one item for each": (
        lambda: raw_meta([0], indices=[])
    ),
    "'path' must not be empty": lambda: raw_meta([]),
    "node2vec_walk: 'ascending' has the wrong dtype": lambda: raw_second(
        ascending=INDICES.int()
    ),
    "node2vec_walk: 'ascending' must have 3 elements (got 2)": (
        lambda: raw_second(ascending=SEEDS)
    ),
    "'path' must hold relations in [0, 1) (got 1)": lambda: raw_meta([0, 1]),
    "metapath_walk: 'indptr' has the wrong dtype": lambda: raw_meta(
        [0], [INDPTR, INDPTR.int()], [INDICES, INDICES]
    ),
    'of the next step (got 2 at edge 1 of relation 0)': lambda: raw_meta(
        [0, 1],
        [torch.tensor([1, 2]), torch.tensor([0, 0])],
        [INDICES, INDICES],
        SEEDS * 0,
    ),
    "forest_fire: 'p' must be in [0, 1) (got 1": lambda: raw_fire(p=1.0),
    "forest_fire: 'seeds' must be in [0, 3) (got 3": lambda: raw_fire(
        seeds=SEEDS + 1
    ),
    'next step (got 9 at edge 1 of relation 0)': lambda: raw_fire(
        indices=torch.tensor([1, 9, 2])
    ),
    'edges (it does not at column 0 of relation 0)': lambda: raw_fire(
        torch.tensor([0, 4, 3, 3])
    ),
    "frontier_walk: 'seeds' must be in [0, 3) (got 3": lambda: raw_frontier(
        seeds=SEEDS + 1
    ),
    "frontier_walk: 'length' must be in [0, 2^31) (got -1": (
        lambda: raw_frontier(length=-1)
    ),
    "frontier_walk: 'indices' must be columns": lambda: raw_frontier(
        indices=torch.tensor([9, 9, 9])
    ),
    "frontier_walk: 'indptr' must ascend": lambda: raw_frontier(
        torch.tensor([0, 4, 3, 3])
    ),
    "frontier_walk: 'indptr' must ascend from 0 to the 3 edges (it does not "
    'at column 2': lambda: raw_frontier(
        torch.tensor([0, 1, 2, 9]),
        torch.tensor([2, 2, 2]),
        torch.tensor([0]),
    ),
    "sum_columns: 'indptr' must not be empty": lambda: GSAMPLE.sum_columns(
        NONE, WEIGHT
    ),
    "sum_columns: 'indptr' must ascend from 0 to the 3 edges": (
        lambda: GSAMPLE.sum_columns(INDPTR + 1, WEIGHT)
    ),
    'float64 tensor [num_edges] or [num_edges, size]': (
        lambda: GSAMPLE.sum_columns(INDPTR, INDPTR)
    ),
    "'perm' must be in [0, 3) (got 3 at position 1)": (
        lambda: GSAMPLE.sum_columns(INDPTR, WEIGHT, torch.tensor([0, 3, 1]))
    ),
    "labor_scale: 'k' must be positive (got 0)": lambda: GSAMPLE.labor_scale(
        INDPTR, WEIGHT, 0
    ),
    "labor_scale: 'indptr' must not be empty": lambda: GSAMPLE.labor_scale(
        NONE, WEIGHT, 1
    ),
    "labor_scale: 'indptr' must ascend from 0 to the 3 weights": (
        lambda: GSAMPLE.labor_scale(INDPTR + 1, WEIGHT, 1)
    ),
    'and it and its inverse finite (got -1 at position 0)': (
        lambda: GSAMPLE.labor_scale(INDPTR, -WEIGHT, 1)
    ),
    "'value' must be positive, and it and its inverse finite (got 0": (
        lambda: GSAMPLE.labor_scale(INDPTR, WEIGHT, 1, WEIGHT * 0)
    ),
    "labor_scale: 'value' must have 3 elements (got 2)": (
        lambda: GSAMPLE.labor_scale(INDPTR, WEIGHT, 1, WEIGHT[:2])
    ),
    'its inverse finite (got 9.88131e-324 at position 0)': (
        lambda: GSAMPLE.labor_scale(INDPTR, WEIGHT * 1e-323, 1)
    ),
}
