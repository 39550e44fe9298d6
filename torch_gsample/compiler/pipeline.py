"""The passes in order, and the trace of a run."""

import copy
import operator
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.fx import Graph, GraphModule

from torch_gsample.compiler.bodies import (
    BODY_PASSES,
    bodies,
    mark_decisive,
    may_rewrite,
)
from torch_gsample.compiler.errors import OptionError
from torch_gsample.compiler.ir import example
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.canonicalize import (
    canonicalize,
    name_own_operators,
)
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.eliminate_matches import eliminate_matches
from torch_gsample.compiler.passes.fuse_edge_map import fuse_edge_map
from torch_gsample.compiler.passes.fuse_edge_map_reduce import (
    fuse_edge_map_reduce,
)
from torch_gsample.compiler.passes.fuse_edge_map_select import (
    fuse_edge_map_select,
)
from torch_gsample.compiler.passes.fuse_extract_select import (
    fuse_extract_select,
)
from torch_gsample.compiler.passes.fuse_hops import fuse_hops
from torch_gsample.compiler.passes.hoist_invariant import hoist_invariant
from torch_gsample.compiler.passes.hoist_weights import hoist_weights
from torch_gsample.compiler.passes.raise_selections import raise_selections
from torch_gsample.compiler.passes.rewrite_isin import rewrite_isin
from torch_gsample.compiler.passes.rewrite_sddmm import rewrite_sddmm
from torch_gsample.compiler.passes.rewrite_unique import rewrite_unique
from torch_gsample.compiler.passes.select_layout import select_layout
from torch_gsample.compiler.passes.sink_gathers import sink_gathers
from torch_gsample.compiler.passes.super_batch import super_batch
from torch_gsample.compiler.verify import InvalidGraph, kinds, verify


@dataclass(frozen=True)
class Pass:
    """A pass, and the reason for its position.

    It may return notes: a line for each decision, with the reason.

    Args:
        name (str): Its name.
        run (Callable): Takes a graph, and optionally the layout.
        reason (str): The reason for its position.
        takes_layout (bool, optional): Whether it takes ``layout``.
        changes_results (bool, optional): Whether it changes the results of the
            program.
    """

    name: str
    run: Callable[..., Sequence[str] | None]
    reason: str
    takes_layout: bool = False
    changes_results: bool = False


PASSES = (
    Pass(
        'canonicalize', canonicalize, 'first: the other passes match one form'
    ),
    Pass(
        'eliminate_common',
        eliminate_common,
        'early: later passes see each value once',
    ),
    Pass(
        'eliminate_matches',
        eliminate_matches,
        'after eliminate_common: equal extracts are then one node',
    ),
    Pass(
        'hoist_weights',
        hoist_weights,
        'before sink_gathers, which may leave only a selection',
    ),
    Pass(
        'sink_gathers',
        sink_gathers,
        'after eliminate_common: it checks other uses of a gather',
    ),
    Pass(
        'raise_selections',
        raise_selections,
        'after sink_gathers, which moves work on the graph alone',
    ),
    Pass(
        'rewrite_sddmm',
        rewrite_sddmm,
        'before fuse_edge_map: it creates work on edges',
    ),
    Pass(
        'rewrite_isin',
        rewrite_isin,
        'after eliminate_common: both sides then share one edge code',
    ),
    Pass(
        'fuse_extract_select',
        fuse_extract_select,
        'before eliminate_dead: it leaves extracts without users',
    ),
    Pass(
        'fuse_hops',
        fuse_hops,
        'after fuse_extract_select: its hops are fused selections',
    ),
    Pass(
        'super_batch',
        super_batch,
        'after fuse_hops, whose hops it batches; before fuse_edge_map',
        changes_results=True,  # they are those of several batches
    ),
    Pass(
        'rewrite_unique',
        rewrite_unique,
        'after fuse_hops, which recognises frontiers by their form',
    ),
    Pass(
        'eliminate_dead',
        eliminate_dead,
        'after fusion, which leaves unused nodes',
    ),
    Pass(
        'select_layout',
        select_layout,
        'after fusion and eliminate_dead: it reads all users of a part',
        takes_layout=True,
    ),
    Pass(
        'fuse_edge_map_select',
        fuse_edge_map_select,
        'before fuse_edge_map, which would store the weights',
    ),
    Pass(
        'fuse_edge_map',
        fuse_edge_map,
        'after select_layout, which determines gathers and sums',
    ),
    Pass(
        'fuse_edge_map_reduce',
        fuse_edge_map_reduce,
        'after fuse_edge_map: reductions are the ends of its kernels',
    ),
    Pass(
        'hoist_invariant',
        hoist_invariant,
        'last: no pass may add nodes after its marks',
    ),
)

#: Key of a module's metadata for passes that ran after the choice of layouts.
AFTER_LAYOUTS = 'passes_after_layouts'
_LATE = ('fuse_edge_map', 'fuse_edge_map_reduce', 'hoist_invariant')


