"""Error messages of programs that cannot be captured."""

import re
import traceback
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data.data import BaseData

from torch_gsample.torch_private.errors import (
    FailOnRecompileLimitHit,
    TorchDynamoException,
)

_PACKAGE = Path(__file__).resolve().parent.parent
_TORCH = Path(torch.__file__).resolve().parent
#: Folders whose lines do not belong to a user's program.
_INNER = [_PACKAGE / name for name in ('compiler', 'ops', 'samplers')]
_INNER += [_PACKAGE / 'sparse_sample', _TORCH]

_BRANCH = (
    'it branches or loops on values known only at run time',
    'Write masks (`A.masked(...)`, `torch.where`) in place of `if`, operators '
    'on whole tensors in place of a loop over values, and a loop of a fixed '
    'number of steps in place of `while`; or `torch.while_loop`, if its '
    'variables keep their shapes.',
)
_PRINT = (
    'it prints',
    'Return the values, and print them outside of the function.',
)
_LIMIT = (
    'it was compiled for too many kinds of arguments',
    'Compile one function for each value of changing numbers (such as '
    'fan-outs), or pass these as tensors.',
)
_CALL = (
    'it calls a function without a torch operator',
    'Call it outside and pass its result as an argument, or make it an '
    'operator with `torch.library.custom_op`.',
)
_NUMBER = (
    'it draws or computes a Python number in each call',
    'Pass it as an argument, or compute it with tensors.',
)
_ORDER = (
    'it indexes a tensor with a SparseSample',
    'Check the order of the arguments: programs are called with the graph '
    'first, as `program(A, seeds)`.',
)
_TENSOR = (
    'it calls a method that tensors do not have',
    'A graph must be a SparseSample: pass '
    '`SparseSample.from_edge_index(edge_index)` or `from_data(data)`.',
)
_EXPORTED = (
    'it calls an exported program, which is compiled already',
    'Call it uncompiled.',
)
#: Parts of Dynamo's messages with their meanings; the first match counts.
_MEANINGS = (
    (('program was exported',), _EXPORTED),
    (('Hard failure due to fullgraph', 'recompile_limit'), _LIMIT),
    (('builtin operator `print`', 'builtin `print`', 'reorderable'), _PRINT),
    (('data-dependent', 'dynamic control flow', 'Tensor.item'), _BRANCH),
    (('constant fold', 'UnspecializedPython'), _NUMBER),
    (('Failed to convert args/kwargs to proxy',), _ORDER),
    (('Unhandled tensor method',), _TENSOR),
    (('does not know how to trace', 'Unsupported function call'), _CALL),
)


class OptionError(ValueError):
    """An option that is invalid for the program."""


class CompileError(RuntimeError):
    """A program that cannot be captured as one graph.

    The message shows the lines of the program, and what to write instead.
    """


def check_no_data(name: str, args: Any, error: Exception) -> None:
    """Checks that a failed program did not get PyG's data as its graph.

    Raises:
        TypeError: If it did; it says how to convert the data.
    """
    graph = args[0] if args else None
    if isinstance(error, TypeError) and isinstance(graph, BaseData):
        raise TypeError(
            f"compile: the first argument of '{name}' must be a SparseSample: "
            f'pass SparseSample.from_data(data) (got '
            f'{type(graph).__name__}; {error})'
        ) from error


def is_capture_error(error: BaseException) -> bool:
    """Whether Dynamo raised an error, rather than the program."""
    kinds = TorchDynamoException, FailOnRecompileLimitHit
    return isinstance(error, kinds) or bool(_stack(error))


def is_limit(error: BaseException) -> bool:
    """Whether Dynamo's limit of compilations of a function is reached.

    False if its configuration requires an error instead.
    """
    is_known = isinstance(error, FailOnRecompileLimitHit)
    return is_known and 'fail_on_recompile_limit_hit' not in str(error)


def describe_limit(name: str) -> str:
    """Returns the warning for a program compiled too often."""
    return (
        f"compile: '{name}' {_LIMIT[0].removeprefix('it ')}. Calls that "
        f'fit no compilation run uncompiled. '
        f'{_LIMIT[1]} Or allow more compilations: '
        f'`torch._dynamo.config.recompile_limit`.'
    )


def describe(name: str, error: BaseException) -> str:
    """Returns why and where a program was rejected, with an alternative.

    Args:
        name (str): The program.
        error (BaseException): Dynamo's error.
    """
    text = str(error)
    unknown = (
        text.strip().partition('\n')[0].rstrip('.'),
        'Write it with operators of torch and of SparseSample.',
    )
    known = (
        meaning
        for marks, meaning in _MEANINGS
        if any(mark in text for mark in marks)
    )
    reason, advice = next(known, unknown)
    lines = [f"compile: '{name}' cannot be captured as one graph: {reason}"]
    lines += [
        f'  {frame.filename}:{frame.lineno}, in '
        f'{frame.name.partition("#")[0]}: {frame.line}'
        for frame in _frames_of_user(error)
    ]
    return '\n'.join([*lines, advice])


def _stack(error: BaseException) -> traceback.StackSummary | None:
    return getattr(error, 'real_stack', None)


def _frames_of_user(error: BaseException) -> list[traceback.FrameSummary]:
    """Returns the calls that led to an error, outermost first.

    Frames of the package are omitted, except the last one.
    """
    frames = list(_stack(error) or [])
    return [f for f in frames[:-1] if not _is_inner(f)] + frames[-1:]


def line_of(stack_trace: str, with_text: bool = False) -> str:
    """Returns the program's source line of a node, if known.

    Args:
        stack_trace (str): The stack trace of the node.
        with_text (bool, optional): Whether to append the text of the line to
            file and number.
    """
    frames = [
        traceback.FrameSummary(path, int(line), '')
        for path, line in re.findall(r'File "(.+?)", line (\d+)', stack_trace)
    ]
    own = [frame for frame in frames if not _is_inner(frame)]
    if not own:
        return ''
    place = f'{Path(own[-1].filename).name}:{own[-1].lineno}'
    return f'{place}: {own[-1].line}' if with_text else place


def _is_inner(frame: traceback.FrameSummary) -> bool:
    parents = Path(frame.filename).resolve().parents
    return any(inner in parents for inner in _INNER)
