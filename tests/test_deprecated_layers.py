"""Names of the last release warn, and work as before."""

import importlib
import operator

import pytest
import torch

from tests.ops.compare import assert_equal_tensors
from tests.ops.layers import sample_plain_layers, sample_typed_layers
from torch_gsample import _deprecated, ops
from torch_gsample.rng import make_key
from torch_gsample.testing import small_graph

G = small_graph('hub')
KEYS = torch.cat([make_key(0), make_key(1)])
IDS, PTR = torch.tensor([3, 1, 3, 1]), torch.tensor([0, 3, 4])
PLAIN = G.indptr, G.indices, IDS, [2, 2]
TYPED = [G.indptr], [G.indices], [(0, 0)], [G.num_cols], [IDS], [[2, 2]]
ROWS = G.indptr, G.indices, G.num_rows, IDS
HOPS = {'key': [make_key(2)] * 2, 'return_frontier': True}


def each_of_all(num_nodes, k):
    return torch.ops.gsample.sample_nodes(num_nodes, k, KEYS)


CASES = {
    'hetero_sample_hops': (
        lambda old: old(*TYPED, **HOPS)[:4],
        lambda: sample_typed_layers(*TYPED, **HOPS)[:4],
    ),
    'positive_weights_segments': (
        lambda old: old(IDS, PTR),
        lambda: ops.formats.positive_weights(IDS, ptr=PTR),
    ),
    'sample_frontier': (
        lambda old: old(PTR.int(), IDS[1:3], IDS[2:], 2, key=KEYS[:1]),
        lambda: ops.sample_columns(
            PTR, 2, key=KEYS[:1], start=IDS[1:3], id=IDS[2:]
        ),
    ),
    'sample_hops': (
        lambda old: old(*PLAIN, **HOPS),
        lambda: sample_plain_layers(*PLAIN, **HOPS)[:4],
    ),
    'sample_nodes_segments': (
        lambda old: (*old(4, 2, key=KEYS, ptr=PTR), *old(9, 3, key=KEYS)),
        lambda: (
            *ops.sample_nodes(4, 2, key=KEYS, ptr=PTR),
            *each_of_all(9, 3),
        ),
    ),
    'slice_rows_segments': (
        lambda old: old(*ROWS, PTR, IDS, PTR),
        lambda: ops.slice_rows(*ROWS, IDS, row_ptr=PTR, col_ptr=PTR),
    ),
    'unique_nodes_segments': (
        lambda old: old(IDS, PTR, 9),
        lambda: ops.unique_nodes(IDS, 9, ptr=PTR),
    ),
}


@pytest.mark.parametrize('name', CASES)
def test_deprecated_names_still_work(name):
    with pytest.warns(DeprecationWarning, match='is deprecated: use'):
        old = getattr(ops, name)
    call, want = CASES[name]
    assert_equal_tensors(call(old), want())


@pytest.mark.parametrize('home', _deprecated.REPLACED['torch_gsample.ops'])
def test_replacements_of_deprecated_names_exist(home):
    for name, (instead, _) in importlib.import_module(home).NAMES.items():
        attribute = instead.split('(')[0]
        assert operator.attrgetter(attribute)(ops) is not None
        assert name not in ops.__all__
