"""Checks of arguments before torch and PyG reject them with other messages.

The arguments of a loader come in; an error that names loader, argument, rule
and value goes out.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Generator
from torch_geometric import sampler as pyg
from torch_geometric.transforms import BaseTransform

from torch_gsample.loader.sharding import integer
from torch_gsample.samplers.arguments import flag

_CALLABLES = 'transform', 'transform_sampler_output', 'worker_init_fn'


def check_options(name: str, kwargs: dict[str, Any]) -> None:
    """Checks options that all loaders have.

    Args:
        name (str): The loader.
        kwargs (Dict[str, Any]): Its options. A batch size of NumPy becomes
            Python's, as torch requires.

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
        kwargs['batch_size'] = integer(name, 'batch_size', size)
        if size < 1:
            raise ValueError(
                f"{name}: 'batch_size' must be positive (got {size})"
            )
    workers = kwargs.get('num_workers', 0)
    if integer(name, 'num_workers', workers) < 0:
        raise ValueError(
            f"{name}: 'num_workers' must not be negative (got {workers})"
        )
    ahead = kwargs.get('prefetch_factor')
    if ahead is not None and integer(name, 'prefetch_factor', ahead) < 1:
        raise ValueError(
            f"{name}: 'prefetch_factor' must be positive (got {ahead})"
        )
    generator = kwargs.get('generator')
    if not (generator is None or isinstance(generator, Generator)):
        raise TypeError(
            f"{name}: 'generator' must be a torch.Generator; 'seed' is a "
            f'number (got {generator!r})'
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
        if isinstance(value, type) and issubclass(value, BaseTransform):
            raise TypeError(
                f"{name}: '{key}' must be a transform, {value.__name__}(), "
                f'not its class (got {value!r})'
            )


@contextmanager
def naming_options(name: str) -> Iterator[None]:
    """Names the loader in errors of torch, such as 'timeout option should'.

    Args:
        name (str): The loader.

    Raises:
        ValueError: If options exclude each other, or a value is invalid.
    """
    try:
        yield
    except ValueError as error:
        text, count = re.subn(r'^(\w+) option', r"'\1'", str(error))
        if count:
            raise ValueError(f'{name}: {text}') from None
        raise


def check_sampler(name: str, sampler: Any, method: str) -> None:
    """Checks that a loader can sample.

    Args:
        name (str): The loader.
        sampler (BaseSampler): Its graph sampler.
        method (str): The method that it calls.

    Raises:
        TypeError: If there is no such method, or it is a class.
    """
    if isinstance(sampler, type) or not hasattr(sampler, method):
        kind = sampler if isinstance(sampler, type) else type(sampler)
        of = 'the class ' if isinstance(sampler, type) else ''
        raise TypeError(
            f"{name}: the graph sampler must be a 'BaseSampler' with "
            f"'{method}' (got {of}{kind.__name__})"
        )


def check_negatives(
    name: str, sampling: Any, ratio: Any, edge_label: Any = None
) -> None:
    """Checks how a loader samples negative edges.

    Args:
        name (str): The loader.
        sampling (NegativeSampling or str or Dict, optional): PyG's argument.
        ratio (float, optional): PyG's older argument.
        edge_label (torch.Tensor, optional): The labels of the seed edges.

    Raises:
        TypeError: If one has the wrong type.
        ValueError: If a mode is unknown, a ratio is negative, or triplets
            have a ratio or labels.
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
    try:
        mode = pyg.NegativeSampling.cast(sampling)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name}: 'neg_sampling' must be the arguments of a "
            f'NegativeSampling (got {sampling!r}: {error})'
        ) from None
    if mode is not None and mode.is_triplet():
        _check_triplets(name, ratio, edge_label)
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


def _check_triplets(name: str, ratio: Any, edge_label: Any) -> None:
    """Checks that triplets come without arguments of labelled edges."""
    if ratio:
        raise ValueError(
            f"{name}: 'neg_sampling_ratio' must be None with triplets, whose "
            f"NegativeSampling has an 'amount' (got {ratio!r})"
        )
    if edge_label is not None:
        raise ValueError(
            f"{name}: 'edge_label' must be None with triplets (got "
            f"{type(edge_label).__name__}); batches have 'src_index', "
            f"'dst_pos_index' and 'dst_neg_index'"
        )
