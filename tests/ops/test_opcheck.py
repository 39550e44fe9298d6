"""The operators under PyTorch's compiler."""

import pytest
import torch

from tests.ops import edge_map_errors as kernels
from tests.ops import sample_by_kernel_errors as sampled
from tests.ops import vertex_map_errors as vertices
from tests.ops.compare import operator_names
from tests.ops.layers import plain_call, typed_call
from tests.ops.vertex_map_errors import (
    by_type_arguments,
    vertex_unit_arguments,
)
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import INDEX_DTYPES, small_graph, to_dtypes
from torch_gsample.vertex.kernels.relations import Level

G = small_graph('random')
ENDS = torch.stack([G.indices, G.col()])
STAR = small_graph('star')
KEY = make_key(3, 1, 4)
SEEDS = torch.tensor([3, 39, 3])
NONE = torch.tensor([], dtype=torch.int64)
WEIGHT = ops.cumulate_weights(G.indptr, torch.arange(400) % 5)
TIME = torch.zeros(400, dtype=torch.int64)
SEED_TIME = torch.tensor([0, -1, 5])
TIMES = {'seed_time': [SEED_TIME], 'disjoint': True}

PTR, KEYS = torch.tensor([0, 1, 3]), KEY.repeat(2, 1)
TWICE = torch.tensor([0, 40, 80])

CSC = G.indptr, G.indices
OTHER = STAR.indptr, STAR.indices
SAMPLE = [*CSC], [0, 0], [40], [SEEDS], [3, 2], KEY
TYPED = (
    [*CSC, *OTHER],
    [0, 0, 0, 1],
    [40, 10],
    [SEEDS, torch.tensor([0])],
    [2, 1, 3, 3],
    KEY,
)
HETERO = (
    [G.indptr, STAR.indptr],
    [G.indices, STAR.indices],
    [0, 0],
    [0, 1],
    [40, 10],
    [SEEDS, torch.tensor([0])],
    [2, 1, 3, 3],
)
TWO_HOPS = [KEY, KEY], [0, 1]
NEGATIVE = (SEEDS, 10, True, KEY)
ROWS = torch.arange(12.0).view(3, 4).requires_grad_()
MATRICES = torch.arange(60.0).view(5, 4, 3).requires_grad_()
TURNED = MATRICES.detach()[:, 2:].transpose(1, 2).requires_grad_()
TYPE = torch.tensor([1, 1, 4])
#: Edges from three sources to two destinations.
BY_TYPE = [torch.tensor([[0, 2, 2], [1, 0, 0]])], TYPE, [3, 2], 0

