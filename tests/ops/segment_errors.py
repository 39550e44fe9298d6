"""Every message of the fronts of several batches, and a call that raises."""

import torch

from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS, TIME = torch.tensor([0, 2]), torch.tensor([1, 2, 3])
IDS, PTR = torch.arange(2), torch.tensor([0, 1, 3])
NONE = torch.tensor([], dtype=torch.int64)

SEGMENT_ERRORS = [
    (
        ValueError,
        lambda: ops.sample_nodes_segments(3, -1, key=KEY),
        "sample_nodes_segments: 'k' must not be negative (got -1",
    ),
    (
        ValueError,
        lambda: ops.sample_nodes_segments(3, 1, key=KEY[0]),
        'with rows of (seed, epoch, batch) (got [3])',
    ),
    (
        ValueError,
        lambda: ops.sample_nodes_segments(3, 1, key=KEY, ptr=SEEDS),
        "sample_nodes_segments: 'ptr' must end at 3 (got 2)",
    ),
    (
        ValueError,
        lambda: ops.sample_cols(INDPTR, 1, key=KEY, ptr=PTR),
        "'key' must have shape [2, 3], with rows of (seed, epoch, batch)",
    ),
    (
        ValueError,
        lambda: ops.unique_nodes_segments(SEEDS, NONE),
        "unique_nodes_segments: 'ptr' must have at least one element",
    ),
    (
        IndexError,
        lambda: ops.unique_nodes_segments(TIME, torch.tensor([0, 3]), 3),
        "unique_nodes_segments: 'id' must be in [0, 3) (got 3)",
    ),
    (
        ValueError,
        lambda: ops.positive_weights_segments(
            torch.tensor([1.0, -1]), torch.tensor([0, 2])
        ),
        "'weight' must be finite and not negative (got -1.0 at position 1)",
    ),
    (
        IndexError,
        lambda: ops.slice_rows_segments(
            INDPTR, INDICES, 3, SEEDS + 1, IDS, None, IDS * 3
        ),
        "slice_rows_segments: 'rows' must be in [0, 3) (got 3)",
    ),
]
