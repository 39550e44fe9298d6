"""The class of a fused model, whose calls compute blocks."""

import contextlib
import threading
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling
from torch_geometric.nn.conv import MessagePassing

from torch_gsample.fusion.calls import (
    BATCH_NORMS,
    BlockCall,
    State,
    current,
    on_whole_batch,
)
from torch_gsample.fusion.checkpoints import Repeatable, calls_of
from torch_gsample.fusion.classes import ROLES, Fused, own_method
from torch_gsample.fusion.forms import PlanError, UntestedError
from torch_gsample.fusion.made_edges import edges_of_call
from torch_gsample.fusion.modules import FusedLayer, plain_rows
from torch_gsample.fusion.record import make_plan
from torch_gsample.fusion.report import print_report
from torch_gsample.fusion.rows import UnseenRowsError
from torch_gsample.fusion.traced import for_compiler, has_edges_of_batches
from torch_gsample.loader.batch_edge_index import marked_in
from torch_gsample.torch_private import is_in_backward, is_traced

_lock = threading.RLock()
#: Plans of a model, each tested on a batch that shows more.
_MOST_PLANS = 8


class FusedModel(Fused):
    """A model whose layers compute blocks of a batch."""

    _gsample_model: State

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model."""
        return self._gsample_run('forward', args, kwargs)

    def _gsample_run(
        self, method: str, args: Any, kwargs: Any, failed: Any = ()
    ) -> Any:
        model: Any = self
        state = self._gsample_model
        is_forward = method == state.method == 'forward'
        if is_forward and isinstance(self, FusedLayer):
            rows = plain_rows(args)
            if rows is not None and rows < state.min_nodes:
                return self.call_pyg(args, kwargs)
        own = _own(self, method)
        if is_dynamo_compiling() and has_edges_of_batches(args, kwargs):
            args, kwargs = for_compiler(state.name, state, args, kwargs)
        if is_traced():
            return own(*args, **kwargs)
        is_part = current.call is not None or current.is_whole
        edges = marked_in(args, kwargs)
        if edges is None:  # not a batch
            if is_part:
                return own(*args, **kwargs)
            if state.method != method:
                state = _state_of(model, method)
            state.is_called = True
            return on_whole_batch(own, args, kwargs)
        calls = calls_of(state, method, model.training, edges.batch)
        if is_part:
            calls.mode = 'whole' if current.is_whole else 'part'
            return own(*args, **kwargs)
        state = _state_of(model, method)
        state.is_called = True
        if is_in_backward():
            return self._gsample_again(state, calls, edges, own, args, kwargs)
        calls.failed = list(failed)
        if not _is_served(model, state, edges):
            return on_whole_batch(own, args, kwargs)
        calls.mode = 'own'
        statistics = _statistics(model)
        try:
            if state.steps is None:
                _plan(model, state, method, args, kwargs)
            with BlockCall(state, edges_of_call(args, kwargs)):
                return own(*args, **kwargs)
        except Exception as error:
            failure = error
        _restore(statistics)  # the next call updates them again
        if state.steps is not None:
            calls.failed.append(state.steps)
        if isinstance(failure, UntestedError) and _can_replan(state):
            state.outdated, state.steps = state.steps, None
            return self._gsample_run(method, args, kwargs, calls.failed)
        # An error of the model or the batch is raised again here.
        out = on_whole_batch(own, args, kwargs)
        _refuse(state, model.training, failure)
        return out

    def _gsample_again(
        self,
        state: State,
        calls: Repeatable,
        edges: Any,
        own: Any,
        args: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Repeats a call in backward, which a checkpoint ends by exceptions.

        It stores the tensors of the attempts that failed, too.
        """
        if calls.mode == 'part':  # layers find the steps of their call
            return own(*args, **kwargs)
        model: Any = self
        own_edges = edges_of_call(args, kwargs)
        for steps in calls.failed:
            statistics = _statistics(model)
            with (
                contextlib.suppress(Exception),
                BlockCall(state, own_edges, steps),
            ):
                own(*args, **kwargs)
            _restore(statistics)
        is_whole = calls.mode == 'whole'
        if is_whole or not _is_served(model, state, edges):
            return on_whole_batch(own, args, kwargs)
        with BlockCall(state, own_edges):
            return own(*args, **kwargs)


