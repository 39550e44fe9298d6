"""Argument checks of the operators, with one wording for each error."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample._library import has_cuda_kernel

#: Error of an operator for an id that it checked itself, as on a GPU. The
#: stable ABI only has RuntimeError.
_NOT_A_NODE = re.compile(
    r": '(seeds|rows?|cols?|row_nodes|col_nodes|id|index)' must be in "
    r'\[(0|-1), \d+\) \(got .* at position'
)

#: The source location that precedes an operator's error.
_PLACE = re.compile(r'^[\w()]+, \S+:\d+, ')

#: The rule of an argument in an operator's error; the group is for ids.
_RULE = re.compile(r"\w+: '\w+' must (be in \[)?")

#: Error of an operator without enough GPU memory.
_NO_MEMORY = re.compile(r'\w+: out of memory on the device for ')

INDEX_DTYPES = (torch.int32, torch.int64)
CPU = torch.device('cpu')

#: Temporal strategies, in the order of the operators' codes.
STRATEGIES = ('uniform', 'last')


# No-op conversions are not called: Dynamo captures each call, which takes
# milliseconds.


def contiguous(value: Tensor) -> Tensor:
    """Returns a contiguous tensor."""
    # A vector of unknown length has a known stride.
    dense = value.stride(0) == 1 if value.dim() == 1 else value.is_contiguous()
    return value if dense else value.contiguous()


def as_int64(value: Tensor) -> Tensor:
    """Returns an int64 tensor."""
    return value if value.dtype == torch.int64 else value.to(torch.int64)


def detached(value: Tensor) -> Tensor:
    """Returns a tensor without its autograd history."""
    return value.detach() if value.requires_grad else value


def is_known(condition: bool) -> bool:
    """Whether a condition on sizes holds, as far as Dynamo knows.

    Unknown conditions count as false: operators check again.
    """
    if not is_compiling():
        return condition
    from torch_gsample.torch_private.errors import guard_or_false

    return guard_or_false(condition)


def graph_device(
    op: str, indptr: Tensor | None, name: str = 'indptr'
) -> torch.device:
    """Returns the device on which an operator with a CUDA kernel runs.

    Raises:
        ValueError: If the graph is on a GPU, and this build has no kernel.
    """
    if not isinstance(indptr, Tensor) or indptr.device.type != 'cuda':
        return CPU
    if not has_cuda_kernel(op):
        raise ValueError(
            f"{op}: '{name}' is on {indptr.device}, but this torch_gsample "
            f'was built without CUDA; build it with GSAMPLE_CUDA=1, or move '
            f'the graph to the CPU'
        )
    return indptr.device


def sampling_device(
    op: str,
    indptr: Tensor | None,
    seeds: Tensor | None,
    name: str = 'seeds',
) -> torch.device:
    """Returns the sampling device: a GPU if the graph or seeds are on it.

    Raises:
        ValueError: If this build has no kernel.
    """
    on_gpu = isinstance(seeds, Tensor) and seeds.device.type == 'cuda'
    if on_gpu and isinstance(indptr, Tensor) and indptr.device == CPU:
        return graph_device(op, seeds, name)
    return graph_device(op, indptr)


def is_readable(value: Tensor, device: torch.device) -> bool:
    """Whether a device can read a tensor: on it, or in pinned memory."""
    if value.device == device:
        return True
    return value.device == CPU and (is_compiling() or value.is_pinned())


def check_tensor(op: str, name: str, value: Any) -> None:
    """Raises a TypeError if an argument or an attribute is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{op}: '{name}' must be a tensor (got {type(value).__name__})"
        )


