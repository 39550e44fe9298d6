"""Automatic fusion of the models in an unchanged script."""

import sys
import threading
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch_geometric.nn.conv import MessagePassing

from torch_gsample.fusion.calls import State, current
from torch_gsample.fusion.fused_model import FusedModel
from torch_gsample.fusion.model import (
    MIN_NODES,
    fuse_blocks,
    fuse_layers,
    unfuse,
    why_not,
)
from torch_gsample.fusion.modules import FusedLayer
from torch_gsample.fusion.report import print_report
from torch_gsample.fusion.watched_rows import Reads, watched_rows
from torch_gsample.loader.batch_edge_index import READERS, marked_edges
from torch_gsample.torch_private import is_in_backward, tree_map


class _Inside(threading.local):
    """The outermost module with layers in a thread's current call."""

    module: Any = None
    #: The first edges of a batch among its arguments.
    edges: Any = None
    #: The outermost module with layers if no edges of a batch were seen, and
    #: whether a layer in it had a large result.
    outer: Any = None
    is_large: bool = False

    def __init__(self) -> None:
        #: The modules whose keyword arguments a hook reads in each call.
        self.hooked: WeakSet[nn.Module] = WeakSet()


#: Marks a module that was not called yet.
_UNSEEN: Any = object()


class _Known:
    """Properties of a module with layers."""

    def __init__(self) -> None:
        #: Whether the analysis is complete.
        self.is_done = False
        #: The rows of its outputs that were read, their batch, and the thread
        #: that reads them until its next batch.
        self.reads: Reads | None = None
        self.batch: Any = None
        self.thread: Any = None
        #: Reads its keyword arguments.
        self.hook: Any = None
        #: Whether a layer had a large result without edges of a batch, and the
        #: state of its layers once they are fused for such calls.
        self.is_large = False
        self.whole: State | None = None
        self.is_reported = False

    def end(self) -> None:
        """Ends the analysis, and frees its memory."""
        self.is_done = True
        self.reads, self.batch, self.thread = None, None, None
        if self.hook is not None:
            self.hook.remove()


class AutomaticFusion:
    """Fuses each model that is called with a large graph.

    A model is the outermost module with layers in a call. Its first batch runs
    unfused and records which rows of the outputs are read. If the seeds' rows
    suffice, the model is fused at its second batch, and computes only these
    rows from the third on. Otherwise, only its layers are fused.

    The layers of a model that is called with other edges, such as those of a
    whole graph, are fused at its second call.

    It applies to all threads; calls are tracked per thread.

    Args:
        min_nodes (int, optional): Smaller batches and graphs run unchanged.
    """

    def __init__(self, min_nodes: int = MIN_NODES):
        self._min_nodes = min_nodes
        #: None for modules without layers.
        self._known: WeakKeyDictionary[nn.Module, _Known | None]
        self._known = WeakKeyDictionary()
        self._inside = _Inside()
        self._lock = threading.RLock()
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        READERS.add(self)
        _active.append(self)

    def undo(self) -> None:
        """Restores the classes of all models."""
        READERS.discard(self)
        if self in _active:
            _active.remove(self)
        with self._lock:
            known = [k.hook for k in self._known.values() if k is not None]
            for hook in (*self._hooks, *filter(None, known)):
                hook.remove()
            for module in list(self._known):
                unfuse(module)
            self._known.clear()

    def _enter(self, module: nn.Module, args: Any) -> None:
        """Handles a module's call by its positional arguments."""
        known = self._candidate(module)
        if known is None:
            return
        if self._inside.outer in (None, module):
            self._inside.outer, self._inside.is_large = module, False
            if known.is_large and known.whole is None and not known.is_done:
                with self._lock:
                    _fuse_whole(module, known, self._min_nodes)
        if self._begin(module, known, args):
            return
        if module not in self._inside.hooked:
            # If its edges are a keyword argument, its parts are not models.
            # This call began without the hook, even if another thread has
            # registered it now.
            with self._lock:
                if known.hook is None:
                    known.hook = module.register_forward_pre_hook(
                        _enter_named, with_kwargs=True
                    )
            self._inside.hooked.add(module)
            self._inside.module = module
            current.is_whole = True

    def enter_named(self, module: nn.Module, values: Any) -> None:
        """Handles a module's call by its keyword arguments."""
        inside = self._inside
        if inside.module is module and inside.edges is None:
            inside.module = None  # this call has the hook
            current.is_whole = False
        known = self._candidate(module)
        if known is None or self._begin(module, known, values):
            return
        with self._lock:
            known.hook.remove()  # its edges are among others

    def _candidate(self, module: nn.Module) -> _Known | None:
        if (
            torch.compiler.is_compiling()
            or self._inside.module is not None
            or current.call is not None
            or current.is_whole  # a part of a model
            or is_in_backward()  # of a part that is computed again
            or self._is_fused(module)
            or type(module).__module__.startswith('torch.nn.parallel')
        ):
            return None
        known = self._known.get(module, _UNSEEN)
        if known is not _UNSEEN:
            return known
        layers = (isinstance(m, MessagePassing) for m in module.modules())
        made = _Known() if any(layers) else None
        with self._lock:
            return self._known.setdefault(module, made)

    def _begin(self, module: nn.Module, known: _Known, values: Any) -> bool:
        """Begins a model's call if it has edges of a batch."""
        edges = next(marked_edges(*values), None)
        if edges is None:
            return False
        inside = self._inside
        inside.module, inside.edges, inside.outer = module, edges, None
        # Also the call in which it is fused, which began without its class.
        current.is_whole = not known.is_done
        if not known.is_done and edges.batch.num_nodes >= self._min_nodes:
            with self._lock:
                self._see_batch(module, known, edges.batch)
        return True

    def _see_batch(self, module: nn.Module, known: _Known, batch: Any) -> None:
        if known.is_done or known.batch is batch or self._is_fused(module):
            return
        if _is_left(module, known):
            return
        if known.reads is None:
            known.reads = Reads(f'model {type(module).__name__}')
            known.batch = batch
            known.thread = threading.current_thread()
        elif (
            known.thread is threading.current_thread()
            or not known.thread.is_alive()
        ):
            reason, state = known.reads.reason, known.whole
            if state is None:
                state = _new_state(module, self._min_nodes)
                fuse_layers(module, state)
            if reason:
                state.refused = dict.fromkeys((False, True), reason)
            state.is_whole, known.whole = False, None
            # The hook ends last: without it, parts of a model that is not
            # fused would be models in other threads.
            fuse_blocks(module, state)
            known.end()
            if reason:
                print_report(state)

    def _leave(self, module: nn.Module, args: Any, out: Any) -> Any:
        if torch.compiler.is_compiling():
            return None
        inside = self._inside
        if inside.outer is not None:
            self._see_result(module, out)
        if inside.module is not module:
            return None
        edges, inside.module, inside.edges = inside.edges, None, None
        current.is_whole = False
        known = self._known.get(module)
        reads = None if known is None else known.reads
        if reads is None or edges is None:
            return None
        counts = _seed_counts(edges)

        def watch(x: Any) -> Any:
            count = counts.get(x.shape[0]) if _is_rows(x) else None
            return x if count is None else watched_rows(x, reads, count)

        return tree_map(watch, out)

    def _see_result(self, module: nn.Module, out: Any) -> None:
        """Notes whether a module was called with a large graph.

        Its layers are fused at the next call: a checkpoint repeats this one.
        """
        inside = self._inside
        if isinstance(module, MessagePassing) and not inside.is_large:
            inside.is_large = _num_rows(out) >= self._min_nodes
        if inside.outer is not module:
            return
        inside.outer = None
        known = self._known.get(module)
        if inside.is_large and known is not None:
            known.is_large = True
            if known.whole is not None and not known.is_reported:
                known.is_reported = True
                print_report(known.whole)

    def _is_fused(self, module: nn.Module) -> bool:
        """Whether a module is fused, and not only for whole graphs."""
        if not isinstance(module, (FusedModel, FusedLayer)):
            return False
        known = self._known.get(module)
        return known is None or known.whole is None


