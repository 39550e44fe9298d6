"""The private parts of torch, each with the reason why the package needs it.

Nothing else touches them. ``tests/test_torch_private.py`` checks each on the
installed torch, and says what breaks without it. It is below ``ops``, as
operators need some of it, and imports nothing of the package. Parts
that import Dynamo, for a second, are in modules of their own.
"""

import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch._library.fake_impl import allocate_size

# The kind of a node that is a call: torch has no public name for it.
from torch._ops import OpOverload, OpOverloadPacket

# Examples of a captured program's values: an operator that a pass adds needs
# one, which only their mode makes.
from torch._subclasses.fake_tensor import FakeTensor

# Carries the error of a worker to its loader, as torch's own loaders do.
from torch._utils import ExceptionWrapper
from torch.autograd import forward_ad, profiler
from torch.compiler import is_dynamo_compiling

# Sees each tensor that a run makes, to count its bytes.
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

Function = TypeVar('Function', bound=Callable[..., Any])

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
    """Returns the environment of :func:`allocate_size` in a fake kernel.

    The public ``new_dynamic_size`` asks for a configuration flag.
    """
    return getattr(context, '_shape_env', None)


def constant_result(function: Function) -> Function:
    """Marks a function for Dynamo to call while it captures.

    As ``torch.compiler.assume_constant_result``, which imports Dynamo.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


# Tensors #####################################################################

#: Torch's count of in-place changes of a tensor.
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


def may_require_grad(x: torch.Tensor) -> bool:
    """Whether autograd, or a transform at any level, wants a gradient."""
    functorch = torch._C._functorch
    while not x.requires_grad:
        if not functorch.is_functorch_wrapped_tensor(x):
            return False
        x = functorch.get_unwrapped(x)
    return True


def is_mapped(x: torch.Tensor) -> bool:
    """Whether ``torch.vmap`` maps a tensor at any level."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(x):
        if functorch.is_batchedtensor(x):
            return True
        x = functorch.get_unwrapped(x)
    return False


def without_transforms(x: torch.Tensor) -> torch.Tensor:
    """Returns the tensor that transforms wrap, which none of them maps."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(x):
        x = functorch.get_unwrapped(x)
    return x


#: Unwraps what a transform that has ended left, as ``torch.func.vjp`` does.
without_ended = torch._C._functorch.unwrap_if_dead

#: Whether ``is_grads_batched`` or ``vectorize`` maps a tensor: no transform
#: of ``torch.func`` is active then.
is_vectorized = torch._C._functorch.is_legacy_batchedtensor

#: Within it, transforms of ``torch.func`` do not see operators.
without_functorch = torch._C._DisableFuncTorch

#: In a rule of forward mode, the tangents of outer levels go on.
set_forward_mode = forward_ad._set_fwd_grad_enabled


#: Calls operators without their gradients, which torch.library runs in Python:
#: that takes longer than a small sample's features.
below_autograd = torch._C._AutoDispatchBelowAutograd
#: Lets operators of a tensor subclass return plain tensors, as parameters do.
PLAIN_RESULTS = torch._C._disabled_torch_function_impl
#: Within it, operators do not ask tensor subclasses.
no_subclass_dispatch = torch._C.DisableTorchFunctionSubclass


def wrapper_tensor(
    kind: type, shape: Any, dtype: torch.dtype, device: torch.device
) -> Any:
    """Returns a tensor of a subclass that has a shape, but no memory."""
    return torch.Tensor._make_wrapper_subclass(
        kind, shape, dtype=dtype, device=device
    )


def is_in_backward() -> bool:
    """Whether this thread computes gradients: checkpoints call layers then."""
    return torch._C._current_graph_task_id() != -1


def checkpoint_frame() -> Any:
    """Returns torch's record of the activation checkpoint that runs.

    It is the same in the first call and in its repetition in backward: no
    public function identifies a checkpoint. None without one, in reentrant
    ones, and inside other hooks of saved tensors.
    """
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    if hooks is None:
        return None
    pack: Any = getattr(hooks[0], '_torchdynamo_orig_callable', hooks[0])
    if getattr(pack, '__module__', '') != 'torch.utils.checkpoint':
        return None
    found = inspect.getclosurevars(pack).nonlocals
    if 'target_frame_ref' in found:
        return found['target_frame_ref']()
    return found.get('frame')


def is_of_backward(function: Any) -> bool:
    """Whether autograd calls a function, an operator that a mode sees."""
    return isinstance(function, OpOverload) and is_in_backward()


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


def is_traced() -> bool:
    """Whether a call is being compiled, exported or traced.

    Torch's public functions call others, and a graph may be so small that
    these take longest.
    """
    return (
        is_dynamo_compiling()
        or torch.compiler._is_compiling_flag
        or torch._C._is_tracing()
    )


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

    def fetch(self, index: Any) -> Any:
        """Makes the batch of indices, in any thread."""
        return self._dataset_fetcher.fetch(index)


def pins_memory(iterator: Any) -> bool:
    """Whether the iterator of a loader is to copy batches to pinned memory."""
    return iterator._pin_memory