def integer_vector(
    op: str,
    name: str,
    value: Tensor,
    device: torch.device = CPU,
    or_pinned: bool = False,
) -> Tensor:
    """Returns ``value`` as a contiguous vector of int32 or int64.

    Raises:
        TypeError: If it is not an integer tensor.
        ValueError: If it is not a vector, or not on the device (nor in pinned
            memory, if that is allowed).
    """
    check_tensor(op, name, value)
    if value.dtype not in INDEX_DTYPES:
        raise TypeError(
            f"{op}: '{name}' must be int32 or int64 (got {value.dtype})"
        )
    if value.dim() != 1:
        raise ValueError(
            f"{op}: '{name}' must be a vector (got shape {list(value.shape)})"
        )
    or_pinned = or_pinned and device != CPU
    if or_pinned and not is_readable(value, device):
        raise ValueError(
            f"{op}: '{name}' must be on {device} or in pinned memory (got "
            f'{value.device}, not pinned): move the graph there, or pin it '
            f'with torch_gsample.placement.pin'
        )
    if not or_pinned and value.device != device:
        raise ValueError(
            f"{op}: '{name}' must be on {place(device)} (got {value.device})"
        )
    return contiguous(value)


def widened(value: Tensor, device: torch.device) -> Tensor:
    """Returns an int64 tensor; pinned memory is copied to the GPU."""
    return value if value.dtype == torch.int64 else value.to(device).long()


def place(device: torch.device) -> str:
    """Returns the name of an operator's device for errors."""
    return 'the CPU' if device == CPU else f'{device}, where the graph is'


def int64_vector(
    op: str,
    name: str,
    value: Tensor,
    size: int | None = None,
    device: torch.device = CPU,
    or_pinned: bool = False,
) -> Tensor:
    """Like :func:`integer_vector`, converted to int64, of a given length."""
    value = integer_vector(op, name, value, device, or_pinned)
    value = widened(value, device)
    if size is not None and value.numel() != size:
        raise ValueError(
            f"{op}: '{name}' must have {size} elements (got {value.numel()})"
        )
    return value


def pointers(
    op: str,
    indptr: Tensor,
    device: torch.device = CPU,
    or_pinned: bool = False,
) -> Tensor:
    """Returns the pointers of a graph after checks; they are never empty."""
    indptr = integer_vector(op, 'indptr', indptr, device, or_pinned)
    if indptr.numel() == 0:
        raise ValueError(f"{op}: 'indptr' must have at least one element")
    return indptr


def graph(
    op: str,
    indptr: Tensor,
    indices: Tensor,
    device: torch.device = CPU,
    or_pinned: bool = True,
) -> tuple[Tensor, Tensor]:
    """Returns the pointers and indices of a graph in supported dtypes."""
    indptr = pointers(op, indptr, device, or_pinned)
    indices = integer_vector(op, 'indices', indices, device, or_pinned)
    if indptr.dtype == torch.int32 and indices.dtype == torch.int64:
        indptr = widened(indptr, device)
    return indptr, indices


def node_ids(
    op: str,
    name: str,
    value: Tensor,
    num_nodes: int,
    device: torch.device = CPU,
) -> Tensor:
    """Returns ``value`` as int64 after checking its range.

    On a GPU, the kernel checks the range, to avoid a synchronisation.

    Raises:
        IndexError: If an id is outside ``[0, num_nodes)``.
    """
    value = int64_vector(op, name, value, device=device)
    return in_range(op, name, value, num_nodes)


def in_range(op: str, name: str, value: Tensor, size: int) -> Tensor:
    """Returns integers after checking that they are in ``[0, size)``.

    On a GPU, the kernel checks them.

    Raises:
        IndexError: If one is outside ``[0, size)``.
    """
    if not is_compiling() and value.numel() > 0 and not value.is_cuda:
        # As Python numbers, because `size` may exceed int32.
        low, high = map(int, torch.aminmax(value))
        if low < 0 or high >= size:
            bad = low if low < 0 else high
            raise IndexError(
                f"{op}: '{name}' must be in [0, {size}) (got {bad})"
            )
    return value


def plain_number(value: Any) -> Any:
    """Returns a number of NumPy as one of Python, and other values as is."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def fanouts(op: str, name: str, value: Sequence[int]) -> list[int]:
    """Returns the fan-out of each hop after checks, each at least -1."""
    if not isinstance(value, Iterable):
        raise TypeError(f"{op}: '{name}' must hold integers (got {value!r})")
    value = list(value)
    for fanout in value:
        if isinstance(fanout, bool) or not isinstance(fanout, int):
            raise TypeError(
                f"{op}: '{name}' must hold integers (got {fanout!r})"
            )
        if fanout < -1:
            raise ValueError(
                f"{op}: '{name}' must be -1 (all), 0 or positive "
                f'(got {fanout})'
            )
    return value


def count(op: str, name: str, value: int, least: int = 1) -> int:
    """Returns a count after checking its minimum."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{op}: '{name}' must be an integer (got {value!r})")
    if value < least:
        rule = '-1 (all) or more' if least == -1 else f'at least {least}'
        raise ValueError(f"{op}: '{name}' must be {rule} (got {value})")
    return value


