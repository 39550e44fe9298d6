"""Private parts of torch for captures and captured programs."""

import contextlib
import dataclasses
import functools
import itertools
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._C._dynamo.eval_frame import (
    _FrameAction,
    _FrameExecStrategy,
    set_code_exec_strategy,
)
from torch._dynamo.exc import Unsupported, UserError, UserErrorType
from torch._dynamo.source import GlobalSource, LocalSource, TypeSource
from torch._dynamo.symbolic_convert import tls

# Dynamo's names of Python's operators whose left operand is no tensor.
from torch._dynamo.variables.builtin import BUILTIN_TO_TENSOR_RFN_MAP
from torch.fx import GraphModule, Node

# Writes down the operators of torch that a call makes.
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

# Says whether two tensors share memory: examples have no address.
from torch.multiprocessing.reductions import StorageWeakRef

# Captures ####################################################################


def capture_unknown_lengths(backends: Sequence[Callable[..., Any]]) -> None:
    """Lets a capture of these backends go on at `nonzero`, `unique` and masks.

    What says so is a setting of each capture, which Dynamo takes from
    ``fullgraph`` or from the configuration of the process: one that other
    backends see. Where torch lacks the setting, the graph breaks as it does
    by default.
    """
    output: Any = getattr(getattr(tls, 'current_tx', None), 'output', None)
    if output is None or _backend_of(output) not in backends:
        return
    name = 'allow_dynamic_output_shape_ops'
    settings: Any = getattr(output.shape_env, 'settings', None)
    if getattr(settings, name, True) is False:
        # A copy: what torch cached by the settings it had stays right.
        settings = dataclasses.replace(settings, **{name: True})
        output.shape_env.settings = settings
        _break_at_unknown_lengths(output.shape_env)


class _AsksForLength(GuardOnDataDependentSymNode, UserError, Unsupported):
    """A branch on a length that is not known breaks the graph.

    Dynamo knows that of `if ids.numel() > 3`; `if ids.numel()` fails.
    """


def _break_at_unknown_lengths(shape_env: Any) -> None:
    """Makes the errors of a capture ones that break its graph."""
    make = shape_env._make_data_dependent_error

    def make_error(*args: Any, **kwargs: Any) -> Exception:
        error = make(*args, **kwargs)
        kind = UserErrorType.ANTI_PATTERN
        return _AsksForLength(error.cond, kind, str(error))

    shape_env._make_data_dependent_error = make_error


def _backend_of(output: Any) -> Any:
    """Returns the compiler of a capture, without its wrappers."""
    found = getattr(output, 'compiler_fn', None)
    for wrapper in '_torchdynamo_orig_backend', 'compiler_fn', '__wrapped__':
        found = getattr(found, wrapper, found)
    return found


# Captured programs ###########################################################

#: The operators that Dynamo adds for each unknown size.
ASSERT_SCALAR = torch.ops.aten._assert_scalar.default
#: The operator that switches gradients on and off in a captured program, and
#: prefixes of the operators that enter and leave other modes.
SET_GRAD_ENABLED = torch._C._set_grad_enabled
ENTERS, EXITS = '_enter_', '_exit_'


def argument_of(node: Node) -> str | None:
    """The argument of the captured function that an input is, if it is one."""
    source = getattr(node, '_dynamo_source', None)
    return source.local_name if isinstance(source, LocalSource) else None


def is_of_module(node: Node) -> bool:
    """Whether an input of a captured program is a parameter or a buffer."""
    source = getattr(node, '_dynamo_source', None)
    guard = getattr(source, 'guard_source', None)
    return 'NN_MODULE' in str(guard() if callable(guard) else guard)


def name_reversed_product() -> None:
    """Makes Dynamo capture ``A @ D`` as ``D.__rmatmul__(A)``.

    It has no name for it, and captures ``D @ A``.
    """
    BUILTIN_TO_TENSOR_RFN_MAP.setdefault(
        operator.matmul, torch.Tensor.__rmatmul__
    )


def name_of_source(node: Node) -> str:
    """Returns Dynamo's name of an input of a captured program."""
    name = getattr(getattr(node, '_dynamo_source', None), 'name', node.name)
    return str(name() if callable(name) else name)


def are_same(first: torch.SymInt, second: torch.SymInt) -> bool:
    """Whether sizes are equal by form: to compare them adds an assertion."""
    return bool(first.node.expr == second.node.expr)


