"""Parameters of samplers, and gradients of samples.

Programs and samples come in; their tensors that require gradients go out. The
draws of a trainable sampler depend on parameters that change at each training
step, so draws in advance must use the parameters of their step.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import is_dataclass
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from torch_gsample.sparse_sample import SparseSample

#: Types of every sample that contain no tensors.
_PLAIN = (int, float, str, type(None))

_detached: ContextVar[bool] = ContextVar(
    'torch_gsample_detached', default=False
)


def requires_grad(*values: Any) -> bool:
    """Whether any tensor in some values requires gradients.

    Searches containers, samples, batches, matrices and modules, and the parts
    of functions: arguments of partial functions, objects of bound methods,
    variables of closures.

    Args:
        *values: Anything.
    """
    return any(tensor.requires_grad for tensor in _tensors(values, set()))


def parameters_of(sampler: Any) -> list[Tensor]:
    """Returns tensors of a sampler that require gradients.

    They are in its program, its arguments and its weights.

    Args:
        sampler (ProgramSampler): The sampler.
    """
    held = sampler.program, sampler.program_kwargs, sampler.matrices
    found = (x for x in _tensors(held, set()) if x.requires_grad)
    return list({id(x): x for x in found}.values())


def is_trainable(sampler: Any) -> bool:
    """Whether a program, its arguments or the weights require gradients.

    Args:
        sampler (ProgramSampler): The sampler.
    """
    return bool(parameters_of(sampler))


@contextmanager
def without_gradients() -> Iterator[None]:
    """Turns :func:`check_no_gradients` off for a worker's samples."""
    token = _detached.set(True)
    try:
        yield
    finally:
        _detached.reset(token)


@contextmanager
def same_modes() -> Iterator[None]:
    """Fixes torch's modes, so that all processes compute the same."""
    from torch_gsample.compiler.cost import layouts_as_written  # 90 modules

    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast('cpu', enabled=False),
        layouts_as_written(),
    ):
        yield


def check_no_gradients(name: str, sample: Any) -> None:
    """Checks that a sample drawn in advance requires no gradients.

    Args:
        name (str): The sampler or loader, for errors.
        sample: A sample, a batch, or a collection of them.

    Raises:
        ValueError: If it requires gradients.
    """
    if not _detached.get() and requires_grad(sample):
        raise ValueError(
            f'{name}: a sample that requires gradients must be drawn when it '
            'is used, because the loader does not find its parameters: set '
            "'num_workers' and 'prefetch' to 0, freeze the sampler with "
            "'requires_grad_(False)', or pass the parameters to a "
            'ProgramSampler in its program, closure or arguments'
        )


def check_nothing_ahead(
    name: str, sampler: Any, prefetch: int | None, kwargs: dict[str, Any]
) -> None:
    """Checks that a trainable sampler uses the parameters of each step.

    A prefetching thread would use parameters of earlier steps. Workers have a
    copy of the parameters, but send no gradients of whole batches.

    Args:
        name (str): The loader, for errors.
        sampler (ProgramSampler): The sampler.
        prefetch (int, optional): Number of batches to prefetch.
        kwargs (Dict[str, Any]): The other options of the loader.

    Raises:
        ValueError: If batches are prefetched, or workers would make whole
            batches.
    """
    if prefetch:
        raise ValueError(
            f"{name}: 'prefetch' must be 0 with the trainable sampler "
            f'{sampler!r}, because the caller differentiates its batches; '
            f"or freeze it with 'requires_grad_(False)' (got {prefetch})"
        )
    if kwargs.get('num_workers') and kwargs.get('filter_per_worker'):
        raise ValueError(
            f"{name}: 'filter_per_worker' must not be True with the trainable "
            f'sampler {sampler!r}: workers send no gradients (got True)'
        )


def _tensors(value: Any, seen: set[int]) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
        return
    if isinstance(value, _PLAIN) or id(value) in seen:
        return
    seen.add(id(value))
    for part in _parts(value):
        yield from _tensors(part, seen)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, nn.Module):
        return [*value.parameters()]
    if isinstance(value, SparseSample):
        disk = value._disk
        return [value.value] if disk is None else disk.operands()
    if isinstance(value, (Data, HeteroData)):
        # Values that are gathered later, integers, stay so.
        stores = [store._mapping for store in value.stores]
        return [x for store in stores for x in dict.values(store)]
    if isinstance(value, Mapping):
        return [*value.values()]
    if isinstance(value, (list, tuple)):
        return [*value]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, FunctionType):
        return [value.__defaults__, value.__kwdefaults__, *_variables(value)]
    if is_dataclass(value):
        return [*vars(value).values()]
    # Attributes of compiled and of exported programs.
    return [getattr(value, name, None) for name in ('__wrapped__', 'tensors')]


def _variables(function: FunctionType) -> Iterator[Any]:
    """Yields the variables of a closure that have a value."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