# Arguments of each operator: several sets of (positional, by name).
SAMPLES = {
    'coo_to_csc': [
        ((G.indices, G.col(), 40, False, False), {}),
        ((G.indices.int(), G.col().int(), 40, True, False), {}),
        ((NONE, NONE, 0, True, True), {}),
    ],
    'sort_edges': [((ENDS, 40, 40, loops), {}) for loops in range(3)]
    + [((torch.zeros(2, 0).int(), 2, 0, 2), {})],
    'transpose_columns': [((G.indptr.int(), G.indices.int(), None, 40), {})],
    'check_csc': [
        ((G.indptr, G.indices, 40), {}),
        ((G.indptr, G.indices, 3), {}),
    ],
    'cumulate_weights': [
        ((G.indptr, torch.ones(400)), {}),
        ((G.indptr.int(), torch.ones(400).double()), {}),
    ],
    'advise_huge_pages': [((torch.zeros(10),), {})],
    'sample_neighbors': [
        (SAMPLE, {}),
        ((*SAMPLE[:4], [], KEY, 7), {'return_edge_id': False}),
        (
            ([*CSC, WEIGHT, NONE], *SAMPLE[1:]),
            {'replace': True, 'disjoint': True},
        ),
        (
            ([*CSC, NONE, TIME], *SAMPLE[1:]),
            {**TIMES, 'time_window': 3, 'last': True},
        ),
        ((*SAMPLE[:3], [NONE], [-1], KEY), {'num_threads': 1}),
        (TYPED, {}),
        (
            ([*CSC, WEIGHT, NONE, *OTHER, NONE, NONE], *TYPED[1:], 2),
            {'disjoint': True},
        ),
        (
            ([*CSC, NONE, TIME, *OTHER, NONE, NONE], *TYPED[1:]),
            {'disjoint': True, 'seed_time': [SEED_TIME, SEEDS[:1]]},
        ),
        (([], [], [5], [SEEDS * 0], [], KEY), {}),
        # Padded:
        (SAMPLE, {'max_edges': [60]}),
        (
            SAMPLE,
            {'max_edges': [50], 'disjoint': True, 'return_edge_id': False},
        ),
        (TYPED, {'max_edges': [60, 50]}),
        (([], [], [5], [SEEDS * 0], [], KEY), {'max_edges': []}),
        # Batches:
        ((*SAMPLE[:5], KEYS), {'seed_ptr': [PTR]}),
        (
            ([*CSC, NONE, TIME], *SAMPLE[1:5], KEYS),
            {**TIMES, 'seed_ptr': [PTR]},
        ),
        ((*TYPED[:5], KEYS), {'seed_ptr': [PTR, torch.tensor([0, 0, 1])]}),
    ]
    + [
        (([g.indptr, g.indices], *SAMPLE[1:]), {})
        for g in (to_dtypes(G, dtypes) for dtypes in INDEX_DTYPES)
    ],
    'sample_layers': [
        typed_call(*HETERO, [], [], [], *TWO_HOPS),
        typed_call(
            *(*HETERO, [WEIGHT, NONE], [], [], [KEY, KEY], [2, 2]),
            disjoint=True,
            return_frontier=True,
            frontier=0,
        ),
        typed_call(
            *(*HETERO, [], [TIME, NONE], [SEED_TIME, SEEDS[:1]], *TWO_HOPS),
            disjoint=True,
            replace=True,
        ),
        typed_call(
            *(*HETERO, [], [], [], [KEY] * 4, [0, 1, 2, 3]),
            sorted=True,
        ),
        (([], [], [5], [SEEDS * 0], [], [], []), {}),
        plain_call(
            *(G.indptr, G.indices, SEEDS, [2, 2], *TWO_HOPS), frontier=4
        ),
        plain_call(
            *(G.indptr, G.indices, SEEDS, [1, 1], *TWO_HOPS),
            frontier=5,
            return_frontier=True,
        ),
        plain_call(G.indptr, G.indices, SEEDS, [3, 2], *TWO_HOPS),
        plain_call(
            *(G.indptr, G.indices, NONE, [3], [KEY], [4]),
            return_frontier=True,
            frontier=3,
        ),
        plain_call(
            *(G.indptr, G.indices, SEEDS, [2, -1], [KEY, KEY], [1, 1]),
            cum_weight=WEIGHT,
            replace=True,
            frontier=0,
        ),
        # Batches:
        plain_call(
            *(G.indptr, G.indices, SEEDS, [2, 2], [KEYS, KEYS], [0, 1]),
            ptr=[PTR],
            return_frontier=True,
        ),
        typed_call(
            *(*HETERO, [], [], [], [KEYS] * 4, [0, 1, 2, 3]),
            ptr=[PTR, torch.tensor([0, 0, 1])],
            frontier=0,
        ),
    ],
    'last_neighbors': [
        ((*CSC, TIME, SEEDS, SEED_TIME, 3), {}),
        ((*CSC, TIME, SEEDS, SEED_TIME, 3), {'return_edge': False}),
        (
            (G.indptr.int(), G.indices.int(), TIME, NONE, NONE, 0, TIME.int()),
            {'time_window': 3, 'ascending': True},
        ),
    ],
    'induce_subgraph': [
        ((G.indptr, G.indices, 40, SEEDS, SEEDS), {}),
        ((G.indptr, G.indices, 40, SEEDS, SEEDS[:1], SEEDS, SEEDS[:1]), {}),
        ((G.indptr.int(), G.indices.int(), 40, NONE, NONE), {}),
    ],
    'negative_sample': [
        (NEGATIVE, {}),
        ((*NEGATIVE, 5), {'cum_weight': torch.arange(11)}),
        (
            NEGATIVE,
            {
                'anchor': SEEDS * 0,
                'indptr': STAR.indptr,
                'indices': STAR.indices,
            },
        ),
    ],
    'slice_cols': [
        ((g.indptr, g.indices, SEEDS), {})
        for g in (to_dtypes(G, dtypes) for dtypes in INDEX_DTYPES)
    ]
    + [((G.indptr, G.indices, NONE), {'num_threads': 1})],
    'mask_columns': [
        ((G.indptr.to(dtype), G.indices % 3 > 0), {})
        for dtype in (torch.int32, torch.int64)
    ],
    'slice_rows': [
        ((g.indptr, g.indices, 40, SEEDS), {})
        for g in (to_dtypes(G, dtypes) for dtypes in INDEX_DTYPES)
    ]
    + [
        ((G.indptr, G.indices, 40, NONE), {'num_threads': 1}),
        ((G.indptr, G.indices, 40, SEEDS, SEEDS[:1]), {}),
    ],
    'has_edges': [
        ((g.indptr, g.indices, g.indptr, g.indices), {})
        for g in (to_dtypes(G, dtypes) for dtypes in INDEX_DTYPES)
    ]
    + [
        ((G.indptr, G.indices, PTR, SEEDS, SEEDS[:2]), {'num_rows': 40}),
    ],
    'match_edges': [
        ((g.indptr, g.indices, 40, G.indptr, G.indices, 40), {})
        for g in (to_dtypes(G, dtypes) for dtypes in INDEX_DTYPES)
    ],
    'sample_columns': [
        ((G.indptr, 3, KEY), {}),
        ((G.indptr.int(), -1, KEY, 2), {'id': torch.arange(40) % 3}),
        ((G.indptr, 3, KEY), {'cum_weight': WEIGHT, 'replace': True}),
        ((torch.tensor([0]), 3, KEY), {'options': [1, 0, 0]}),
        ((G.indptr, 3, KEY), {'cols': SEEDS, 'id': SEEDS + 1}),
        ((G.indptr, 3, KEYS), {'cols': SEEDS, 'ptr': PTR}),
        (
            (torch.tensor([0]), 3, KEY, 2),
            {'id': NONE, 'columns': [NONE, NONE], 'options': [1, 1, 0]},
        ),
        (
            (G.indptr, -1, KEY),
            {
                'cum_weight': WEIGHT,
                'columns': [*[torch.arange(40)] * 2, TIME, torch.arange(40)],
                'options': [0, 0, 1, 3],
            },
        ),
    ],
    'sample_nodes': [
        ((40, 3, KEY), {}),
        ((0, 3, KEY, 2), {'replace': True, 'device_of': NONE}),
        ((10, 10, KEY), {'cum_weight': torch.arange(11)}),
        ((40, 3, KEYS), {'replace': True}),
        ((3, 2, KEYS, 1), {'ptr': PTR, 'cum_weight': torch.arange(4)}),
    ],
    'unique_nodes': [
        ((SEEDS, 40), {}),
        ((NONE, 0), {}),
        ((SEEDS.int(), 40, True), {}),
        ((SEEDS, 40, False, PTR), {}),
        ((SEEDS.int(), 40, True, PTR), {}),
        ((NONE, 0, False, torch.zeros(1, dtype=torch.int64)), {}),
    ],
    'positive_weights': [
        ((torch.rand(9),), {}),
        ((torch.zeros(4),), {}),
        ((torch.rand(3), PTR), {}),
        ((torch.zeros(3).double(), PTR), {}),
    ],
    'random_uniform': [((SEEDS, KEY), {}), ((NONE, KEY, 7), {})],
    'labor_scale': [
        ((G.indptr, torch.rand(400).double() + 0.1, 3), {}),
        ((torch.tensor([0]), torch.zeros(0).double(), 1), {}),
        (
            (
                *(G.indptr, torch.rand(400).double() + 0.1, 3),
                torch.rand(400).double() + 0.1,
            ),
            {},
        ),
    ],
    'sum_columns': [
        ((G.indptr, torch.rand(400, requires_grad=True)), {}),
        ((G.indptr.int(), torch.rand(400, 3), torch.arange(400).flip(0)), {}),
        ((torch.tensor([0]), torch.zeros(0, 2).double()), {}),
    ],
    'next_key': [((torch.zeros(1, dtype=torch.int64),), {})],
    'random_walk': [
        ((G.indptr, G.indices, SEEDS, 4, KEY), {}),
        ((G.indptr, G.indices, SEEDS, 0, KEY, 3), {'cum_weight': WEIGHT}),
        (
            (G.indptr.int(), G.indices.int(), NONE, 2, KEY),
            {'restart': 0.5, 'num_threads': 1},
        ),
    ],
    'node2vec_walk': [
        ((G.indptr, G.indices, SEEDS, 4, 2.0, 0.5, KEY), {}),
        (
            (G.indptr, G.indices.int(), SEEDS, 3, 1.0, 0.1, KEY, 1),
            {'cum_weight': WEIGHT, 'ascending': G.indices.int()},
        ),
    ],
    'metapath_walk': [
        (([G.indptr], [G.indices], [0, 0, 0], SEEDS, KEY), {}),
        (
            ([G.indptr] * 2, [G.indices] * 2, [1, 0], NONE, KEY, 2),
            {'restart': 0.1},
        ),
    ],
    'frontier_walk': [
        ((G.indptr, G.indices, SEEDS, 9, KEY), {}),
        ((G.indptr, G.indices, NONE, 2, KEY, 3), {}),
    ],
    'forest_fire': [
        ((G.indptr, G.indices, SEEDS, 0.4, KEY), {}),
        ((G.indptr.int(), G.indices.int(), NONE, 0.4, KEY, 3), {}),
    ],
    'gather_rows': [
        ((torch.rand(40, 3), SEEDS), {}),
        ((torch.rand(40, 2, 2, requires_grad=True), SEEDS), {}),
        ((torch.arange(40), NONE), {'num_threads': 1}),
        ((torch.rand(40, 3).half(), SEEDS), {'widen': True}),
        ((torch.ones(40, 3).char(), SEEDS, torch.rand(40)), {}),
    ],
    'sample_by_kernel': [
        (sampled.arguments(n), {'before': sampled.BEFORE[:n]}) for n in (4, 0)
    ],
    'run_kernel': [
        (
            (
                kernels.PRODUCT.loaded.number,
                [kernels.X, kernels.X, kernels.ROW, kernels.X, kernels.INDPTR],
            ),
            {},
        ),
        (
            (kernels.ROWS.loaded.number, [kernels.X, kernels.ROW]),
            {'num_rows': 5, 'num_threads': 1},
        ),
        (
            (
                *(vertices.KERNEL, vertices.OPERANDS, vertices.INDPTR),
                *(vertices.INDICES, vertices.EDGES, vertices.ORDER, 2, 4),
            ),
            {},
        ),
    ],
    'vertex_unit': [
        (vertex_unit_arguments(wanted), {}) for wanted in (False, True)
    ]
    + [
        (by_type_arguments(wanted, level), {})
        for wanted in (False, True)
        for level in (Level.INNER, Level.OUTER)
    ],
    'vertex_relations': [
        (([torch.stack([SEEDS, SEEDS * 0])], SEEDS.int(), 40, 40, 0), {}),
        ((list(CSC), torch.arange(400) % 5, 40, 40, 1), {}),
        (([torch.stack([NONE, NONE])], NONE, 0, 0, 0), {}),
    ],
    'product_by_type': [
        ((ROWS, MATRICES, TYPE), {}),
        ((ROWS.detach(), MATRICES.detach(), TYPE), {}),
        ((ROWS.view(3, 4, 1).expand(3, 4, 3), TURNED, TYPE), {}),
        ((ROWS[:0], MATRICES, NONE), {}),
    ],
    'sum_outer_by_type': [
        ((ROWS, ROWS[:, :3], TYPE, 5), {}),
        ((ROWS[:0], ROWS[:0], NONE, 0), {}),
    ],
    'project_edges': [
        ((*BY_TYPE, mean, reverse, ROWS[:rows], MATRICES), {})
        for mean in (False, True)
        for reverse, rows in ((False, 3), (True, 2))
    ],
    'sum_outer_edges': [
        ((*BY_TYPE, mean, ROWS, ROWS[:2], 5), {}) for mean in (False, True)
    ],
    'configuration_model': [
        ((G.indptr, 3, False), {}),
        ((torch.tensor([0]), 3, True), {}),
    ],
    'rmat_edges': [
        ((5, 20, [0.25] * 4, 1), {}),
        ((33, 0, [0.25] * 4, 1), {}),
    ],
}
CASES = [(name, i) for name in SAMPLES for i in range(len(SAMPLES[name]))]


@pytest.mark.parametrize(('name', 'case'), CASES)
def test_operators_pass_opcheck(name, case):
    args, kwargs = SAMPLES[name][case]
    operator = getattr(torch.ops.gsample, name).default
    torch.library.opcheck(operator, args, kwargs)


def test_every_operator_is_checked():
    # They open and close libraries, and take no tensors.
    loaders = {'load_kernel', 'unload_kernel'}
    names = set(operator_names()) - loaders
    assert set(SAMPLES) == names
