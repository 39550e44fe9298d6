"""Every message of layers, of wrapper and operator, and what raises it."""

import torch

from tests.ops.layers import sample_typed_layers, typed_call
from tests.ops.neighbors import make_graph
from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])


def layers(fanouts=((1,),), key=(KEY,), seeds=SEEDS, **kw):
    return sample_typed_layers(
        [INDPTR], [INDICES], [(0, 0)], [3], [seeds], fanouts, key=key, **kw
    )


HOPS_ERRORS = [
    (
        ValueError,
        lambda: layers(frontier='all'),
        "'frontier' must be one of row, nodes, new, unseen, edges, walk",
    ),
    (IndexError, lambda: layers(seeds=SEEDS + 1), '[0, 3) (got 3 at posit'),
    (ValueError, lambda: layers([]), 'for each of 1 relations (got [])'),
    (
        ValueError,
        lambda: layers([[1, 2]]),
        "sample_layers: 'key' must have 2 items, one for each hop, or 2, one",
    ),
    (
        ValueError,
        lambda: layers(call_id=[]),
        "'call_id' must have 1 items, one for each key (got 0)",
    ),
    (TypeError, lambda: layers(key=[None]), "'key' must be an int64 tensor"),
    (
        ValueError,
        lambda: layers(edge_time=[INDICES], seed_time=[SEEDS]),
        "sample_layers: temporal sampling needs 'disjoint=True'",
    ),
    (ValueError, lambda: layers(time_window=-1), "'time_window' must not be"),
    (
        ValueError,
        lambda: ops.sample_layer_batches(
            make_graph([INDPTR], [INDICES], [(0, 0)], [3]),
            *([SEEDS], [1], [KEY]),
            sampling=ops.Sampling(disjoint=True),
        ),
        "sample_layers: 'disjoint' must be False for several batches (got Tr",
    ),
]


def operator(
    indptr=INDPTR,
    indices=INDICES,
    src=(0,),
    num_nodes=(3,),
    seeds=(SEEDS,),
    fanouts=(2, 2),
    key=(KEY, KEY),
    call_id=(0, 1),
    **kw,
):
    args, options = typed_call(
        *([indptr], [indices], src, [0], num_nodes, seeds, fanouts),
        *([], [], [], key, call_id),
        **kw,
    )
    return torch.ops.gsample.sample_layers(*args, **options)


def typed_operator(**options):
    """Two relations, each with a key of its own."""
    args, options = typed_call(
        *([INDPTR] * 2, [INDICES] * 2, [0, 0], [0, 0], [3], [SEEDS]),
        *([2, 2], [], [], [], [KEY] * 2, [0, 1]),
        **options,
    )
    return torch.ops.gsample.sample_layers(*args, **options)


LAYERS = {
    "sample_layers: 'seeds' must be in [0, 3) (got 3 at pos": lambda: operator(
        seeds=[SEEDS + 1]
    ),
    "sample_layers: 'indptr' must ascend from 0 to the 3 edg": lambda: (
        operator(torch.tensor([0, 4, 2, 3]))
    ),
    "sample_layers: 'indptr' must have 4 elements (got 3)": lambda: operator(
        INDPTR[:3]
    ),
    "sample_layers: 'indices' must be in [0, 3) (they are no": lambda: (
        operator(indices=INDICES + 1)
    ),
    "sample_layers: 'ends' must name one of 1 node types (go": lambda: (
        operator(src=[1])
    ),
    "sample_layers: 'key' and 'call_id' must have one item": lambda: operator(
        key=[KEY]
    ),
    "sample_layers: 'key' must be a contiguous int64 tensor": lambda: operator(
        key=[KEY, KEY[0]]
    ),
    "sample_layers: 'call_id' must be in [0, 65536) (got -1)": lambda: (
        operator(call_id=[0, -1])
    ),
    "sample_layers: 'fanouts' must be -1 or more, and less t": lambda: (
        operator(fanouts=[-2, 0])
    ),
    "sample_layers: 'fanouts' must be -1 or more, and less than 2^": lambda: (
        operator(fanouts=[2, 2**31], replace=True)
    ),
    "'frontier' must be 0 for 'row', 1 for 'nodes', 2 for 'new', 3 for": (
        lambda: operator(frontier=6)
    ),
    "sample_layers: the frontier 'walk' needs 'fanouts' of 1 (got 2)": (
        lambda: operator(frontier=5)
    ),
    "sample_layers: frontiers but 'row' and 'nodes' need one node": (
        lambda: operator(frontier=2, disjoint=True)
    ),
    "sample_layers: frontiers but 'row' and 'nodes' need one no": (
        lambda: operator(
            num_nodes=[3, 0], seeds=[SEEDS, SEEDS[:0]], frontier=3
        )
    ),
    "sample_layers: 'sorted' needs distinct columns and no trees": (
        lambda: operator(sorted=True, disjoint=True)
    ),
    "sample_layers: 'sorted' needs distinct columns and no tre": (
        lambda: operator(sorted=True, frontier=4)
    ),
    "sample_layers: trees need one 'key' for each hop": lambda: typed_operator(
        disjoint=True
    ),
    'sample_layers: a hop has 6442450941 edges or nodes, mor': lambda: (
        operator(
            INDPTR.int(),
            INDICES.int(),
            seeds=[torch.zeros(3, dtype=torch.int64)],
            fanouts=[2**31 - 1] * 2,
            replace=True,
        )
    ),
    "sample_layers: 'ptr' must ascend from 0 to 2": lambda: operator(
        ptr=[torch.tensor([0, 3, 2])], key=[KEY.repeat(2, 1)] * 2
    ),
    "sample_layers: 'ptr' must have one item for each node type": lambda: (
        operator(ptr=[])
    ),
    "sample_layers: 'ptr' must have an element more than batches, of which": (
        lambda: operator(ptr=[SEEDS[:1]])
    ),
    "sample_layers: 'ptr' and 'disjoint' must not be given together": lambda: (
        operator(ptr=[torch.tensor([0, 2])], disjoint=True)
    ),
    "sample_layers: 'key' must be a contiguous int64 tensor [2, 3]": lambda: (
        operator(ptr=[torch.tensor([0, 1, 2])])
    ),
    'sample_layers: too many seeds (2)': lambda: operator(
        num_nodes=[3, 2**62], seeds=[SEEDS, SEEDS[:0]], disjoint=True
    ),
}
