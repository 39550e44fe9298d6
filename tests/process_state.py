"""State of the process, which a test must leave as it was."""

import contextvars
import os
import signal
import sys
from collections.abc import Callable
from reprlib import repr as short
from typing import Any, NamedTuple

import torch
import torch._dynamo.config as dynamo_config
from torch.nn.modules import module as nn_module
from torch.utils import deterministic

from torch_gsample import patch
from torch_gsample.loader import batch_edge_index, prefetch

_HOOKS = [
    value
    for name, value in vars(nn_module).items()
    if name.startswith('_global_') and isinstance(value, dict)
]


class State(NamedTuple):
    """A part of the state."""

    read: Callable[[], Any]
    #: Takes the value that was read before.
    restore: Callable[[Any], object]


def read(states: dict[str, State]) -> list[Any]:
    return [state.read() for state in states.values()]


def restore(states: dict[str, State], before: list[Any]) -> list[str]:
    """Restores states; returns those that had changed, with their values.

    What a set has lost, such as a thread, ended by itself.
    """
    changed = []
    for (name, state), old in zip(states.items(), before, strict=True):
        new = state.read()
        if not new <= old if isinstance(new, set) else new != old:
            changed.append(f'{name}: {short(old)} became {short(new)}')
            state.restore(old)
    return changed


# After each test #############################################################


def _restore_hooks(before: list[dict]) -> None:
    for hooks, known in zip(_HOOKS, before, strict=True):
        hooks.clear()
        hooks.update(known)


def _fusions() -> list[Any]:
    """Returns the active fusions, if their module was imported."""
    automatic = sys.modules.get('torch_gsample.fusion.automatic')
    return [] if automatic is None else list(automatic._active)


def _undo_fusions(before: list[Any]) -> None:
    for fusion in _fusions():
        if fusion not in before:
            fusion.undo()


def _undo_patches(before: list[Any]) -> None:
    for active in list(patch._active):
        if active not in before:
            active.undo()


def _end_threads(before: set[Any]) -> None:
    for thread in set(prefetch._running) - before:
        prefetch._running.pop(thread).close()
        thread.join()


def _contexts() -> dict[Any, Any]:
    """Returns the values that this package has set, not None or False."""
    return {
        variable: value
        for variable, value in contextvars.copy_context().items()
        if value and variable.name.startswith('torch_gsample')
    }


def _restore_contexts(before: dict[Any, Any]) -> None:
    for variable in _contexts():
        variable.set(before.get(variable))


def _determinism() -> tuple[bool, bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        deterministic.fill_uninitialized_memory,
    )


def _restore_determinism(before: tuple[bool, bool, bool]) -> None:
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])
    deterministic.fill_uninitialized_memory = before[2]


def _environment() -> dict[bytes, bytes]:
    """Returns this package's variables; `os.environ` would decode all."""
    known = os.environ._data  # type: ignore[attr-defined]
    return {k: known[k] for k in known if k.startswith(b'GSAMPLE')}


def _restore_environment(before: dict[bytes, bytes]) -> None:
    for name in _environment():
        del os.environb[name]
    os.environb.update(before)


OF_TESTS = {
    'fusion for all models': State(_fusions, _undo_fusions),
    'patch of PyG': State(lambda: list(patch._active), _undo_patches),
    'global hooks of modules': State(
        lambda: [dict(x) if x else {} for x in _HOOKS], _restore_hooks
    ),
    'threads that make batches': State(
        lambda: set(prefetch._running), _end_threads
    ),
    'context': State(_contexts, _restore_contexts),
    'default dtype': State(torch.get_default_dtype, torch.set_default_dtype),
    'grad mode': State(torch.is_grad_enabled, torch._C._set_grad_enabled),
    'deterministic mode': State(_determinism, _restore_determinism),
    'anomaly mode': State(torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    'autocast': State(
        lambda: torch.is_autocast_enabled('cpu'),
        lambda before: torch.set_autocast_enabled('cpu', before),
    ),
    'switch interval': State(sys.getswitchinterval, sys.setswitchinterval),
    'handler of Ctrl-C': State(
        lambda: signal.getsignal(signal.SIGINT),
        lambda before: signal.signal(signal.SIGINT, before),
    ),
    'folder': State(os.getcwd, os.chdir),
    'environment': State(_environment, _restore_environment),
    'arguments': State(
        lambda: list(sys.argv), lambda before: setattr(sys, 'argv', before)
    ),
}


# After each file #############################################################


def _drop_readers(before: set[Any]) -> None:
    batch_edge_index.READERS.intersection_update(before)


def _restore_dynamo(before: dict[str, Any]) -> None:
    now = dynamo_config.get_config_copy()
    for name, value in before.items():
        if now[name] != value:
            setattr(dynamo_config, name, value)


#: Readers of blocks, such as fused models, are free after a collection.
OF_FILES = OF_TESTS | {
    'readers of blocks': State(
        lambda: set(batch_edge_index.READERS), _drop_readers
    ),
    "Dynamo's configuration": State(
        dynamo_config.get_config_copy, _restore_dynamo
    ),
}


def read_attributes() -> dict[Any, dict[str, Any]]:
    """Returns the attributes of this package's modules and classes."""
    found: dict[Any, dict[str, Any]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition('.')[0] == 'torch_gsample':
            found[module] = dict(vars(module))
            for value in found[module].values():
                if isinstance(value, type) and value.__module__ == name:
                    found[value] = dict(vars(value))
    return found


#: Attributes that PyG generates for the class of the first layer.
_GENERATED = 'propagate', 'edge_updater'


def restore_attributes(before: dict[Any, dict[str, Any]]) -> list[str]:
    """Restores attributes that are other objects; returns their names.

    What was None may have been made at its first use.
    """
    changed = []
    for owner, old in before.items():
        new = vars(owner)
        for name, value in old.items():
            if value is None or name in _GENERATED:
                continue
            if new.get(name, before) is not value:
                changed.append(f'{owner.__name__}.{name}')
                setattr(owner, name, value)
    return changed
