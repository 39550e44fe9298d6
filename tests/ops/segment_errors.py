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
        lambda: ops.sample_nodes(3, -1, key=KEY),
        "sample_nodes: 'k' must not be negative (got -1",
    ),
    (
        ValueError,
        lambda: ops.sample_nodes(3, 1, key=KEY[0], ptr=PTR),
        'with rows of (seed, epoch, batch) (got [3])',
    ),
    (
        ValueError,
        lambda: ops.sample_nodes(3, 1, key=KEY, ptr=SEEDS),
        "sample_nodes: 'ptr' must end at 3 (got 2)",
    ),
    (
        ValueError,
        lambda: ops.unique_nodes(SEEDS, ptr=NONE),
        "unique_nodes: 'ptr' must have at least one element",
    ),
    (
        IndexError,
        lambda: ops.unique_nodes(TIME, 3, ptr=torch.tensor([0, 3])),
        "unique_nodes: 'id' must be in [0, 3) (got 3)",
    ),
    (
        ValueError,
        lambda: ops.formats.positive_weights(
            torch.tensor([1.0, -1]), ptr=torch.tensor([0, 2])
        ),
        "'weight' must be finite and not negative (got -1.0 at position 1)",
    ),
    (
        IndexError,
        lambda: ops.slice_rows(
            INDPTR, INDICES, 3, SEEDS + 1, row_ptr=IDS, col_ptr=IDS * 3
        ),
        "slice_rows: 'rows' must be in [0, 3) (got 3)",
    ),
]
