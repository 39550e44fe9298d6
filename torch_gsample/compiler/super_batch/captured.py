"""What Dynamo captured of a program, for one batch and for several."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch._dynamo.source import LocalSource
from torch.fx import GraphModule

from torch_gsample.compiler.backend import backend, note_sources
from torch_gsample.compiler.ir import placeholders
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.passes.super_batch import is_super_batched
from torch_gsample.compiler.pipeline import PassError, run_passes
from torch_gsample.rng import current_program


@dataclass(frozen=True)
class Captured:
    """What Dynamo captured, for one batch and for several.

    Args:
        single (Callable): Runs a batch.
        together (Callable, optional): Runs several, if there are rules.
        place (int, optional): Which input the seeds are, if they are one.
        num_draws (int): How many draws a run makes.
        notes (Tuple[str]): What was decided, and why.
    """

    single: Callable[..., Any]
    together: Callable[..., Any] | None
    place: int | None
    num_draws: int
    notes: tuple[str, ...]


def capture(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    given: Mapping[str, Any] | None,
    options: Options,
) -> Captured:
    """Compiles what Dynamo captured, for one batch and for several."""
    single = backend(gm, example_inputs, options=given)
    program, place = copy.deepcopy(gm), None
    note_sources(gm)
    inputs = placeholders(gm.graph), placeholders(program.graph)
    for i, (node, copied) in enumerate(zip(*inputs, strict=True)):
        source = getattr(node, '_dynamo_source', None)
        seeds = (
            isinstance(source, LocalSource) and source.local_name == 'seeds'
        )
        copied.meta.update(is_argument=node.meta['is_argument'], batched=seeds)
        if seeds:
            place = i
    try:
        trace = run_passes(program.graph, options)
    except PassError as error:
        if options.strict:
            raise
        return Captured(single, None, None, 0, (str(error),))
    notes = next((s.notes for s in trace.steps if s.name == 'super_batch'), ())
    if not is_super_batched(program.graph):
        return Captured(single, None, None, 0, notes)
    num_draws = sum(n.target is current_program for n in program.graph.nodes)
    return Captured(single, lower(program), place, num_draws, notes)