class PassError(RuntimeError):
    """A pass failed.

    Args:
        name (str): The pass.
        cause (Exception): Its exception, or the rule that its graph breaks.
    """

    def __init__(self, name: str, cause: Exception):
        kind = type(cause).__name__
        text = '' if isinstance(cause, InvalidGraph) else f'{kind}: '
        super().__init__(f"pass '{name}': {text}{cause}")
        self.name = name


@dataclass
class Step:
    """The result of a pass."""

    name: str
    seconds: float
    text: str
    notes: tuple[str, ...] = ()


@dataclass
class Trace:
    """The steps of a program through the passes.

    Args:
        captured (str): Its text before the passes.
        steps (List[Step]): The passes that changed it.
    """

    captured: str
    steps: list[Step] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the program after all passes."""
        return self.steps[-1].text if self.steps else self.captured


def run_pipeline(
    module: GraphModule,
    passes: Sequence[str] | None = None,
    layout: str | Mapping[str, str] = 'auto',
    strict: bool = False,
) -> Trace:
    """Rewrites the graph of a module.

    If a pass fails, a warning names it, and the other passes run without it on
    the captured graph. Bodies of loops and branches are rewritten as well.

    Args:
        module (torch.fx.GraphModule): The program.
        passes (List[str], optional): See :class:`~.options.Options`.
        layout (str or Dict[str, str], optional): See there.
        strict (bool, optional): See there.

    Raises:
        PassError: If a pass fails and ``strict`` is set.
    """
    captured = copy.deepcopy(module.graph)
    failed: dict[str, PassError] = {}
    while True:
        try:
            trace = run_passes(module.graph, passes, layout, failed)
            break
        except PassError as error:
            if strict:
                raise
            failed[error.name] = error
            warnings.warn(
                f'gsample: {error}: the program is compiled without this pass',
                stacklevel=2,
            )
        module.graph = copy.deepcopy(captured)
    module.meta[AFTER_LAYOUTS] = tuple(
        name
        for name in _LATE
        if name not in failed and (passes is None or name in passes)
    )
    for body in filter(may_rewrite, bodies(module)):
        _rewrite_body(body, passes, strict)
    return trace


def _rewrite_body(
    body: GraphModule, passes: Sequence[str] | None, strict: bool
) -> None:
    """Runs the passes for bodies; if one fails, the body is unchanged."""
    captured = copy.deepcopy(body.graph)
    mark_decisive(body)
    chosen = [n for n in BODY_PASSES if passes is None or n in passes]
    try:
        run_passes(body.graph, chosen)
    except PassError as error:
        if strict:
            raise
        warnings.warn(
            f'gsample: {error}: a loop or a branch is compiled without passes',
            stacklevel=3,
        )
        body.graph = captured


def run_again(graph: Graph, names: Sequence[str]) -> None:
    """Runs passes again after a choice was made.

    Raises:
        PassError: If one fails.
    """
    before = kinds(graph)
    for item in PASSES:
        if item.name in names:
            try:
                item.run(graph)
                verify(graph, before)
            except Exception as error:
                raise PassError(item.name, error) from error


def run_passes(
    graph: Graph,
    passes: Sequence[str] | None = None,
    layout: str | Mapping[str, str] = 'auto',
    failed: Mapping[str, PassError] | None = None,
) -> Trace:
    """Rewrites a graph in place; if a pass fails, the graph is unusable.

    Args:
        graph (torch.fx.Graph): The graph.
        passes (List[str], optional): Names of the passes to run; default: all.
        layout (str or Dict[str, str], optional): The layout option.
        failed (Dict[str, PassError], optional): Passes to skip, by name, with
            the error for the trace.

    Raises:
        PassError: If a pass fails, or violates the representation; the error
            has its name.
    """
    trace, failed = Trace(ir_text(graph)), failed or {}
    before, state = kinds(graph), _state(graph)
    for item in PASSES:
        optional = item.run is not canonicalize  # needed to find keys
        chosen = passes is None or item.name in passes
        if optional and not chosen:
            continue
        if item.name in failed:
            note = f'left out: {failed[item.name]}'
            trace.steps.append(Step(item.name, 0.0, trace.text, (note,)))
            if optional:
                continue
            name_own_operators(graph)  # other passes need its form
            break
        start = time.perf_counter()
        try:
            given = (graph, layout) if item.takes_layout else (graph,)
            notes = tuple(item.run(*given) or ())
            earlier, state = state, _state(graph)
            is_same = len(earlier) == len(state) and all(
                map(operator.is_, earlier, state)
            )
            if not is_same:
                before = verify(
                    graph, None if item.changes_results else before
                )
        except OptionError:
            raise
        except Exception as error:
            raise PassError(item.name, error) from error
        seconds = time.perf_counter() - start
        text = trace.text if is_same else ir_text(graph)
        if notes or text != trace.text:
            trace.steps.append(Step(item.name, seconds, text, notes))
    return trace


def _state(graph: Graph) -> list[Any]:
    """Returns the objects that determine a graph's text and its validity.

    Most passes change nothing in most programs: to compare these is faster.
    """
    return [
        value
        for n in graph.nodes
        for value in (n, n.target, n.args, n.kwargs)
        + (example(n), n.meta.get('invariant'))
    ]
