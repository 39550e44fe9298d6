"""Names of the last release work as before, and name their successors."""

import pytest
import torch

from tests.ops.compare import assert_equal_tensors
from tests.ops.neighbors import sample_one, sample_typed
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import small_graph

KEY = make_key(3)
G = small_graph('random')
ONE = G.indptr, G.indices, torch.tensor([5, 0]), [3, 2]
TWO = (
    *([G.indptr] * 2, [G.indices] * 2, [(0, 0)] * 2, [40]),
    *([torch.tensor([5, 0])], [[3, 2], [1, 1]]),
)
NEIGHBORS = {
    'neighbor_sample': (sample_one, ONE, {}),
    'neighbor_sample_padded': (sample_one, ONE, {'max_edges': 20}),
    'hetero_neighbor_sample': (sample_typed, TWO, {}),
    'hetero_neighbor_sample_padded': (
        sample_typed,
        TWO,
        {'max_edges': [60, 60]},
    ),
}


@pytest.mark.parametrize('name', NEIGHBORS)
def test_neighbors_are_sampled_by_their_former_names(name):
    function, args, padded = NEIGHBORS[name]
    with pytest.warns(DeprecationWarning, match='ops.sample_neighbors'):
        former = getattr(ops, name)
    weight = ops.cumulate_weights(G.indptr, torch.arange(400.0))
    weight = weight if function is sample_one else [weight, None]
    given = {'key': KEY, 'cum_weight': weight, 'replace': True}
    out = former(*args, **given, **padded)
    want = function(*args, **given)
    if padded:
        out = out.check()
        assert out.fault.tolist() == [0] * (3 + (function is sample_typed))
    for item, known in zip(out[:5], want[:5], strict=True):
        one = function is sample_one
        items, knowns = ([item], [known]) if one else (item, known)
        for a, b in zip(items, knowns, strict=True):
            assert torch.equal(a[: len(b)], b)
            assert (a[len(b) :] == -1).all()
    assert_equal_tensors(out[5:7], want[5:7])
