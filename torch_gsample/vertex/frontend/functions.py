"""Functions of torch decomposed into simpler ones.

Gradients of unselected branches are finite: zero times infinity would be NaN.
"""

import math
from typing import Any

from torch_gsample.vertex.frontend.values import (
    RULES,
    Unsupported,
    Value,
    elementwise,
    reduced,
)

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _where(condition: Any, x: Any, y: Any) -> Any:
    return RULES['where'](condition, x, y)


def _least(x: Any, bound: float) -> Any:
    """Returns the minimum of values and a bound."""
    return elementwise('clamp_max', x, bound)


def _elu(
    x: Any,
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    inplace: bool = False,
) -> Any:
    low = elementwise('expm1', _least(x * input_scale, 0.0))
    return _where(x > 0, x * scale, low * (alpha * scale))


def _celu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return _elu(x, alpha, 1.0, 1 / alpha)


def _selu(x: Any, inplace: bool = False) -> Any:
    return _elu(x, _SELU_ALPHA, _SELU_SCALE)


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    grown = elementwise('exp', _least(x * beta, threshold))
    soft = elementwise('log1p', grown) / beta
    return _where(x * beta > threshold, x, soft)


def _logsigmoid(x: Any) -> Any:
    low = elementwise('log1p', elementwise('exp', _least(x, 0.0)))
    high = elementwise('log1p', elementwise('exp', _least(-x, 0.0)))
    return _where(x < 0, x - low, -high)


def _gelu(x: Any, approximate: str = 'none') -> Any:
    if approximate == 'tanh':
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1 + elementwise('tanh', inner))
    if approximate != 'none':
        raise Unsupported(
            "'approximate' of gelu must be 'none' or 'tanh' (got "
            f'{approximate!r})'
        )
    return 0.5 * x * (1 + elementwise('erf', x * math.sqrt(0.5)))


def _atan(x: Any) -> Any:
    return elementwise('atan2', x, 1.0)


def _silu(x: Any, inplace: bool = False) -> Any:
    return x * elementwise('sigmoid', x)


def _mish(x: Any, inplace: bool = False) -> Any:
    return x * elementwise('tanh', _softplus(x))


def _softsign(x: Any) -> Any:
    return x / (1 + elementwise('abs', x))


def _hardtanh(
    x: Any,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
) -> Any:
    return _where(x <= min_val, min_val, _where(x >= max_val, max_val, x))


def _relu6(x: Any, inplace: bool = False) -> Any:
    return _hardtanh(x, 0.0, 6.0)


def _hardsigmoid(x: Any, inplace: bool = False) -> Any:
    return _hardtanh(x + 3, 0.0, 6.0) / 6


def _hardswish(x: Any, inplace: bool = False) -> Any:
    # -inf gives NaN, as in torch.
    return _where(x <= -3, x * 0.0, _where(x < 3, x * (x + 3) / 6, x))


def _softshrink(x: Any, lambd: float = 0.5) -> Any:
    high = _where(x > lambd, x - lambd, x * 0.0)  # NaN stays
    return _where(x < -lambd, x + lambd, high)


def _tanhshrink(x: Any) -> Any:
    return x - elementwise('tanh', x)


def _amax(x: Any, dim: Any = None, keepdim: bool = False) -> Value:
    return reduced('max_axis', x, dim, keepdim)


def _amin(x: Any, dim: Any = None, keepdim: bool = False) -> Value:
    least: Any = reduced('max_axis', -x, dim, keepdim)
    return -least


def _shifted(x: Any, dim: Any) -> tuple[Any, Any, Any]:
    """Returns values below 0, the sum of their exponents, and the shift."""
    most = elementwise('detach', _amax(x, dim, True))
    low = x - most
    total = reduced('sum_axis', elementwise('exp', low), dim, True)
    return low, total, most


def _softmax(x: Any, dim: int = -1, **given: Any) -> Any:
    _check_dtype('softmax', given)
    low, total, _ = _shifted(x, dim)
    return elementwise('exp', low) / total


def _log_softmax(x: Any, dim: int = -1, **given: Any) -> Any:
    _check_dtype('log_softmax', given)
    low, total, _ = _shifted(x, dim)
    return low - elementwise('log', total)


def _check_dtype(name: str, given: dict[str, Any]) -> None:
    if given.get('dtype') is not None:
        raise Unsupported(f'{name} with a dtype')


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    _, total, most = _shifted(x, dim)
    out = elementwise('log', total) + most
    return out if keepdim else RULES['squeeze'](out, dim)


def _norm(
    x: Any, p: float | str = 2.0, dim: Any = None, keepdim: bool = False
) -> Any:
    size = elementwise('abs', x)
    if p == math.inf:
        return _amax(size, dim, keepdim)
    if p == 1:
        return reduced('sum_axis', size, dim, keepdim)
    if p not in (2, 'fro'):
        raise Unsupported(f"'p' of norm must be 1, 2 or infinite (got {p})")
    return root(reduced('sum_axis', x * x, dim, keepdim))


def root(x: Any) -> Any:
    """Returns the square root, whose gradient at 0 is 0.

    Args:
        x (Value): Not negative.
    """
    return _where(x > 0, elementwise('sqrt', _where(x > 0, x, 1.0)), 0.0)


def _vector_norm(
    x: Any, ord: float = 2.0, dim: Any = None, keepdim: bool = False
) -> Any:
    return _norm(x, ord, dim, keepdim)


def _normalize(
    x: Any, p: float = 2.0, dim: int = -1, eps: float = 1e-12, out: Any = None
) -> Any:
    if out is not None:
        raise Unsupported("normalize with an 'out'")
    return x / elementwise('clamp_min', _norm(x, p, dim, True), eps)


RULES.update(
    {
        **{'elu': _elu, 'celu': _celu, 'selu': _selu, 'gelu': _gelu},
        **{'softplus': _softplus, 'logsigmoid': _logsigmoid},
        **{'log_sigmoid': _logsigmoid, 'silu': _silu},
        **{'mish': _mish, 'softsign': _softsign, 'hardtanh': _hardtanh},
        **{'relu6': _relu6, 'hardsigmoid': _hardsigmoid},
        **{'hardswish': _hardswish, 'softshrink': _softshrink},
        **{'atan': _atan, 'tanhshrink': _tanhshrink, 'softmax': _softmax},
        **{'log_softmax': _log_softmax, 'logsumexp': _logsumexp},
        **{'amax': _amax, 'amin': _amin, 'norm': _norm},
        **{'vector_norm': _vector_norm, 'normalize': _normalize},
    }
)
