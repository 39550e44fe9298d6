"""Records a call of a model, and tests the plan of its layers' blocks.

A plan is used if it computes the same on the recorded batch.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import GRUAggregation, LSTMAggregation

from torch_gsample.block import HeteroBlock
from torch_gsample.fusion.calls import (
    BlockCall,
    Call,
    Layer,
    State,
    Step,
    parts_of,
)
from torch_gsample.fusion.forms import (
    PlanError,
    block_at,
    blocks_of,
    edges_of,
    forms_for,
)
from torch_gsample.fusion.levels import Recorded, plans_of, tested_by_both
from torch_gsample.fusion.made_edges import edges_of_call
from torch_gsample.fusion.rows import UnseenRowsError, plain
from torch_gsample.fusion.twin import twin_of
from torch_gsample.torch_private import is_view, tree_leaves, tree_map
from torch_gsample.vertex.frontend.precision import is_autocast

#: Larger parameters are embeddings, not gates that start at zero.
_MOST_NOISE = 1 << 22
#: Their results depend on the padding, which they read as messages.
_PADDING = LSTMAggregation, GRUAggregation
#: Number of elements compared at once.
_PART = 1 << 20
#: Tolerances, relative to the largest value of the whole batch.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 3e-5}
#: In half precision.
_COARSE = 0.02


class _Recorder(Call):
    """A call of a model on a whole batch that records its layers."""

    is_trial = True

    def __init__(self, state: State, edges: Any):
        super().__init__(state, edges)
        self.calls: list[Recorded] = []

    def _run(
        self, module: Any, layer: Layer, forward: Any, args: Any, kwargs: Any
    ) -> Any:
        # Make outputs require gradients, even without parameters.
        args, kwargs = tree_map(_with_gradient, (args, kwargs))
        values = layer.bind(args, kwargs)
        before = self.num_propagations
        out = forward(*args, **kwargs)
        count = self.num_propagations - before
        if layer.is_fused:  # by our own code, not by PyG's method
            count = getattr(module, 'num_hops', 1)
        # Now, as a copy of all values for later would be of the whole batch.
        edges = edges_of(values)
        form: str | None = None
        note, depth = 'its edges are not those of a batch', 1
        if any(isinstance(m, _PADDING) for m in module.modules()):
            note = 'it pads messages to the largest in-degree of the batch'
        elif edges is not None:
            form, note, depth = _form(
                layer, forward, values, out, self.state, count
            )
        if form is None and isinstance(edges, dict):
            edges = None  # on the whole batch, it computes all types
        nodes: list[Any] = []

        def mark(x: Any) -> Any:
            if not isinstance(x, Tensor) or not x.is_floating_point():
                return x
            with torch.enable_grad():
                x = _marked(x)
            nodes.append(x.grad_fn)
            return x

        parts = parts_of(module)
        call = Recorded(layer, nodes, form, note, edges, depth, parts)
        self.calls.append(call)
        return tree_map(mark, out)


def _marked(x: Tensor) -> Tensor:
    """Returns a tensor with its own autograd node, in place if possible."""
    if not x.requires_grad or x.is_leaf or is_view(x):
        out: Tensor = _with_gradient(x).clone()
        return out
    return x.mul_(1)


def _with_gradient(x: Any) -> Any:
    if isinstance(x, Tensor) and x.is_floating_point() and not x.requires_grad:
        return x.detach().requires_grad_()
    return x


def _copy(x: Any) -> Any:
    """Protects a value from later changes in place."""
    return x.detach().clone() if isinstance(x, Tensor) else x


def _without_values() -> Any:
    """Makes autograd record nodes without saved values."""

    def read(_: None) -> Tensor:
        raise PlanError('it computes gradients itself')

    return torch.autograd.graph.saved_tensors_hooks(lambda x: None, read)


def make_plan(
    model: nn.Module,
    state: State,
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Plans the blocks of a model, and tests the plan.

    A twin of the model with perturbed parameters runs, because parameters that
    are zero would hide errors.

    Args:
        model (torch.nn.Module): The model.
        state (State): Its state, to which the plan is added.
        method (Callable): The method of its class that computes it.
        args (Tuple): The positional arguments of a call.
        kwargs (Dict[str, Any]): Its keyword arguments.

    Raises:
        PlanError: If the model cannot use blocks.
    """
    try:
        devices = {x.device for x in model.parameters() if x.is_cuda}
        with torch.random.fork_rng(devices):
            twin: Any = twin_of(model, _perturbed(model))
            forward = functools.partial(method, twin)
            steps = _plan(state, forward, args, kwargs)
            state.steps = tested_by_both(steps, state.outdated or [])
    except PlanError:
        raise
    except Exception as error:  # the user did not request this call
        text = str(error).split('\n')[0]
        raise PlanError(f'{type(error).__name__}: {text}') from error


