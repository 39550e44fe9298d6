"""Each convolution of PyG in half precision and under autocast, fused.

Operators of torch run in the place of kernels, of which programs have tests
of their own (``tests/vertex/test_half.py``): here it is dtypes that count.
"""

import copy

import pytest
import torch

from tests.fusion.test_layers import FUSED, Model, called, fused
from tests.vertex.half import (
    assert_as_exact_as_pyg,
    converted,
    without_kernels,
)

#: PyG itself fails: it mixes dtypes.
FAILS = {
    ('MFConv', 'autocast'),
    ('ClusterGCNConv', 'bfloat16'),
    ('ClusterGCNConv', 'float16'),
}
MODES = {
    'bfloat16': torch.bfloat16,
    'float16': torch.float16,
    'autocast': torch.bfloat16,
}


@pytest.fixture(autouse=True)
def _without_kernels(monkeypatch):
    without_kernels(monkeypatch)


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('name', FUSED)
def test_layers_have_the_dtypes_of_pyg_and_are_as_exact(name, mode):
    layer, args = called(name, torch.float32)
    dtype = MODES[mode]
    if mode != 'autocast':
        layer, args = layer.to(dtype), converted(args, dtype)
    if (name, mode) in FAILS:
        autocast = torch.autocast('cpu', dtype, enabled=mode == 'autocast')
        with autocast, pytest.raises(RuntimeError, match=r'dtype|scalar type'):
            Model(layer)(*args)
        return
    ours, capture, _ = fused(layer)
    theirs = Model(layer)
    assert_as_exact_as_pyg(ours, theirs, args, dtype, mode == 'autocast')
    assert capture.is_fused, capture.reason


def test_layers_that_are_evaluated_have_the_dtypes_of_pyg():
    layer, args = called('TransformerConv', torch.float32)
    ours = fused(layer)[0].eval()
    with torch.no_grad(), torch.autocast('cpu', torch.bfloat16):
        out, want = ours(*args), Model(layer).eval()(*args)
    assert out.dtype == want.dtype
    torch.testing.assert_close(out, want, rtol=2e-2, atol=2e-2)


def test_a_layer_is_captured_again_where_autocast_changes():
    layer, args = called('GraphConv', torch.float32)
    ours, capture, _ = fused(layer)
    theirs = Model(copy.deepcopy(layer))
    dtypes = []
    for enabled, dtype in (
        *((False, torch.bfloat16), (True, torch.bfloat16)),
        *((True, torch.float16), (False, torch.float16)),
    ):
        with torch.autocast('cpu', dtype, enabled=enabled):
            out, want = ours(*args), theirs(*args)
        assert out.dtype == want.dtype
        torch.testing.assert_close(out, want, rtol=2e-2, atol=2e-2)
        dtypes.append(out.dtype)
    assert capture.is_fused
    assert len(set(dtypes)) == 3


def test_float64_and_half_precision_together_are_left_to_pyg():
    layer, args = called('GraphConv', torch.float64)
    layer = layer.double()
    x, edge_index, *_ = args
    ours, capture, _ = fused(layer)
    pair = x.detach(), x.detach().bfloat16()
    with pytest.raises(RuntimeError, match='dtype'):
        ours(pair, edge_index)
    assert capture.reason == (
        'its features are torch.bfloat16 and torch.float64: kernels compute '
        'with one'
    )