#: Active instances. Copied modules have copied hooks, which find them here.
_active: list[AutomaticFusion] = []


def _enter_named(module: nn.Module, args: Any, kwargs: Any = None) -> None:
    # Torch passes no keywords to a hook that another hook has just removed.
    if kwargs is None or torch.compiler.is_compiling():
        return
    for fusion in list(_active):
        fusion.enter_named(module, tuple(kwargs.values()))


def _is_left(module: nn.Module, known: _Known) -> bool:
    """Ends the analysis of a module that cannot be fused, with a message."""
    reason = next(filter(None, map(why_not, module.modules())), '')
    if reason:
        known.end()
        print(
            f'fuse: {type(module).__name__} is left as it is: it must not be '
            f'{reason}',
            file=sys.stderr,
        )
    return bool(reason)


def _fuse_whole(module: nn.Module, known: _Known, min_nodes: int) -> None:
    """Fuses the layers of a module, unless others have fused a part of it."""
    if (
        known.whole is not None
        or _is_left(module, known)
        or any(isinstance(part, FusedLayer) for part in module.modules())
    ):
        return
    known.whole = _new_state(module, min_nodes)
    known.whole.is_whole = True
    fuse_layers(module, known.whole)


def _new_state(module: nn.Module, min_nodes: int) -> State:
    """Returns a state that allows calls of layers outside of their model.

    The calls that run when a model is fused began without its class.
    """
    name = type(module).__name__
    return State(min_nodes, 'all', True, name, is_called=True)


def _num_rows(out: Any) -> int:
    """Returns the most rows of the results of a layer."""
    if isinstance(out, Tensor):
        return len(out) if out.dim() else 0
    parts = out.values() if isinstance(out, dict) else out
    if not isinstance(out, (dict, tuple, list)):
        return 0
    return max(map(_num_rows, parts), default=0)


def _is_rows(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dim() > 0


def _seed_counts(edges: Any) -> dict[int, int]:
    """Returns the number of seeds by number of nodes, the minimum if tied."""
    batch = edges.batch.on(edges.device)
    counts: dict[int, int] = {}
    for found in batch.edges.values():
        for hops in (found.num_src, found.num_dst):
            total, first = hops[-1], hops[0]
            counts[total] = min(first, counts.get(total, first))
    return {n: first for n, first in counts.items() if first < n}