def _plan(
    state: State, forward: Callable[..., Any], args: Any, kwargs: Any
) -> list[Step]:
    """Records a call, and tests its plan on the same batch."""
    recorder = _Recorder(state, edges_of_call(args, kwargs))
    with torch.enable_grad(), _without_values(), recorder:
        whole = forward(*args, **kwargs)
    if not recorder.calls:
        raise PlanError('none of its layers was called')
    plans = plans_of(recorder.calls, whole)
    whole = tree_map(_copy, whole)
    recorder.calls.clear()
    for plan in plans:
        try:
            if isinstance(plan, PlanError):
                raise plan
            _test(state, plan, forward, args, kwargs, whole)
        except Exception as error:
            failure = error
        else:
            return plan
    raise failure


def _test(
    state: State,
    steps: list[Step],
    forward: Callable[..., Any],
    args: Any,
    kwargs: Any,
    whole: Any,
) -> None:
    """Tests whether a plan computes the first rows of the whole batch."""
    call = BlockCall(state, edges_of_call(args, kwargs), steps)
    call.is_trial = True
    try:
        with torch.enable_grad(), _without_values(), call:
            out = forward(*args, **kwargs)
    except UnseenRowsError as error:
        raise PlanError(str(error).split(': take')[0]) from None
    _compare(out, whole)


def _perturbed(model: nn.Module) -> dict[Tensor, Tensor]:
    """Returns perturbed copies of a model's parameters."""
    out: dict[Tensor, Tensor] = {}
    for value in model.parameters():
        if value.is_floating_point() and value.numel() <= _MOST_NOISE:
            noise = torch.randn_like(value) * 0.1
            noisy = (value.detach() + noise).requires_grad_(
                value.requires_grad
            )
            out[value] = noisy
    return out


def _compare(out: Any, whole: Any) -> None:
    leaves, expected = tree_leaves(out), tree_leaves(whole)
    if len(leaves) != len(expected):
        raise PlanError('it returns other objects on blocks')
    for x, y in zip(leaves, expected, strict=True):
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            x = plain(x)
            if x.dim() != y.dim() or not _are_close(
                x, y[: len(x)] if x.dim() else y
            ):
                raise PlanError(
                    'its outputs on blocks differ from those on the whole '
                    'batch: it depends on all rows, or on chance'
                )
        elif isinstance(x, (int, float)) and x != y:
            raise PlanError(f'it returns {x} on blocks, {y} on whole batches')


def _are_close(x: Tensor, y: Tensor) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    x, y = x.detach().reshape(-1), y.detach().reshape(-1)
    if not x.is_floating_point():
        return torch.equal(x, y)
    if not x.numel():
        return True
    # In parts, as the outputs may be most of the memory in use.
    parts = list(zip(x.split(_PART), y.split(_PART), strict=True))
    largest = max(
        float(y.abs().nan_to_num_(0.0, 0.0, 0.0).max()) for _, y in parts
    )
    tolerance = _TOLERANCE.get(x.dtype, _COARSE)
    if is_autocast(x.device):  # what is not rounded may be of what is
        tolerance = _COARSE
    return all(
        torch.allclose(
            x, y, rtol=tolerance, atol=tolerance * largest, equal_nan=True
        )
        for x, y in parts
    )


# Forms #######################################################################


def _form(
    layer: Layer,
    forward: Any,
    values: Any,
    whole: Any,
    state: State,
    count: int,
) -> tuple[str | None, str, int]:
    """Finds the form in which a layer computes its rows of each level.

    Also returns the hops that it reads: one, or ``count``.
    """
    edges, note = edges_of(values), ''
    if not isinstance(whole, dict if isinstance(edges, dict) else Tensor):
        return None, 'it returned no tensor', 1
    several = count > 1 and not isinstance(edges, dict)
    depths = [1, count] if several else [1]
    # Ours say it, and one hop would not show what is missing.
    if layer.is_fused or blocks_of(edges).num_hops == 1:
        depths = depths[-1:]
    for depth in depths:
        for form in forms_for(edges, layer.is_fused):
            try:
                if _is_right(form, depth, forward, values, whole, state):
                    return form, '', depth
                note = 'it depends on edges beyond its block'
            except Exception as error:
                text = str(error).split('\n')[0]
                note = f'it takes no block: {text}'
    return None, note, 1


def _is_right(
    form: str,
    depth: int,
    forward: Any,
    values: Any,
    whole: Any,
    state: State,
) -> bool:
    edges = edges_of(values)
    for level in range(blocks_of(edges).num_hops):
        block = block_at(edges, level)
        inner = Call(state)
        inner.in_layer = inner.is_trial = True
        with torch.no_grad(), inner:
            out = inner.run_form(form, forward, values, level, depth)
        want, counts = whole, block.num_dst
        if not isinstance(block, HeteroBlock):
            out, want, counts = {0: out}, {0: whole}, {0: counts}
        if not isinstance(out, dict) or out.keys() != want.keys():
            return False
        if not all(_has(out[k], want[k], counts[k]) for k in want):
            return False
    return True


def _has(out: Any, whole: Any, count: int) -> bool:
    """Whether a result has the first rows of another."""
    if not isinstance(whole, Tensor):
        return out is whole
    return (
        isinstance(out, Tensor)
        and out.dim() == whole.dim()
        and _are_close(out[:count], whole[:count])
    )