def memory_of(tensor: torch.Tensor) -> Any:
    """Returns a key that is equal for tensors that share their memory."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    return StorageWeakRef(tensor.untyped_storage())


def operators_of(
    call: Callable[..., Any], inputs: list[Any], mode: Any, grad: bool
) -> GraphModule:
    """The operators of torch that a call makes, above autograd.

    Args:
        call (Callable): The function to call.
        inputs (List[Any]): Examples: fake tensors, and sizes.
        mode (FakeTensorMode, optional): That of the examples.
        grad (bool): Whether gradients are recorded.
    """
    with examples_of(mode, grad):
        return make_fx(call, pre_dispatch=True)(*inputs)


@contextlib.contextmanager
def examples_of(mode: Any, grad: bool) -> Iterator[None]:
    """Within it, operators of examples give examples.

    Sizes that they make are forgotten: nobody will know them.
    """
    with contextlib.ExitStack() as stack:
        if mode is not None:
            stack.enter_context(mode)
            if mode.shape_env is not None:
                forget = mode.shape_env.ignore_fresh_unbacked_symbols
                stack.enter_context(forget())
        stack.enter_context(torch.set_grad_enabled(grad))
        yield


def expression_of(size: Any) -> Any:
    """The sympy symbol that a size of an input had at first."""
    return size.node._expr if isinstance(size, torch.SymInt) else size


def rules_of_sizes(examples: Any) -> list[Any]:
    """Returns the assumptions of a capture on sizes, as sympy expressions.

    Args:
        examples (Sequence[torch.Tensor]): Dynamo's examples of the inputs.
    """
    sizes = [n for x in examples for n in x.shape]
    symbols = [n for n in sizes if isinstance(n, torch.SymInt)]
    if not symbols:
        return []
    env = symbols[0].node.shape_env
    rules = [guard.expr for guard in env.guards]
    for symbol in sorted({expression_of(n) for n in symbols}, key=str):
        if not env.is_unbacked_symint(symbol):
            rules.append(symbol >= env.var_to_range[symbol].lower)
    return [rule for rule in rules if str(rule) != 'True']


def unknown_size(like: torch.Tensor) -> Any:
    """A size that nothing is known of; 1 where ``like`` is no example."""
    mode = getattr(like, 'fake_mode', None)
    if mode is None or mode.shape_env is None:
        return 1
    return mode.shape_env.create_unbacked_symint()


# Compilations ################################################################

#: Guards of modes that :class:`.Compiled` compares itself, and of hooks that
#: autograd calls by itself.
_MODES = frozenset(
    {'GLOBAL_STATE', 'GRAD_MODE', 'AUTOGRAD_SAVED_TENSORS_HOOKS'}
)
#: How Dynamo's names of Python's builtins and of modules of torch and of this
#: package begin: nobody sets what these hold.
_FIXED = '__builtins_dict__', '__import_torch'
#: Makes each copied code object's name unique: Dynamo remembers by these.
_COPIES = itertools.count()


@functools.lru_cache
def unknown_length() -> dict[str, Any]:
    """The attributes of a vector whose length Dynamo must not fix.

    To mark each vector takes Dynamo long.
    """
    from torch._dynamo.decorators import mark_unbacked

    vector = torch.empty(2)
    mark_unbacked(vector, 0)
    return vars(vector)


def maybe_dynamic(x: torch.Tensor) -> None:
    """Marks a tensor whose length Dynamo should not fix, if it can."""
    from torch._dynamo.decorators import maybe_mark_dynamic

    if x.dim():
        maybe_mark_dynamic(x, 0)


def may_change(guards: Any) -> list[bool]:
    """Returns which guards Dynamo must check at each call.

    Modes and constants are excluded: their checks take longer than a small
    sample.
    """
    return [
        guard.guard_type not in _MODES
        and not _is_fixed(guard.orig_guard.originating_source)
        and not _always_holds(guard)
        for guard in guards
    ]


def _is_fixed(source: Any) -> bool:
    """Whether a value is held by a class, or by a module of ``_FIXED``."""
    while hasattr(source, 'base'):
        if isinstance(source, TypeSource):
            return True
        source = source.base
    return isinstance(source, GlobalSource) and source.global_name.startswith(
        _FIXED
    )


def _always_holds(guard: Any) -> bool:
    """Whether no size can fail: Dynamo evaluates that they are not below 0."""
    return guard.guard_type == 'SHAPE_ENV' and all(
        code.startswith(('0 <= L[', '0 <= G['))
        and code.endswith(']')
        and ' ' not in code[5:]
        for code in guard.orig_guard.code_list or ('',)
    )


def only_as_compiled(function: Any) -> Callable[..., Any]:
    """A function that Dynamo compiled, and compiles no more.

    Where nothing that was compiled fits, it runs as it is, at that speed:
    Dynamo does not look at what it calls.
    """
    program = function.__wrapped__
    strategy = _FrameExecStrategy(_FrameAction.RUN_ONLY, _FrameAction.SKIP)
    set_code_exec_strategy(program.__code__, strategy)
    return torch._dynamo.run(program)


def own_copy(program: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does the same, with compilations of its own.

    Dynamo caches these with the code of a function, a few at most. By the name
    of the code it remembers sizes that changed, which it then does not fix:
    those of one graph would be unknown where another one is sampled.
    """
    number = next(_COPIES)
    if isinstance(program, types.FunctionType):
        code = program.__code__
        copy = types.FunctionType(
            code.replace(co_name=f'{code.co_name}#{number}'),
            program.__globals__,
            program.__name__,
            program.__defaults__,
            program.__closure__,
        )
        copy.__kwdefaults__ = program.__kwdefaults__
        return copy

    def call(*args: Any, **kwargs: Any) -> Any:
        return program(*args, **kwargs)

    call.__code__ = call.__code__.replace(co_name=f'call#{number}')
    return call