def random_key(op: str, key: Tensor) -> Tensor:
    """Returns a key of shape ``[1, 3]``."""
    return random_keys(op, key, 1)


def random_keys(op: str, key: Tensor, batches: int | None) -> Tensor:
    """Returns keys of shape ``[batches, 3]``; None allows any number."""
    if not isinstance(key, Tensor) or key.dtype != torch.int64:
        raise TypeError(f"{op}: 'key' must be an int64 tensor (got {key!r})")
    any_size = batches is None and key.dim() > 0
    rows = key.shape[0] if any_size else batches
    if key.shape != (rows, 3):
        raise ValueError(
            f"{op}: 'key' must have shape [{rows}, 3], with rows of (seed, "
            f'epoch, batch) (got {list(key.shape)})'
        )
    if key.device.type != 'cpu':
        raise ValueError(f"{op}: 'key' must be on the CPU (got {key.device})")
    return contiguous(key)


def segment_ptr(
    op: str,
    name: str,
    ptr: Tensor,
    size: int | None = None,
    device: torch.device = CPU,
) -> Tensor:
    """Returns the start of each batch among ``size`` rows, after checks.

    Operators check that it ascends, and on a GPU also its end.

    Raises:
        ValueError: If it is empty, or does not end at ``size``.
    """
    ptr = int64_vector(op, name, ptr, device=device)
    if ptr.numel() == 0:
        raise ValueError(f"{op}: '{name}' must have at least one element")
    known = not is_compiling() and not ptr.is_cuda
    if size is not None and known and int(ptr[-1]) != size:
        raise ValueError(
            f"{op}: '{name}' must end at {size} (got {int(ptr[-1])})"
        )
    return ptr


def strategy(op: str, value: str) -> int:
    """Returns the operators' code of a temporal strategy."""
    if value not in STRATEGIES:
        raise ValueError(
            f"{op}: 'temporal_strategy' must be 'uniform' or 'last' "
            f'(got {value!r})'
        )
    return STRATEGIES.index(value)


@contextmanager
def opened(library: int | str | os.PathLike[str]) -> Iterator[int]:
    """Yields the file descriptor of a library."""
    if isinstance(library, int):
        yield library
    else:
        with open(library, 'rb') as file:
            yield file.fileno()


def time_window(op: str, value: int | None) -> int | None:
    """Returns the width of a time window after checks."""
    if value is not None and value < 0:
        raise ValueError(
            f"{op}: 'time_window' must not be negative (got {value})"
        )
    return value


def call(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls an operator that Ctrl-C can interrupt.

    Raises:
        IndexError: If the operator found an id that is not in the graph.
        KeyboardInterrupt: If it was interrupted.
        torch.OutOfMemoryError: If it needs more memory on the GPU.
    """
    try:
        return operator(*args, **kwargs)
    except RuntimeError as error:
        exception = raised(error)
        raise exception from None


def raised(error: RuntimeError) -> BaseException:
    """Returns the exception for an operator's error."""
    text = str(error)
    if ': interrupted' in text:
        return KeyboardInterrupt()
    if _NOT_A_NODE.search(text):
        return IndexError(_PLACE.sub('', text.splitlines()[0]))
    if _NO_MEMORY.match(text):
        return torch.OutOfMemoryError(text.splitlines()[0])
    return error


def raised_in_program(error: RuntimeError) -> BaseException:
    """Returns it for a compiled program, where only operators check values."""
    found = raised(error)
    text = _PLACE.sub('', str(error).partition('\n')[0])
    rule = _RULE.match(text)
    if found is not error or rule is None:
        return found
    return IndexError(text) if rule[1] else ValueError(text)
