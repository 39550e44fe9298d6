"""The private parts of torch, each with the reason why the package needs it.

No other file touches them. ``tests/test_torch_private.py`` checks each on the
installed torch, and says what breaks without it. The file is below ``ops``, as
operators need some of it, and imports nothing of the package.
"""

import functools
import itertools
import operator
import types
from collections.abc import Callable
from typing import Any

import torch

# Errors of a capture: what is said to users depends on who failed.
from torch._dynamo.exc import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    TorchDynamoException,
    TorchRuntimeError,
)
from torch._dynamo.source import GlobalSource, LocalSource, TypeSource

# Dynamo's names of Python's operators whose left operand is no tensor.
from torch._dynamo.variables import builtin
from torch._library.fake_impl import allocate_size

# What calls in a captured program: torch has no public name for it.
from torch._ops import OpOverload, OpOverloadPacket

# Examples of a captured program's values: an operator that a pass adds needs
# one, which only their mode makes.
from torch._subclasses.fake_tensor import FakeTensor

# Carries the error of a worker to its loader, as torch's own loaders do.
from torch._utils import ExceptionWrapper
from torch.autograd import forward_ad, profiler
from torch.compiler import is_dynamo_compiling
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    guard_or_false,
)

# Sees each tensor that a run makes, to count its bytes.
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

# Operators ###################################################################


def has_kernel(name: str, key: str) -> bool:
    """Whether an operator has a kernel for a dispatch key, as ``'CUDA'``."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def schema_of(target: Any) -> Any:
    """The schema of an operator: its arguments by name; None for others."""
    return getattr(target, '_schema', None)


def overload_name(name: str, args: Any, kwargs: dict[str, Any]) -> str:
    """The overload of an operator of ATen that takes these arguments.

    Raises:
        RuntimeError: If none does.
    """
    return torch._C._jit_resolve_packet(f'aten::{name}', *args, **kwargs)


def shape_env_of(context: Any) -> Any:
    """Where a fake kernel allocates sizes, by :func:`allocate_size`.

    The public ``new_dynamic_size`` asks for a configuration flag.
    """
    return getattr(context, '_shape_env', None)


# Tensors #####################################################################

#: How often a tensor was changed in place, as torch counts it.
version_of = operator.attrgetter('_version')


def is_transformed() -> bool:
    """Whether forward mode, or a transform of ``torch.func``, is active.

    Dynamo does not see it: operators find it when they are captured.
    """
    return not is_dynamo_compiling() and (
        forward_ad._current_level >= 0
        or torch._C._are_functorch_transforms_active()
    )


def is_reached_by_transform(x: torch.Tensor) -> bool:
    """Whether forward mode or ``torch.func`` differentiates or maps it."""
    transforms = torch._C._are_functorch_transforms_active()
    reverse = torch.is_grad_enabled() and transforms
    forward = torch._C._is_fwd_grad_enabled()
    return bool(
        torch._C._functorch.is_batchedtensor(x)
        or (reverse and x.requires_grad)
        or (forward and forward_ad.unpack_dual(x).tangent is not None)
    )


#: Calls operators without their gradients, which torch.library runs in Python:
#: that takes longer than a small sample's features.
below_autograd = torch._C._AutoDispatchBelowAutograd
#: Lets operators of a tensor subclass return plain tensors, as parameters do.
PLAIN_RESULTS = torch._C._disabled_torch_function_impl
#: Within it, operators do not ask tensor subclasses.
no_subclass_dispatch = torch._C.DisableTorchFunctionSubclass


def is_in_backward() -> bool:
    """Whether this thread computes gradients: checkpoints call layers then."""
    return torch._C._current_graph_task_id() != -1


def has_hooks(module: torch.nn.Module) -> bool:
    """Whether somebody sees what goes into a module, or comes out of it."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def is_view(x: torch.Tensor) -> bool:
    """Whether autograd takes a tensor for a view of another one."""
    return x._is_view()


def has_dispatch_modes() -> bool:
    """Whether somebody sees operators as they are called, or makes them up."""
    return torch._C._len_torch_dispatch_stack() > 0


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether calls of a module are compiled."""
    wrapped = hasattr(module, '_orig_mod')
    return wrapped or module._compiled_call_impl is not None


# Processes ###################################################################


def is_cuda_lost() -> bool:
    """Whether the process was forked after CUDA was used."""
    return torch.cuda._is_in_bad_fork()


def is_profiling() -> bool:
    """Whether someone profiles: a range costs microseconds anyway."""
    return profiler._is_profiler_enabled


def iterator_of(loader: Any) -> Any:
    """The iterator that a loader with persistent workers goes on with."""
    return loader._iterator


def new_iterator(loader: Any) -> Any:
    """Returns torch's own iterator of a loader.

    That of workers does not refer to the loader, whose method they call: it
    keeps the iterator while workers persist, and the garbage collector closes
    the queues of a cycle before workers are told to end.
    """
    if loader.num_workers == 0:
        return _Iterator(loader)
    iterator: Any = DataLoader._get_iterator(loader)
    iterator._collate_fn = None  # which the workers have
    return iterator


class _Iterator(_SingleProcessDataLoaderIter):
    """Torch's, with ranges in profiles only where someone profiles."""

    def __next__(self) -> Any:
        if is_profiling():
            return super().__next__()
        batch = self._next_data()
        self._num_yielded += 1
        return batch


def pins_memory(iterator: Any) -> bool:
    """Whether the iterator of a loader is to copy batches to pinned memory."""
    return iterator._pin_memory


# Captured programs ###########################################################

#: What Dynamo adds for each size that it does not know.
ASSERT_SCALAR = torch.ops.aten._assert_scalar.default
#: What sets whether gradients are recorded in a captured program, and how the
#: names of what enters and leaves other modes begin.
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
    reversed_names = builtin.BUILTIN_TO_TENSOR_RFN_MAP
    reversed_names.setdefault(operator.matmul, torch.Tensor.__rmatmul__)


def are_same(first: torch.SymInt, second: torch.SymInt) -> bool:
    """Whether sizes are equal by form: to compare them adds an assertion."""
    return bool(first.node.expr == second.node.expr)


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


def may_change(guards: Any) -> list[bool]:
    """What Dynamo is to compare at each call, of all that it noted.

    Not the modes, and not what nobody changes: to compare it takes longer
    than a small sample.
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
