"""Finds the parameters of samplers, and the gradients of samples.

Programs and samples come in; whether one of their tensors requires gradients
goes out. What such a sampler draws depends on parameters that training
changes at each step: who draws ahead of it must know them.
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

#: What is in every sample, and holds nothing.
_PLAIN = (int, float, str, type(None))

_detached: ContextVar[bool] = ContextVar(
    'torch_gsample_detached', default=False
)


def requires_grad(*values: Any) -> bool:
    """Whether a tensor in some values requires gradients.

    Looks into containers, samples, batches, matrices and modules, and into
    what functions are made of: arguments of partial functions, objects of
    methods, variables of closures.

    Args:
        *values: Anything.
    """
    return any(tensor.requires_grad for tensor in _tensors(values, set()))


def parameters_of(sampler: Any) -> list[Tensor]:
    """Returns what requires gradients in a program, arguments and weights.

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
    """Lets a worker sample: it sends no gradients, and nobody expects them."""
    token = _detached.set(True)
    try:
        yield
    finally:
        _detached.reset(token)


@contextmanager
def same_modes() -> Iterator[None]:
    """Lets processes compute the same, whatever their own modes are."""
    from torch_gsample.compiler.cost import layouts_as_written  # 90 modules

    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast('cpu', enabled=False),
        layouts_as_written(),
    ):
        yield


def check_no_gradients(name: str, sample: Any) -> None:
    """Checks what is not made where and when it is used.

    Args:
        name (str): The sampler or loader, for the message.
        sample: A sample, a batch, or some of them.

    Raises:
        ValueError: If it requires gradients.
    """
    if not _detached.get() and requires_grad(sample):
        raise ValueError(
            f'{name}: a sample that requires gradients must be drawn when it '
            'is used, with the parameters of that step, because '
            "their location is unknown: set 'num_workers' and "
            "'prefetch' to 0, freeze the sampler by "
            "'requires_grad_(False)', or pass them to a "
            'ProgramSampler in its program, closure or arguments'
        )


def check_nothing_ahead(
    name: str, sampler: Any, prefetch: int | None, kwargs: dict[str, Any]
) -> None:
    """Checks that a sampler that trains draws by the parameters of each step.

    A thread would draw by what they were some steps before. Workers have a
    copy of them, but a transform of the weights needs their gradients.

    Args:
        name (str): The loader, for messages.
        sampler (ProgramSampler): The sampler.
        prefetch (int, optional): What its caller wants to be made ahead.
        kwargs (Dict[str, Any]): The other options of the loader.

    Raises:
        ValueError: If batches are made ahead, or workers would make whole
            batches.
    """
    if prefetch:
        raise ValueError(
            f"{name}: 'prefetch' must be 0 with a sampler that trains, "
            f'{sampler!r}, whose batches are differentiated by their caller; '
            f"or freeze it by 'requires_grad_(False)' (got {prefetch})"
        )
    if kwargs.get('num_workers') and kwargs.get('filter_per_worker'):
        raise ValueError(
            f"{name}: 'filter_per_worker' must not be True with a sampler "
            f'that trains, {sampler!r}: workers send no gradients (got True)'
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
        return [store.to_dict() for store in value.stores]
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
    # Attributes of a compiled program, and of an exported one.
    return [getattr(value, name, None) for name in ('__wrapped__', 'tensors')]


def _variables(function: FunctionType) -> Iterator[Any]:
    """Yields the variables of a closure, without those that have no value."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
