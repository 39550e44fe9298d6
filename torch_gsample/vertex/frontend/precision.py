"""The dtypes of a vertex program: kernels have float32 and float64 only.

Features in half precision are widened to float32, and results are rounded to
the dtype to which torch promotes the features. Autocast is off in a program.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any

import torch
from torch import Tensor

#: Features by name: a pair has those of sources and of destinations.
Features = dict[str, Any]

_HALF = (torch.float16, torch.bfloat16)


def kernel_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype in which kernels compute with features."""
    return torch.float32 if dtype in _HALF else dtype


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns a tensor in a dtype; itself if it has it."""
    return x if x.dtype == dtype else x.to(dtype)


def without_half(features: Features) -> tuple[Features, set[torch.dtype]]:
    """Returns features as kernels take them.

    Args:
        features (Dict[str, Any]): The features of a call.

    Returns:
        Tuple[Dict[str, Any], Set[torch.dtype]]: The features, and the dtypes
        that they had, if one was of half precision.
    """
    for x in _tensors(features):
        if x.dtype in _HALF:
            break
    else:
        return features, set()
    given = [x for x in _tensors(features) if x.is_floating_point()]
    found: Features = {}
    for name, feature in features.items():
        pair = isinstance(feature, tuple)
        wide = [_widened(x) for x in (feature if pair else (feature,))]
        found[name] = tuple(wide) if pair else wide[0]
    # Tensors without dimensions promote no others.
    return found, {x.dtype for x in given if x.dim()}


def rounded(results: Any, dtypes: Iterable[torch.dtype]) -> Any:
    """Returns the results of a program in the dtype of torch's promotion."""
    dtype = reduce(torch.promote_types, dtypes)
    if isinstance(results, tuple):
        return tuple(cast(x, dtype) for x in results)
    return cast(results, dtype)


def is_autocast(device: torch.device) -> bool:
    """Whether autocast is on for a device."""
    kind = device.type
    return kind in ('cpu', 'cuda') and torch.is_autocast_enabled(kind)


def _tensors(features: Features) -> list[Tensor]:
    found: list[Tensor] = []
    for x in features.values():
        if isinstance(x, tuple):
            found += [y for y in x if y is not None]
        else:
            found.append(x)
    return found


def _widened(x: Tensor | None) -> Tensor | None:
    return None if x is None else cast(x, kernel_dtype(x.dtype))
