"""Functions of torch in vertex programs: values and gradients are torch's."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.cuda.generated import assert_nvrtc_compiles
from torch_gsample import vertex_program
from torch_gsample.codegen.cuda import cuda_kernel
from torch_gsample.vertex.kernels.fused_unit import Fused

N = 12
ELEMENTS = {
    **{
        name: getattr(torch, name)
        for name in (
            *('abs', 'neg', 'exp', 'log', 'sqrt', 'rsqrt', 'reciprocal'),
            *('sigmoid', 'tanh', 'relu', 'square', 'erf', 'sin', 'cos'),
            *('log1p', 'expm1', 'round', 'floor', 'ceil', 'sign', 'celu'),
            *('selu', 'atan', 'asin', 'acos'),
        )
    },
    **{
        name: getattr(F, name)
        for name in (
            *('softplus', 'gelu', 'silu', 'mish', 'softsign', 'hardtanh'),
            *('logsigmoid', 'relu6', 'hardsigmoid', 'hardswish', 'elu'),
            *('softshrink', 'tanhshrink', 'leaky_relu'),
        )
    },
    'gelu tanh': lambda x: F.gelu(x, approximate='tanh'),
    'softplus beta': lambda x: F.softplus(x, 2.0, 5.0),
    'elu alpha': lambda x: F.elu(x, 0.7),
    'celu alpha': lambda x: F.celu(x, 0.7),
    'hardtanh bounds': lambda x: F.hardtanh(x, -0.5, 2.0),
    'softshrink bound': lambda x: F.softshrink(x, 0.2),
    'atan2': lambda x: torch.atan2(x + 0.25, x.cos()),
    'atan2 of the origin': lambda x: torch.atan2(x, x * x - x),
    'detach': lambda x: x.detach() * x,
    'special': lambda x: torch.special.expm1(x) * torch.special.erf(x),
    'methods': lambda x: x.sin().cos() + x.floor() / 3,
    'clamp': lambda x: x.clamp(-0.5, 0.5),
    'mask': lambda x: x * (x > 0.3) + (x < 0) * 2 + ((x > 0) + (x < -1)) * x,
    'count': lambda x: (x > 0.3).sum(-1, keepdim=True) * x,
    'branches': lambda x: torch.where(x > 0.3, 2.0, 1.0) * x,
}
ALONG = {
    'sum': lambda x: x.sum(-1, keepdim=True),
    'mean': lambda x: x.mean(-2),
    'amax': lambda x: x.amax(-1),
    'amax of all': lambda x: torch.amax(x, (-2, -1), keepdim=True),
    'amax of the first': lambda x: x.amax(-2),
    'amin': lambda x: x.amin(-1, keepdim=True) * x,
    'softmax': lambda x: F.softmax(x, dim=-1),
    'softmax of the first': lambda x: x.softmax(-2),
    'log_softmax': lambda x: F.log_softmax(x, dim=-1),
    'logsumexp': lambda x: torch.logsumexp(x, -1),
    'logsumexp kept': lambda x: torch.logsumexp(x, -2, keepdim=True),
    'norm': lambda x: x.norm(dim=-1),
    'norm 1': lambda x: x.norm(p=1, dim=-1, keepdim=True),
    'largest': lambda x: x.norm(p=math.inf, dim=-1),
    'vector norm': lambda x: torch.linalg.vector_norm(x, dim=-1),
    'normalize': lambda x: F.normalize(x, dim=-1),
    'normalize 1': lambda x: F.normalize(x, p=1.0, dim=-2),
}
FUNCTIONS = ELEMENTS | ALONG
#: Constants of torch's own gradients are rounded to single precision.
COARSE = {'celu alpha': 1e-6, 'hardsigmoid': 1e-6}
#: Functions with a pole of the gradient at 0.
POSITIVE = {'log', 'sqrt', 'rsqrt', 'reciprocal', 'log1p'}
#: Where branches meet, and where functions are large, small or not finite.
POINTS = [
    *(0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 0.5, -0.5, 6.0, 2.5, 1.5, -2.5, 2.0),
    *(1e-30, -1e-30, 30.0, -30.0, 200.0, -200.0, 1e4, -1e4),
    math.nan,
]


def program_of(function):
    @vertex_program
    def program(v):
        return sum(function(u.x) for u in v.innbs)

    return program


def own():
    """Each vertex has an edge from itself: sums are values."""
    return torch.arange(N).expand(2, N)


def point(name, dtype):
    """Values around 0, where branches meet, large ones, and no numbers."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(N * 15, generator=generator, dtype=torch.float64) * 2
    if name in POSITIVE:
        x = x.abs() + 0.1
    elif name in ELEMENTS:
        x[: len(POINTS)] = torch.tensor(POINTS, dtype=torch.float64)
    return x.view(N, 3, 5).to(dtype).requires_grad_()


