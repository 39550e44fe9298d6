"""What Dynamo captured of a program, for one batch and for several."""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch._dynamo.source import LocalSource
from torch.fx import GraphModule

from torch_gsample.compiler.backend import backend, note_sources
from torch_gsample.compiler.cost import Measured
from torch_gsample.compiler.ir import placeholders
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.passes.super_batch import is_super_batched
from torch_gsample.compiler.pipeline import run_pipeline
from torch_gsample.rng import current_program


class Captured:
    """What Dynamo captured, compiled for one batch, and later for several.

    Args:
        gm (GraphModule): What Dynamo captured.
        example_inputs (List[Any]): Its inputs.
        given (Dict[str, Any], optional): Options, as the user gave them.
        options (Options): Those that hold.
    """

    def __init__(
        self,
        gm: GraphModule,
        example_inputs: Sequence[Any],
        given: Mapping[str, Any] | None,
        options: Options,
    ):
        #: Runs a batch.
        self.single = backend(gm, example_inputs, options=given)
        #: Runs several, if they were asked for and there are rules.
        self.together: Callable[..., Any] | None = None
        #: Which input the seeds are, if they are one.
        self.place: int | None = None
        #: How many draws a run makes.
        self.num_draws = 0
        #: What was decided, and why.
        self.notes: tuple[str, ...] = ()
        #: Whether the program reads what belongs to a module.
        self.reads_module = False
        self._options, self._lock = options, threading.Lock()
        self._program: GraphModule | None = copy.deepcopy(gm)
        note_sources(gm)
        inputs = placeholders(gm.graph), placeholders(self._program.graph)
        for i, (node, copied) in enumerate(zip(*inputs, strict=True)):
            source = getattr(node, '_dynamo_source', None)
            seeds = (
                isinstance(source, LocalSource)
                and source.local_name == 'seeds'
            )
            copied.meta.update(
                is_argument=node.meta['is_argument'], batched=seeds
            )
            self.place = i if seeds else self.place
            self.reads_module |= _is_of_module(source)

    def prepare(self) -> bool:
        """Compiles it for several batches; says whether that is possible.

        Raises:
            PassError: If a pass fails, and that is an error.
        """
        with self._lock:
            program, self._program = self._program, None
            if program is not None:
                self._prepare(program)
        return self.together is not None

    def _prepare(self, program: GraphModule) -> None:
        trace = run_pipeline(program, self._options)
        notes = {step.name: step.notes for step in trace.steps}
        # Without canonicalize no pass runs, and its notes say so.
        self.notes = notes.get('super_batch', notes.get('canonicalize', ()))
        if is_super_batched(program.graph):
            self.num_draws = sum(
                n.target is current_program for n in program.graph.nodes
            )
            self.together = lower(program)

    def forget(self) -> None:
        """Drops what was computed once for a graph."""
        for function in (self.single, self.together):
            if hasattr(function, 'forget'):
                function.forget()  # type: ignore[union-attr]

    @property
    def is_settled(self) -> bool:
        """Whether both run without measuring layouts any more."""
        return all(
            f.is_settled
            for f in (self.single, self.together)
            if isinstance(f, Measured)
        )


def _is_of_module(source: Any) -> bool:
    """Whether an input is a parameter or a buffer."""
    guard = getattr(source, 'guard_source', None)
    return 'NN_MODULE' in str(guard() if callable(guard) else guard)
