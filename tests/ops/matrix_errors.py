"""Every message of the operators of matrices, and a call that raises it."""

import torch

from torch_gsample.rng import make_key

GSAMPLE = torch.ops.gsample
KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])
TIME = torch.tensor([1, 2, 3])
NONE = torch.tensor([], dtype=torch.int64)
PTR, ROW_PTR = torch.tensor([0, 1, 3]), torch.tensor([0, 1, 2])
KEYS = KEY.repeat(2, 1)


def sample_nodes(num_nodes=3, k=1, call_id=0, **kw):
    return GSAMPLE.sample_nodes(num_nodes, k, KEY, call_id, **kw)


def slice_cols(cols=SEEDS, indptr=INDPTR, indices=INDICES):
    return GSAMPLE.slice_cols(indptr, indices, cols)


def slice_rows(rows=SEEDS, indptr=INDPTR, indices=INDICES, cols=None):
    return GSAMPLE.slice_rows(indptr, indices, 3, rows, cols)


def slice_segments(
    row_ptr=ROW_PTR, cols=None, col_ptr=None, whole=True, indptr=INDPTR
):
    col_ptr = torch.tensor([0, 3, 6]) if col_ptr is None else col_ptr
    return GSAMPLE.slice_rows(
        indptr, INDICES, 3, SEEDS, cols, row_ptr, col_ptr, whole
    )


def has_edges(ptr=INDPTR, rows=INDICES, cols=None, indptr=INDPTR, **kw):
    return GSAMPLE.has_edges(indptr, INDICES, ptr, rows, cols, **kw)


def last(
    cols=SEEDS, indptr=INDPTR, k=1, time=TIME, until=SEEDS, edge_id=None, **kw
):
    return GSAMPLE.last_neighbors(
        indptr, INDICES, time, cols, until, k, edge_id, **kw
    )


def sample_segments(num_nodes=3, k=1, **kw):
    return GSAMPLE.sample_nodes(num_nodes, k, KEYS, ptr=PTR, **kw)


