"""Results of half precision, compared with PyG's and with float64."""

import copy

import torch

from torch_gsample.vertex.kernels import projection
from torch_gsample.vertex.kernels.fused_unit import Fused

#: The distance of a number to the next one, relative to it.
EPS = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def flat(out):
    """The tensors of a result, which may be a dictionary or a tuple."""
    if isinstance(out, dict):
        out = tuple(out[key] for key in sorted(out))
    out = out if isinstance(out, tuple) else (out,)
    return [x for x in out if isinstance(x, torch.Tensor)]


def leaves(args):
    """Copies of arguments, and those that have gradients."""
    found = []

    def copied(x):
        if isinstance(x, tuple):
            return tuple(copied(y) for y in x)
        if isinstance(x, dict):
            return {key: copied(y) for key, y in x.items()}
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        x = x.detach().clone().requires_grad_()
        found.append(x)
        return x

    return [copied(x) for x in args], found


def converted(args, dtype):
    """Arguments in a dtype; integers as they are."""
    if isinstance(args, (list, tuple)):
        return type(args)(converted(x, dtype) for x in args)
    if isinstance(args, dict):
        return {key: converted(x, dtype) for key, x in args.items()}
    if isinstance(args, torch.Tensor) and args.is_floating_point():
        return args.detach().to(dtype)
    return args


def results(layer, args, autocast=None, weights=None):
    """Results of a layer, and the gradients of all that is given."""
    args, given = leaves(args)
    if autocast is None:
        outs = flat(layer(*args))
    else:
        with torch.autocast('cpu', autocast):
            outs = flat(layer(*args))
    make = torch.Generator().manual_seed(3)
    # Of a linear function: rounded results do not change it.
    value = sum(
        (out.double() * torch.randn(out.shape, generator=make).double()).sum()
        for out in outs
        if out.is_floating_point()
    )
    given += [p for p in layer.parameters() if p.requires_grad]
    grads = torch.autograd.grad(value, given, allow_unused=True)
    return outs, list(grads)


def assert_as_exact_as_pyg(ours, theirs, args, dtype, autocast=False):
    """The dtypes of PyG, and no larger distance to float64.

    Args:
        ours (torch.nn.Module): The layer.
        theirs (torch.nn.Module): PyG's, with the same parameters.
        args (list): Of a call, in the dtypes of the call.
        dtype (torch.dtype): The half precision.
        autocast (bool): Whether autocast makes it.
    """
    cast = dtype if autocast else None
    double = copy.deepcopy(theirs).double()
    exact = results(double, converted(args, torch.float64))
    want = results(theirs, args, cast)
    found = results(ours, args, cast)
    for part, wanted, right in zip(found, want, exact, strict=True):
        for i, (x, y, z) in enumerate(zip(part, wanted, right, strict=True)):
            assert (x is None) == (y is None), i
            if x is None:
                continue
            assert (x.dtype, x.shape) == (y.dtype, y.shape), i
            error, known = distance(x, z), distance(y, z)
            limit = 1.5 * known + 8 * EPS[dtype]
            assert error <= limit, f'{i}: {error} is above {known}'


def distance(x, y):
    """How far values are from exact ones, relative to all of these."""
    if not x.is_floating_point() or not x.numel():
        return 0.0 if torch.equal(x, y) else float('inf')
    x, y = x.detach().double(), y.detach().double()
    return float((x - y).norm() / (y.norm() + 1e-30))


def without_kernels(monkeypatch):
    """Operators of torch run in the place of generated kernels."""
    monkeypatch.setattr(Fused, '_loaded', lambda *args: None)
    monkeypatch.setattr(projection, '_projecting', lambda *args: None)
    monkeypatch.setattr(projection, '_adding', lambda *args: None)