def both(function, x):
    """Values and gradients of ours and of torch."""
    found = []
    for run in (lambda y: program_of(function)(own(), x=y), function):
        out = run(x)
        grad = None
        if out.requires_grad:
            weight = torch.linspace(-1, 1, out.numel(), dtype=x.dtype)
            loss = (out * weight.view(out.shape)).sum()
            [grad] = torch.autograd.grad(loss, x)
        found.append((out.detach(), grad))
    return found


def same(found, rtol, atol):
    (x, dx), (y, dy) = found
    torch.testing.assert_close(x, y, rtol=rtol, atol=atol, equal_nan=True)
    if dy is not None or dx is not None:
        dx = torch.zeros_like(dy) if dx is None else dx
        torch.testing.assert_close(
            dx, dy, rtol=rtol, atol=atol, equal_nan=True
        )


@pytest.mark.parametrize('name', FUNCTIONS)
def test_values_and_gradients_are_those_of_torch(name):
    function = FUNCTIONS[name]
    for dtype, rtol, atol in (
        (torch.float64, COARSE.get(name, 1e-11), 1e-13),
        (torch.float32, 2e-5, 2e-6),
    ):
        x = point(name, dtype)
        (out, grad), (want, wanted) = both(function, x)
        where = x.detach().isfinite()
        found = (out, grad[where]), (want, wanted[where])
        same(found, rtol, atol)


@pytest.mark.parametrize('name', ALONG)
def test_ties_zeros_and_large_values_along_features(name):
    x = torch.zeros(N, 3, 5, dtype=torch.float64)
    x[1::2] = 1
    x[2, 1] = 1e4
    x[3, :, 2] = -1e4
    same(both(ALONG[name], x.requires_grad_()), 1e-11, 1e-13)


def test_a_maximum_along_features_has_nan():
    x = torch.zeros(N, 2, 3)
    x[0, 0, 1] = x[1, 1, 0] = math.nan
    for name in ('amax', 'amax of the first'):
        (a, _), (b, _) = both(ALONG[name], x)
        torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize('name', FUNCTIONS)
def test_operators_of_torch_compute_the_same(name, monkeypatch):
    x = point(name, torch.float64)
    want, _ = both(FUNCTIONS[name], x)
    calls = []
    run = Fused._evaluated
    monkeypatch.setattr(Fused, '_loaded', lambda *_: None)
    monkeypatch.setattr(
        Fused, '_evaluated', lambda *args: calls.append(1) or run(*args)
    )
    found, _ = both(FUNCTIONS[name], x)
    assert calls
    same((found, want), 1e-11, 1e-13)


def test_nvrtc_compiles_each_function():
    sources = []
    for dtype in (torch.float32, torch.float64):
        for name, function in FUNCTIONS.items():
            program = program_of(function)
            plan = program.plan(x=point(name, dtype))
            [(unit, _)] = plan.units.values()
            sources.append(cuda_kernel(unit).source)
    assert_nvrtc_compiles(sources, 'sm_90')


BAD = {
    'gelu': (lambda x: F.gelu(x, approximate='no'), "'none' or 'tanh'"),
    'norm': (lambda x: x.norm(p=3, dim=-1), "'p' of norm must be 1, 2 or"),
    'softmax': (lambda x: x.softmax(-1, dtype=torch.float64), 'with a dtype'),
    'axis': (lambda x: x.amax(5), r'have no dimension 5'),
}


@pytest.mark.parametrize('name', BAD)
def test_errors_name_the_fix(name):
    function, text = BAD[name]
    with pytest.raises(ValueError, match=text):
        program_of(function)(own(), x=torch.ones(N, 3, 5))
