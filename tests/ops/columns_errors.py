"""Every message of `sample_columns`, and a call that raises it."""

import torch

from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
KEYS = KEY.repeat(2, 1)
INDPTR = torch.tensor([0, 2, 3, 3])
TWO, PTR = torch.tensor([0, 2]), torch.tensor([0, 1, 3])
TIME = torch.tensor([1, 2, 3])
NONE = torch.tensor([], dtype=torch.int64)


def front(k=1, indptr=INDPTR, key=KEY, **kw):
    return ops.sample_columns(indptr, k, key=key, **kw)


def operator(indptr=INDPTR, k=1, key=KEY, **kw):
    return torch.ops.gsample.sample_columns(indptr, k, key, **kw)


COLUMNS_ERRORS = [
    (TypeError, lambda: front(1.0), "'k' must be an integer (got 1.0)"),
    (TypeError, lambda: front(True), "'k' must be an integer (got True)"),
    (ValueError, lambda: front(-2), "'k' must be -1 (all) or more (got -2)"),
    (ValueError, lambda: front(indptr=NONE), 'at least one element'),
    (ValueError, lambda: front(key=KEY[0]), 'epoch, batch) (got [3])'),
    (
        ValueError,
        lambda: front(ptr=PTR),
        "'key' must have shape [2, 3], with rows of (seed, epoch, batch)",
    ),
    (IndexError, lambda: front(cols=TIME), "'cols' must be in [0, 3) (got 3)"),
    (ValueError, lambda: front(id=TWO), "'id' must have 3 elements (got 2)"),
    (ValueError, lambda: front(start=TWO), "'start' must have 3 elements"),
    (ValueError, lambda: front(root=TWO), "'root' must have 3 elements (got"),
    (
        ValueError,
        lambda: front(cols=TWO, id=TIME),
        "'id' must have 2 elements (got 3)",
    ),
    (
        ValueError,
        lambda: front(edge_time=TIME),
        "'edge_time' and 'column_time' must be given together",
    ),
    (
        ValueError,
        lambda: front(edge_time=TWO, column_time=TIME),
        "'edge_time' must have 3 elements (got 2)",
    ),
    (
        ValueError,
        lambda: front(cum_weight=TIME),
        "'cum_weight' must have 4 elements (got 3)",
    ),
    (TypeError, lambda: front(cum_weight=[1]), "'cum_weight' must be a"),
]

COLUMNS = {
    "sample_columns: 'indptr' must not be empty": lambda: operator(NONE),
    "sample_columns: 'indptr' must be int32 or int64": lambda: operator(
        INDPTR.short()
    ),
    "sample_columns: 'indptr' must ascend from 0 (got 1 and 4)": lambda: (
        operator(INDPTR + 1)
    ),
    "sample_columns: 'indptr' must ascend from 0 (got 0 and -3)": lambda: (
        operator(-INDPTR)
    ),
    "sample_columns: 'indptr' must ascend from 0 to the 3 edges": lambda: (
        operator(torch.tensor([0, 4, 3]))
    ),
    "sample_columns: 'indptr' must be int64 for 3 columns of 1073741824 edg": (
        lambda: operator(INDPTR.int(), 2**30, replace=True)
    ),
    'columns of 2147483647 edges are too many': lambda: operator(
        torch.zeros(2**28 + 2, dtype=torch.int64), 2**31 - 1, replace=True
    ),
    "sample_columns: 'k' must be -1 or more (got -2)": lambda: operator(k=-2),
    "'k' must be less than 2^31 with replacement (got 2147483648)": (
        lambda: operator(k=2**31, replace=True)
    ),
    "sample_columns: 'call_id' must be in [0, 65536) (got -1)": (
        lambda: operator(call_id=-1)
    ),
    "sample_columns: 'relation' must be in [0, 65280) (got 65280)": (
        lambda: operator(options=[0, 65280, 0])
    ),
    'num_threads, relation, last and time_window (got 1 numbers)': (
        lambda: operator(options=[0])
    ),
    "'columns' must be start, root and times of edges and columns (got 3": (
        lambda: operator(columns=[NONE, NONE, TIME])
    ),
    "sample_columns: 'start' must have 3 elements (got 2)": lambda: operator(
        columns=[TWO, NONE]
    ),
    "sample_columns: 'column_time' must have 3 elements (got 0)": lambda: (
        operator(columns=[NONE, NONE, TIME, NONE])
    ),
    "sample_columns: 'key' must be a contiguous": lambda: operator(key=KEY[0]),
    "sample_columns: 'key' must be a contiguous int64 tensor [2, 3]": lambda: (
        operator(ptr=PTR)
    ),
    "sample_columns: 'ptr' must ascend from 0 to 3": lambda: operator(
        ptr=PTR + 1, key=KEYS
    ),
    "sample_columns: 'id' must have 3 elements (got 2)": lambda: operator(
        id=TWO
    ),
    "sample_columns: 'cols' must be in [0, 3), 'indptr' must ascend": lambda: (
        operator(cols=TWO + 1)
    ),
    'be able to count the edges of the sample': lambda: operator(
        torch.tensor([0, 2**62]), -1, cols=torch.zeros(4, dtype=torch.int64)
    ),
    "sample_columns: 'cols' has the wrong dtype": lambda: operator(
        cols=TWO.int()
    ),
    "sample_columns: 'cum_weight' must have 4 elements (got 3)": lambda: (
        operator(cum_weight=TIME)
    ),
    "sample_columns: 'time_window' must not be negative": lambda: operator(
        options=[0, 0, 0, -1]
    ),
}
