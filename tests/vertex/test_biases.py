"""Linear layers that add their bias in place, and sums along features."""

import pytest
import torch
from torch import nn

from torch_gsample.vertex.nn import fusible
from torch_gsample.vertex.nn.fusible import project

ROWS, IN, OUT = 7, 5, 3


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few rows are as many."""
    monkeypatch.setattr(fusible, '_SHARED', 1)


def given():
    torch.manual_seed(4)
    x = torch.randn(ROWS, IN, dtype=torch.float64, requires_grad=True)
    return x, nn.Linear(IN, OUT).double()


def added_in_place(x, linear):
    """Whether the bias is added to the product, not copied before it."""
    return 'Add' in type(project(x, linear).grad_fn).__name__


def test_projections_have_the_gradients_of_linear_layers():
    x, linear = given()
    assert added_in_place(x, linear)
    operands = x, linear.weight, linear.bias
    torch.testing.assert_close(project(x, linear), linear(x))

    def run(x, weight, bias):
        one = nn.Linear(IN, OUT).double()
        del one.weight, one.bias
        one.weight, one.bias = weight, bias
        return project(x, one)

    assert torch.autograd.gradcheck(run, operands)
    assert torch.autograd.gradgradcheck(run, operands)


def test_hooked_or_changed_linear_layers_run_in_torch():
    x, linear = given()
    assert not added_in_place(x, nn.Linear(IN, OUT, bias=False).double())
    with torch.autocast('cpu', torch.bfloat16):
        want, found = linear.float()(x.float()), project(x.float(), linear)
        assert found.dtype == want.dtype == torch.bfloat16
        assert torch.equal(found, want)
    x, linear = given()
    seen = []
    linear.register_forward_hook(lambda *_: seen.append(1))
    project(x, linear)
    assert seen == [1]


def test_vmap_over_a_bias_alone():
    x, linear = given()
    biases = torch.randn(4, OUT, dtype=torch.float64)

    def run(bias):
        return torch.func.functional_call(
            Projected(linear), {'l.bias': bias}, x
        )

    found = torch.func.vmap(run)(biases)
    want = x @ linear.weight.t() + biases[:, None]
    torch.testing.assert_close(found, want)


class Projected(nn.Module):
    """Calls ``project``."""

    def __init__(self, linear):
        super().__init__()
        self.l = linear

    def forward(self, x):
        return project(x, self.l)
