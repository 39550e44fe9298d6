"""Checks of arguments before torch and PyG reject them with other messages.

The arguments of a loader come in; an error that names loader, argument, rule
and value goes out.
"""

from collections.abc import Mapping
from typing import Any

from torch_geometric import sampler as pyg

from torch_gsample.loader.sharding import integer
from torch_gsample.samplers.arguments import flag

_CALLABLES = 'transform', 'transform_sampler_output', 'worker_init_fn'


def check_options(name: str, kwargs: Mapping[str, Any]) -> None:
    """Checks options that all loaders have.

    Args:
        name (str): The loader.
        kwargs (Mapping[str, Any]): Its options.

    Raises:
        TypeError: If one has the wrong type.
        ValueError: If a number is out of range.
    """
    if 'batch_size' in kwargs:
        size = kwargs['batch_size']
        if size is None:
            raise ValueError(
                f"{name}: 'batch_size' must be a number of seeds (got None)"
            )
        if integer(name, 'batch_size', size) < 1:
            raise ValueError(
                f"{name}: 'batch_size' must be positive (got {size})"
            )
    workers = kwargs.get('num_workers', 0)
    if integer(name, 'num_workers', workers) < 0:
        raise ValueError(
            f"{name}: 'num_workers' must not be negative (got {workers})"
        )
    for key in ('shuffle', 'drop_last'):
        if kwargs.get(key) is not None:
            flag(name, key, kwargs[key])
    for key in _CALLABLES:
        value = kwargs.get(key)
        if not (value is None or callable(value)):
            raise TypeError(
                f"{name}: '{key}' must be callable (got {value!r})"
            )


def check_sampler(name: str, sampler: Any, method: str) -> None:
    """Checks that a loader can sample.

    Args:
        name (str): The loader.
        sampler (BaseSampler): Its graph sampler.
        method (str): The method that it calls.

    Raises:
        TypeError: If there is no such method.
    """
    if not hasattr(sampler, method):
        raise TypeError(
            f"{name}: the graph sampler must be a 'BaseSampler' with "
            f"'{method}' (got {type(sampler).__name__})"
        )


def check_negatives(name: str, sampling: Any, ratio: Any) -> None:
    """Checks how a loader samples negative edges.

    Args:
        name (str): The loader.
        sampling (NegativeSampling or str or Dict, optional): PyG's argument.
        ratio (float, optional): PyG's older argument.

    Raises:
        TypeError: If one has the wrong type.
        ValueError: If a mode is unknown, or a ratio is negative.
    """
    if isinstance(sampling, str) and sampling not in ('binary', 'triplet'):
        raise ValueError(
            f"{name}: 'neg_sampling' must be 'binary' or 'triplet' (got "
            f'{sampling!r})'
        )
    known = pyg.NegativeSampling, str, dict, tuple
    if sampling is not None and not isinstance(sampling, known):
        raise TypeError(
            f"{name}: 'neg_sampling' must be a NegativeSampling or its mode "
            f'(got {sampling!r})'
        )
    if ratio is None:
        return
    if not isinstance(ratio, (int, float)) or isinstance(ratio, bool):
        raise TypeError(
            f"{name}: 'neg_sampling_ratio' must be a number (got {ratio!r})"
        )
    if ratio < 0:
        raise ValueError(
            f"{name}: 'neg_sampling_ratio' must not be negative (got {ratio})"
        )
