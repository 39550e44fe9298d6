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


def sample_cols(indptr=INDPTR, k=1, key=KEY, call_id=0, **kw):
    return GSAMPLE.sample_cols(indptr, k, key, call_id, **kw)


def sample_hops(
    seeds=SEEDS,
    indptr=INDPTR,
    indices=INDICES,
    fanouts=(2, 2),
    call_id=(0, 1),
    **kw,
):
    keys = [KEY] * 2
    return GSAMPLE.sample_hops(
        indptr, indices, seeds, fanouts, keys, call_id, **kw
    )


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
    return GSAMPLE.slice_rows_segments(
        indptr, INDICES, 3, SEEDS, row_ptr, cols, col_ptr, whole
    )


def sample_segments(num_nodes=3, k=1, **kw):
    return GSAMPLE.sample_nodes_segments(num_nodes, k, KEYS, ptr=PTR, **kw)


MATRICES = {
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
    "slice_rows: 'rows' must be a contiguous vector": lambda: slice_rows(
        torch.arange(4)[::2]
    ),
    "sample_cols: 'indptr' must not be empty": lambda: sample_cols(NONE),
    "sample_cols: 'indptr' must be int32 or int64": lambda: sample_cols(
        INDPTR.short()
    ),
    "sample_cols: 'indptr' must ascend from 0": lambda: sample_cols(-INDPTR),
    "'indptr' must ascend from 0 to the number of edges": lambda: sample_cols(
        torch.tensor([0, 3, 2])
    ),
    "sample_cols: 'indptr' must be int64 for 3 columns of 1073741824 edges": (
        lambda: sample_cols(INDPTR.int(), 2**30, replace=True)
    ),
    "'k' must be -1 or more (got -2)": lambda: sample_cols(k=-2),
    "'k' must be less than 2^31 with replacement (got 2147483648)": (
        lambda: sample_cols(k=2**31, replace=True)
    ),
    "sample_cols: 'call_id' must be in [0, 65536) (got -1)": (
        lambda: sample_cols(call_id=-1)
    ),
    "sample_cols: 'key' must be a contiguous": lambda: sample_cols(key=KEY[0]),
    "sample_cols: 'id' must have 3 elements (got 2)": lambda: sample_cols(
        id=SEEDS
    ),
    "sample_cols: 'cols' must be in [0, 3), 'indptr' must ascend": lambda: (
        sample_cols(cols=SEEDS + 1)
    ),
    "sample_cols: 'cols' has the wrong dtype": lambda: sample_cols(
        cols=SEEDS.int()
    ),
    "sample_nodes: 'cum_weight' must have 9223372036854775807 elements": (
        lambda: sample_nodes(2**63 - 1, cum_weight=TIME)
    ),
    "sample_cols: 'cum_weight' must have 4 elements (got 3)": lambda: (
        sample_cols(cum_weight=TIME)
    ),
    "sample_hops: 'seeds' must be nodes of the graph (got 3 at": lambda: (
        sample_hops(SEEDS + 1)
    ),
    "sample_hops: 'indptr' must ascend from 0 to the 3 edges (it": lambda: (
        sample_hops(indptr=torch.tensor([0, 4, 2, 3]))
    ),
    "sample_hops: 'indices' must be in [0, 3) (they are not near": lambda: (
        sample_hops(indices=INDICES + 1)
    ),
    "'key' and 'call_id' must have one item for each of 2 hops (got 2": (
        lambda: sample_hops(call_id=[0])
    ),
    "'frontier' must be 0 for 'row', 1 for 'nodes', 2 for 'new' or 3 f": (
        lambda: sample_hops(frontier=4)
    ),
    "'fanouts' must be -1 or more, and less than 2^31 with replacement": (
        lambda: sample_hops(fanouts=[2, 2**31], replace=True)
    ),
    'a hop has 6442450941 edges or nodes, more than it can count': lambda: (
        sample_hops(
            torch.zeros(3, dtype=torch.int64),
            INDPTR.int(),
            INDICES.int(),
            [2**31 - 1] * 2,
            replace=True,
        )
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
    "sample_cols: 'ptr' must ascend from 0 to 3": lambda: sample_cols(
        ptr=PTR + 1, key=KEYS
    ),
    "sample_cols: 'key' must be a contiguous int64 tensor [2, 3]": lambda: (
        sample_cols(ptr=PTR)
    ),
    "slice_rows_segments: 'col_ptr' must have as many elements as 'row": (
        lambda: slice_segments(col_ptr=PTR[:2])
    ),
    "slice_rows_segments: 'row_ptr' must ascend from 0 to 2": lambda: (
        slice_segments(row_ptr=PTR)
    ),
    "slice_rows_segments: 'cols' must not be given for parts of a": lambda: (
        slice_segments(cols=SEEDS, whole=False)
    ),
    "slice_rows_segments: 'col_ptr' must give each batch all columns": (
        lambda: slice_segments(col_ptr=torch.tensor([0, 2, 6]))
    ),
    "slice_rows_segments: 'cols' must be in [0, 3), 'indptr' must ascend": (
        lambda: slice_segments(cols=SEEDS + 1, col_ptr=ROW_PTR)
    ),
    "'indptr' must ascend from 0 to the number of edges and be able to co": (
        lambda: slice_segments(indptr=INDPTR + 1)
    ),
    'and be able to count the edges of the slices': lambda: slice_segments(
        indptr=-INDPTR
    ),
    "sample_nodes_segments: 'num_nodes' must not be negative": lambda: (
        sample_segments(-1)
    ),
    "sample_nodes_segments: 'k' must be in [0, 2^31) (got -1)": lambda: (
        sample_segments(k=-1)
    ),
    "sample_nodes_segments: 'ptr' must ascend from 0 to 2": lambda: (
        sample_segments(2)
    ),
    "sample_nodes_segments: 'cum_weight' must have 4 elements (got 2)": (
        lambda: sample_segments(cum_weight=SEEDS)
    ),
    "unique_nodes_segments: 'id' must be in [0, 3)": lambda: (
        GSAMPLE.unique_nodes_segments(TIME, PTR, 3)
    ),
    "unique_nodes_segments: 'num_nodes' must not be negative": lambda: (
        GSAMPLE.unique_nodes_segments(TIME, PTR, -1)
    ),
    "unique_nodes_segments: 'ptr' must ascend from 0 to 2": lambda: (
        GSAMPLE.unique_nodes_segments(SEEDS, PTR, 3)
    ),
    "unique_nodes_segments: 'id' has the wrong dtype": lambda: (
        GSAMPLE.unique_nodes_segments(TIME.short(), PTR, 3)
    ),
    "positive_weights_segments: 'weight' must be finite and not neg": lambda: (
        GSAMPLE.positive_weights_segments(-TIME.float(), PTR)
    ),
    "next_key: 'state' must have 1 elements (got 3)": lambda: GSAMPLE.next_key(
        TIME
    ),
}
