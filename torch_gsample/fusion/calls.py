"""Calls of fused models, and of their layers, thread by thread."""

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch_geometric.nn.conv import MessagePassing

from torch_gsample.block import HeteroBlock
from torch_gsample.fusion.forms import (
    FORMS,
    Beyond,
    PlanError,
    UntestedError,
    beyond,
    block_at,
    edges_of,
)
from torch_gsample.fusion.hops import Hops, with_norm, without_norm
from torch_gsample.fusion.made_edges import with_blocks
from torch_gsample.fusion.row_rules import tensors_of
from torch_gsample.fusion.rows import FirstRows, Origin, first_rows, plain_tree

#: Norms with statistics over all rows in training.
BATCH_NORMS = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm
#: Level of a layer whose rows are all read.
ALL = 1 << 20


@dataclass(frozen=True)
class Layer:
    """Properties of a layer of a fused model.

    Args:
        name (str): Its name in the model.
        kind (str): The name of its class.
        names (Tuple[str, ...], optional): The arguments of ``forward``; None
            if it takes any.
        is_fused (bool): Whether it is one of our layers.
        note (str): The reason if it is not.
    """

    name: str
    kind: str
    names: tuple[str, ...] | None
    is_fused: bool
    note: str = ''

    def __str__(self) -> str:
        return f"layer '{self.name}' ({self.kind})"

    def bind(self, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call by name."""
        if self.names is None:
            return dict(kwargs)
        return dict(zip(self.names, args, strict=False), **kwargs)

    def returns_weights(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether a call also returns attention weights."""
        name = 'return_attention_weights'
        if self.names is None or name not in self.names:
            return False
        return self.bind(args, kwargs).get(name) is not None


def layer_of(name: str, module: MessagePassing, note: str) -> Layer:
    """Describes a layer.

    Args:
        name (str): Its name in the model.
        module (MessagePassing): The layer.
        note (str): Why the layer is not fused; empty if it is.
    """
    parameters = list(inspect.signature(module.forward).parameters.values())
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    is_any = any(p.kind in kinds for p in parameters)
    names = None if is_any else tuple(p.name for p in parameters)
    kind = type(module).__name__
    return Layer(name, kind, names, not note, note)


def parts_of(module: nn.Module) -> tuple[Any, ...]:
    """Returns what a plan depends on: a layer's flow, and its modules' kinds.

    Another module may mix rows, as norms do. Plans are pickled, so the kinds
    are names.
    """
    kinds = [type(part).__name__ for part in module.modules()]
    return getattr(module, 'flow', None), *kinds


class Step(NamedTuple):
    """A call of a layer.

    Args:
        layer (str): Its name.
        level (int, optional): The last hop whose nodes it computes; None if
            its edges are not those of a batch.
        form (str, optional): Its form of :data:`FORMS`; None if it runs on
            the whole batch.
        note (str): The reason.
        num_hops (int): The hops that it reads.
        tested (Beyond): What its trial showed that it does not need.
        parts (Tuple): See :func:`parts_of`.
    """

    layer: str
    level: int | None
    form: str | None
    note: str = ''
    num_hops: int = 1
    tested: Beyond = Beyond()
    parts: tuple[Any, ...] = ()


@dataclass(eq=False)
class State:
    """Shared state of a fused model and its layers.

    Args:
        min_nodes (int): Smaller batches run unchanged.
        statistics (str): ``'all'`` or ``'computed'``.
        verbose (bool): Whether to print a report.
    """

    min_nodes: int
    statistics: str
    verbose: bool
    name: str = ''
    layers: list[Layer] = field(default_factory=list)
    #: For each layer, whether messages were fused, or why not.
    messages: dict[str, tuple[bool, str]] = field(default_factory=dict)
    #: The calls of layers, once they are recorded.
    steps: list[Step] | None = None
    #: The method that they were recorded in, once it is known, and the states
    #: for the other methods that were called.
    method: str = ''
    others: dict[str, 'State'] = field(default_factory=dict)
    #: The number of recordings, and the steps of the one before.
    num_plans: int = 0
    outdated: list[Step] | None = None
    #: Whether the model was called, or its layers without it, with a warning.
    is_called: bool = False
    #: Whether only its layers are fused, as it gets no batches.
    is_whole: bool = False
    #: Why blocks do not serve the model, in training or not.
    refused: dict[bool, str] = field(default_factory=dict)


class _Current(threading.local):
    """The current call of a fused model in this thread."""

    call: Any = None
    #: Whether it runs on the whole batch, and models inside it do.
    is_whole: bool = False


current = _Current()


def on_whole_batch(
    own: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Calls a model so that models inside it run on the whole batch, too."""
    before, current.is_whole = current.is_whole, True
    try:
        return own(*args, **kwargs)
    finally:
        current.is_whole = before


class Call:
    """A call of a fused model whose layers run unchanged.

    Args:
        state (State): State of the model.
        edges (BatchEdgeIndex, optional): The edges of its batch, of which it
            may make others.
    """

    #: Whether results are only compared, and norms over all rows skipped.
    is_trial = False

    def __init__(self, state: State, edges: Any = None):
        self.state, self._edges = state, edges
        #: Whether a layer is running; layers inside it are not handled.
        self.in_layer = False
        #: The blocks whose destinations the layer's messages go to.
        self.hops: Any = None
        #: Number of propagations of layers.
        self.num_propagations = 0

    def __enter__(self) -> Any:
        self._before, current.call = current.call, self
        return self

    def __exit__(self, *error: Any) -> None:
        current.call = self._before

    def run_layer(
        self,
        module: nn.Module,
        layer: Layer,
        forward: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Calls a layer of the model."""
        if not layer.returns_weights(args, kwargs):
            values = with_blocks(layer.bind(args, kwargs), self._edges)
            if values is not None:
                args, kwargs = (), values
        self.in_layer = True
        try:
            return self._run(module, layer, forward, args, kwargs)
        finally:
            self.in_layer = False

    def _run(
        self, module: Any, layer: Layer, forward: Any, args: Any, kwargs: Any
    ) -> Any:
        return forward(*args, **kwargs)

    def run_form(
        self,
        form: str,
        forward: Any,
        values: dict[str, Any],
        level: int,
        num_hops: int = 1,
    ) -> Any:
        """Calls a layer in one of :data:`FORMS`.

        Args:
            form (str): The form.
            forward (Callable): The layer.
            values (Dict[str, Any]): Its arguments by name.
            level (int): The last hop whose nodes it computes.
            num_hops (int, optional): The hops that it reads.
        """
        edges = edges_of(values)
        first = level if form == 'block' else level + num_hops - 1
        block = block_at(edges, first)
        name = next(name for name, x in values.items() if x is edges)
        values = FORMS[form](values, block)
        has_all = form == 'all_edges'
        if form in ('rows', 'all_edges'):
            given = values[name]
            at = functools.partial(block_at, edges)
            self.hops = Hops(at, level, num_hops, given, has_all)
        norm = self.hops.norm if has_all else without_norm
        try:
            return plain_tree(with_norm(forward, norm)(**values))
        finally:
            self.hops = None


class BlockCall(Call):
    """A call of a fused model whose layers compute blocks.

    Args:
        state (State): State of the model.
        edges (BatchEdgeIndex, optional): The edges of its batch.
        steps (List[Step], optional): The calls of layers; default: all.
    """

    def __init__(
        self,
        state: State,
        edges: Any = None,
        steps: list[Step] | None = None,
    ):
        super().__init__(state, edges)
        known = state.steps if steps is None else steps
        assert known is not None
        self._steps, self._position = known, 0

    def _run(
        self, module: Any, layer: Layer, forward: Any, args: Any, kwargs: Any
    ) -> Any:
        position = self._position
        if position >= len(self._steps):
            raise PlanError(f'{layer} ran more often than when recorded')
        step = self._steps[position]
        if step.layer != layer.name:
            raise PlanError(
                f"{layer} ran where layer '{step.layer}' was recorded"
            )
        if step.parts != parts_of(module):
            raise UntestedError(f'{layer} has another flow or other modules')
        self._position = position + 1
        values = layer.bind(args, kwargs)
        if step.form is None or step.level is None:
            return self._run_whole(layer, step, forward, args, kwargs)
        edges = edges_of(values)
        if edges is None:
            raise PlanError(f'the edges of {layer} are not those of a batch')
        if self.state.statistics == 'all':
            self._check_norms(module, layer)
        _check_tested(layer, step, edges)
        block = block_at(edges, step.level)
        form, hops = step.form, step.num_hops
        try:
            out = self.run_form(form, forward, values, step.level, hops)
        except PlanError as error:
            raise PlanError(f'{layer}: {error}') from None
        if isinstance(block, HeteroBlock):
            return _limited_types(out, layer, block, block_at(edges, ALL))
        if not isinstance(out, Tensor):
            raise PlanError(f'{layer} returned no tensor')
        return _limited(out, layer, block.num_dst, block.edges.num_dst[-1])

    def _run_whole(
        self, layer: Layer, step: Step, forward: Any, args: Any, kwargs: Any
    ) -> Any:
        for x in tensors_of(args, kwargs, FirstRows):
            raise PlanError(f'{layer} reads all rows of {x.origin.layer}')
        out = forward(*args, **kwargs)
        edges = edges_of(layer.bind(args, kwargs))
        if step.level is None or edges is None or isinstance(edges, dict):
            return out
        if not isinstance(out, Tensor):  # with attention weights
            return out
        _check_tested(layer, step, edges)
        block = block_at(edges, step.level)
        total = block.edges.num_dst[-1]
        if out.shape[0] != total:
            raise PlanError(f'{layer} returned other rows than its nodes')
        return _limited(out, layer, block.num_dst, total)

    @staticmethod
    def _check_norms(module: nn.Module, layer: Layer) -> None:
        for inner in module.modules():
            if isinstance(inner, BATCH_NORMS) and inner.training:
                raise PlanError(
                    f'{layer} has a batch norm in training, whose statistics '
                    f"are over all rows (see statistics='computed')"
                )


def _check_tested(layer: Layer, step: Step, edges: Any) -> None:
    """Checks that the trial of a plan showed all that a batch may show."""
    if all(step.tested):
        return
    assert step.level is not None
    shown = beyond(edges, step.level, step.num_hops)
    if any(s and not t for s, t in zip(shown, step.tested, strict=True)):
        raise UntestedError(f'{layer} was tested on other kinds of batches')


def _limited_types(
    out: Any, layer: Layer, block: HeteroBlock, whole: HeteroBlock
) -> Any:
    """Returns the first rows of each node type."""
    if not isinstance(out, dict):
        raise PlanError(f'{layer} returned no dict')
    return {
        key: _limited(x, layer, block.num_dst[key], whole.num_dst[key])
        if isinstance(x, Tensor)
        else x
        for key, x in out.items()
    }


def _limited(out: Tensor, layer: Layer, count: int, total: int) -> Tensor:
    if count == total:
        return out if out.shape[0] == count else out[:count]
    if out.shape[0] != count:
        out = out[:count]
    return first_rows(out, Origin(layer, total))
