"""The passes, in order, and what is known about each run of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch.fx import Graph

from torch_gsample.compiler.ir import InvalidGraph, ir_text, verify
from torch_gsample.compiler.options import OptionError, Options
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.fuse_edge_map import fuse_edge_map
from torch_gsample.compiler.passes.fuse_edge_map_reduce import (
    fuse_edge_map_reduce,
)
from torch_gsample.compiler.passes.fuse_extract_select import (
    fuse_extract_select,
)
from torch_gsample.compiler.passes.fuse_hops import fuse_hops
from torch_gsample.compiler.passes.hoist_invariant import hoist_invariant
from torch_gsample.compiler.passes.rewrite_sddmm import rewrite_sddmm
from torch_gsample.compiler.passes.rewrite_unique import rewrite_unique
from torch_gsample.compiler.passes.select_layout import select_layout
from torch_gsample.compiler.passes.sink_gathers import sink_gathers
from torch_gsample.compiler.passes.super_batch import super_batch


@dataclass(frozen=True)
class Pass:
    """A rewriting of graphs, and why it stands where it does.

    It may return notes: a line for each thing that it decided, and why.

    Args:
        name (str): Its name.
        run (Callable): Takes a graph, and the options if it is ``optioned``.
        reason (str): Why it stands where it does.
        optioned (bool, optional): Whether it takes the options.
    """

    name: str
    run: Callable[..., Sequence[str] | None]
    reason: str
    optioned: bool = False


PASSES = (
    Pass('canonicalize', canonicalize, 'the others know one form'),
    Pass('eliminate_common', eliminate_common, 'equal parts become one node'),
    Pass(
        'sink_gathers',
        sink_gathers,
        'after equal parts are one: it asks what else uses a gather',
    ),
    Pass(
        'rewrite_sddmm',
        rewrite_sddmm,
        'before edge work is fused: it makes some',
    ),
    Pass(
        'fuse_extract_select',
        fuse_extract_select,
        'before dead nodes go: it leaves the extracts without users',
    ),
    Pass(
        'super_batch',
        super_batch,
        'before operators are fused: it has a rule for each by itself',
    ),
    Pass('fuse_hops', fuse_hops, 'its hops are what was fused'),
    Pass(
        'rewrite_unique',
        rewrite_unique,
        'after hops, which know frontiers by their form',
    ),
    Pass('eliminate_dead', eliminate_dead, 'sweeps up what was fused'),
    Pass(
        'select_layout',
        select_layout,
        'after fusion and sweeping: it looks at all that use a part',
        optioned=True,
    ),
    Pass(
        'fuse_edge_map',
        fuse_edge_map,
        'after layouts: they decide which gathers and sums there are',
    ),
    Pass(
        'fuse_edge_map_reduce',
        fuse_edge_map_reduce,
        'after fuse_edge_map: it ends its kernels',
    ),
    Pass(
        'hoist_invariant',
        hoist_invariant,
        'last: it marks nodes, and none is made after it',
    ),
)


class PassError(RuntimeError):
    """A pass failed."""


@dataclass
class Step:
    """What a pass did."""

    name: str
    seconds: float
    text: str
    notes: tuple[str, ...] = ()


@dataclass
class Trace:
    """The way of a program through the passes.

    Args:
        captured (str): Its text before them.
        steps (List[Step]): The passes that changed it.
    """

    captured: str
    steps: list[Step] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the program after all passes."""
        return self.steps[-1].text if self.steps else self.captured


def run_passes(graph: Graph, options: Options) -> Trace:
    """Rewrites a graph in place.

    Raises:
        PassError: If a pass fails, or breaks a rule of the representation;
            its name is in the message.
    """
    trace = Trace(ir_text(graph))
    for item in PASSES:
        optional = item.run is not canonicalize  # keys are found after it
        chosen = options.passes is None or item.name in options.passes
        if optional and not chosen:
            continue
        start = time.perf_counter()
        try:
            given = (graph, options) if item.optioned else (graph,)
            notes = tuple(item.run(*given) or ())
            verify(graph)
        except OptionError:
            raise
        except InvalidGraph as error:
            raise PassError(f"pass '{item.name}': {error}") from error
        except Exception as error:
            raise PassError(
                f"pass '{item.name}': {type(error).__name__}: {error}"
            ) from error
        seconds, text = time.perf_counter() - start, ir_text(graph)
        if notes or text != trace.text:
            trace.steps.append(Step(item.name, seconds, text, notes))
    return trace