MATRICES = {
    "last_neighbors: 'indptr' must not be empty": lambda: last(indptr=NONE),
    "last_neighbors: 'k' must not be negative (got -1)": lambda: last(k=-1),
    "last_neighbors: 'k' must be less than 576460752303423487": lambda: last(
        k=2**62
    ),
    "last_neighbors: 'time_window' must not be negative": lambda: last(
        time_window=-1
    ),
    "last_neighbors: 'edge_id' has the wrong dtype": lambda: last(
        edge_id=TIME.float()
    ),
    "last_neighbors: 'edge_id' must have 3 elements (got 2)": lambda: last(
        edge_id=SEEDS
    ),
    "last_neighbors: 'edge_time' must have 3 elements (got 2)": lambda: last(
        time=SEEDS
    ),
    "last_neighbors: 'until' must have 2 elements (got 3)": lambda: last(
        until=TIME
    ),
    "last_neighbors: 'cols' must be in [-1, 3) (got 3 at position 1)": (
        lambda: last(SEEDS + 1)
    ),
    "last_neighbors: 'indptr' must ascend from 0 to the number of edges": (
        lambda: last(indptr=-INDPTR)
    ),
    "slice_cols: 'indptr' must not be empty": lambda: slice_cols(indptr=NONE),
    "slice_cols: 'cols' must be in [0, 3), 'indptr' must ascend from 0": (
        lambda: slice_cols(SEEDS + 1)
    ),
    'and be able to count the edges of the slice': lambda: slice_cols(
        SEEDS, -INDPTR
    ),
    "slice_cols: 'cols' has the wrong dtype": lambda: slice_cols(SEEDS.int()),
    "slice_cols: 'indptr' and 'indices' must be int32 or int64, and": (
        lambda: slice_cols(indptr=INDPTR.int())
    ),
    "mask_columns: 'indptr' must not be empty": lambda: GSAMPLE.mask_columns(
        NONE, INDICES > 0
    ),
    "mask_columns: 'indptr' must ascend from 0 to the 3 elements": (
        lambda: GSAMPLE.mask_columns(INDPTR.flip(0), INDICES > 0)
    ),
    "of 'mask'": lambda: GSAMPLE.mask_columns(INDPTR, INDICES[:2] > 0),
    "mask_columns: 'mask' has the wrong dtype": (
        lambda: GSAMPLE.mask_columns(INDPTR, INDICES)
    ),
    "has_edges: 'cols' must be in [0, 3), all rows in [0, 9223": (
        lambda: has_edges(cols=torch.tensor([0, 1, 3]))
    ),
    "all rows in [0, 2), and 'indptr' and 'ptr' must ascend from 0 to": (
        lambda: has_edges(num_rows=2)
    ),
    "has_edges: 'ptr' must have 4 elements (got 3)": lambda: has_edges(
        ptr=INDPTR[:3]
    ),
    "has_edges: 'ptr' has the wrong dtype": lambda: has_edges(INDPTR.int()),
    "has_edges: 'rows' has the wrong dtype": lambda: has_edges(
        rows=INDICES.int()
    ),
    "the numbers of edges and of 'rows'": lambda: has_edges(
        indptr=torch.tensor([0, 2, 1, 3])
    ),
    "'indptr' and 'ptr' must ascend from 0 to the numbers of": lambda: (
        has_edges(ptr=torch.tensor([0, 2, 1, 3]))
    ),
    "has_edges: 'indptr' must not be empty": lambda: has_edges(indptr=NONE),
    "slice_rows: 'indptr' must not be empty": lambda: slice_rows(indptr=NONE),
    "slice_rows: 'cols' must be in [0, 3), 'indptr' must ascend from 0": (
        lambda: slice_rows(indptr=INDPTR + 1)
    ),
    "'indptr' must ascend from 0 to the number of edges and be able": lambda: (
        slice_rows(cols=SEEDS + 1)
    ),
    "slice_rows: 'cols' has the wrong dtype": lambda: slice_rows(
        cols=SEEDS.int()
    ),
    "slice_rows: 'rows' must be in [0, 3) (got -1 at position 0)": (
        lambda: slice_rows(SEEDS - SEEDS[0] - 1)
    ),
    "slice_rows: 'rows' must be a contiguous vector": lambda: slice_rows(
        torch.arange(4)[::2]
    ),
    "sample_nodes: 'cum_weight' must have 9223372036854775807 elements": (
        lambda: sample_nodes(2**63 - 1, cum_weight=TIME)
    ),
    "'num_nodes' must not be negative": lambda: sample_nodes(-1),
    "sample_nodes: 'k' must be in [0, 2^31) (got -1)": lambda: sample_nodes(
        k=-1
    ),
    "'k' must be in [0, 2^31) (got 2147483648)": lambda: sample_nodes(k=2**31),
    "sample_nodes: 'call_id' must be in [0, 65536) (got 65536)": lambda: (
        sample_nodes(call_id=65536)
    ),
    "sample_nodes: 'cum_weight' must have 4 elements (got 3)": lambda: (
        sample_nodes(cum_weight=TIME)
    ),
    "unique_nodes: 'id' must be in [0, 3)": lambda: GSAMPLE.unique_nodes(
        TIME, 3
    ),
    "unique_nodes: 'num_nodes' must not be negative": lambda: (
        GSAMPLE.unique_nodes(NONE, -1)
    ),
    "unique_nodes: 'id' has the wrong dtype": lambda: GSAMPLE.unique_nodes(
        TIME.short(), 3
    ),
    "positive_weights: 'weight' must be finite and not negative": lambda: (
        GSAMPLE.positive_weights(torch.tensor([1.0, -1.0]))
    ),
    "positive_weights: 'weight' has the wrong dtype": lambda: (
        GSAMPLE.positive_weights(TIME)
    ),
    "random_uniform: 'call_id' must be in [0, 65536) (got 65536)": lambda: (
        GSAMPLE.random_uniform(TIME, KEY, 65536)
    ),
    "slice_rows: 'col_ptr' must have as many elements as 'row": (
        lambda: slice_segments(col_ptr=PTR[:2])
    ),
    "slice_rows: 'row_ptr' must ascend from 0 to 2": lambda: slice_segments(
        row_ptr=PTR
    ),
    "slice_rows: 'cols' must not be given for parts of a": lambda: (
        slice_segments(cols=SEEDS, whole=False)
    ),
    "slice_rows: 'col_ptr' must assign all columns to each batch": (
        lambda: slice_segments(col_ptr=torch.tensor([0, 2, 6]))
    ),
    "slice_rows: 'cols' must be in [0, 3), 'indptr' must": lambda: (
        slice_segments(cols=SEEDS + 1, col_ptr=ROW_PTR)
    ),
    "'indptr' must ascend from 0 to the number of edges and be able to co": (
        lambda: slice_segments(indptr=INDPTR + 1)
    ),
    'from 0 to the number of edges and be able to count': lambda: (
        slice_segments(indptr=-INDPTR)
    ),
    "sample_nodes: 'ptr' must ascend from 0 to 2": lambda: sample_segments(2),
    "sample_nodes: 'cum_weight' must have 4 elements (got 2)": (
        lambda: sample_segments(cum_weight=SEEDS)
    ),
    "unique_nodes: 'ptr' must ascend from 0 to 2": lambda: (
        GSAMPLE.unique_nodes(SEEDS, 3, ptr=PTR)
    ),
    "positive_weights: 'ptr' must ascend from 0 to 2": lambda: (
        GSAMPLE.positive_weights(torch.ones(2), PTR)
    ),
    "slice_rows: 'row_ptr' and 'col_ptr' must be given together": lambda: (
        GSAMPLE.slice_rows(INDPTR, INDICES, 3, SEEDS, row_ptr=ROW_PTR)
    ),
    "next_key: 'state' must have 1 elements (got 3)": lambda: GSAMPLE.next_key(
        TIME
    ),
}