def _own(model: Any, method: str) -> Any:
    """Returns a method as it is without fusion."""
    return own_method(model, method, getattr(super(FusedModel, model), method))


def _caller(method: str) -> Any:
    """Returns a function of a model and arguments that calls its method."""
    return lambda model, *args, **kwargs: _own(model, method)(*args, **kwargs)


def _state_of(model: Any, method: str) -> State:
    """Returns the state for a method of a model: each has its own plan."""
    state: State = model._gsample_model
    if state.method == method:
        return state
    with _lock:
        if not state.method:
            state.method = method
            return state
        if method not in state.others:
            other = State(state.min_nodes, state.statistics, state.verbose)
            other.name, other.method = f'{state.name}.{method}', method
            other.layers, other.is_called = state.layers, True
            for module in model.modules():
                if isinstance(module, FusedLayer):
                    for known, layer in module._gsample_layer:
                        if known is state:
                            module.join(other, layer)
            state.others[method] = other
        return state.others[method]


def _is_served(model: nn.Module, state: State, edges: Any) -> bool:
    """Whether a call can use blocks."""
    if model.training in state.refused:
        return False
    if state.steps is None and is_in_backward():
        return False
    if edges.batch.num_nodes < state.min_nodes:
        return False
    if any(
        isinstance(layer, MessagePassing) and layer.explain
        for layer in model.modules()
    ):
        return False  # by masks of all edges
    if state.steps is not None:
        return True
    # Recording needs gradients and a tensor that is not empty.
    return (
        not torch.is_inference_mode_enabled()
        and edges.shape[1] > 0
        and not any(nn.parameter.is_lazy(p) for p in model.parameters())
    )


def _statistics(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Returns the statistics that a call updates, and copies of them."""
    if not model.training:
        return []
    norms = (m for m in model.modules() if isinstance(m, BATCH_NORMS))
    return [(x, x.clone()) for m in norms for x in m.buffers()]


def _restore(statistics: list[tuple[Tensor, Tensor]]) -> None:
    for buffer, before in statistics:
        buffer.copy_(before)


def _can_replan(state: State) -> bool:
    """Whether a plan of another batch can be made in this call."""
    enabled = not torch.is_inference_mode_enabled()
    return enabled and state.num_plans < _MOST_PLANS


def _plan(
    model: Any, state: State, method: str, args: Any, kwargs: Any
) -> None:
    with _lock:
        if model.training in state.refused:  # refused by another thread
            raise PlanError(state.refused[model.training])
        if state.steps is None:
            try:
                state.num_plans += 1
                make_plan(model, state, _caller(method), args, kwargs)
            except Exception as error:
                # Recorded under the lock, before another thread plans.
                _refuse(state, model.training, error, stacklevel=6)
                raise
            if state.verbose:
                print_report(state)


def _refuse(
    state: State, training: bool, error: Exception, stacklevel: int = 5
) -> None:
    if isinstance(error, UnseenRowsError):
        reason = str(error).split(': take these')[0].removeprefix('fuse: ')
    elif isinstance(error, PlanError):
        reason = str(error)
    else:
        text = str(error).split('\n')[0]
        reason = f'{type(error).__name__}: {text}'
    with _lock:
        if training in state.refused:
            return
        state.refused[training] = reason
        if state.steps is None:
            state.refused[not training] = reason
    mode = 'training' if training else 'evaluation'
    when = '' if state.steps is None else f' in {mode}'
    warnings.warn(
        f'fuse: {state.name} runs on whole batches{when}, not on blocks: '
        f'{reason}',
        stacklevel=stacklevel,
    )


ROLES.update(model=FusedModel)
