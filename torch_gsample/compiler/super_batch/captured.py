"""A program captured by Dynamo, for one batch and for several."""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from torch_gsample.compiler.backend import backend, note_sources
from torch_gsample.compiler.cost import Measured
from torch_gsample.compiler.ir import placeholders
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.passes.super_batch import is_super_batched
from torch_gsample.compiler.super_batch import segments
from torch_gsample.locks import new_lock
from torch_gsample.rng import current_program
from torch_gsample.torch_private.dynamo import argument_of

#: Runs the caller's batches instead of a program's graph; None to run the
#: graph itself.
runner: ContextVar[Callable[['Captured', tuple[Any, ...]], Any] | None] = (
    ContextVar('torch_gsample_super_batch', default=None)
)


class Captured:
    """The graph of a program, compiled for one batch, and later for several.

    Compiled code calls it between two steps: finding the inputs of the graph
    in a program's arguments, and building results from its outputs. So the
    :data:`runner` gets the inputs of each batch, and sets its outputs.

    Args:
        gm (GraphModule): The captured graph.
        example_inputs (List[Any]): Its inputs.
        given (Dict[str, Any], optional): The user's options.
        options (Options): The effective options.
    """

    def __init__(
        self,
        gm: GraphModule,
        example_inputs: Sequence[Any],
        given: Mapping[str, Any] | None,
        options: Options,
    ):
        #: Runs one batch.
        self.single = backend(gm, example_inputs, options=given)
        #: Runs several batches, if requested and supported.
        self.together: Callable[..., Any] | None = None
        #: Index of the seeds among the inputs, if they are one.
        self.place: int | None = None
        #: Number of draws per run.
        self.num_draws = 0
        #: The decision and its reason.
        self.notes: tuple[str, ...] = ()
        #: Whether the program reads state of a module.
        self.reads_module = False
        self._options, self._lock = options, new_lock()
        self._program: GraphModule | None = copy.deepcopy(gm)
        note_sources(gm)
        inputs = placeholders(gm.graph), placeholders(self._program.graph)
        for i, (node, copied) in enumerate(zip(*inputs, strict=True)):
            seeds = argument_of(node) == 'seeds'
            known = {k: node.meta[k] for k in ('is_argument', 'is_of_module')}
            copied.meta.update(known, batched=seeds)
            self.place = i if seeds else self.place
            self.reads_module |= node.meta['is_of_module']

    def __call__(self, *inputs: Any) -> Any:
        """Returns the outputs for a batch."""
        run = runner.get()
        return self.single(*inputs) if run is None else run(self, inputs)

    def inputs_of(
        self, inputs: Sequence[Any], seeds: Sequence[Tensor]
    ) -> tuple[Any, ...]:
        """Returns the inputs of several batches.

        Args:
            inputs (List[Any]): The inputs of one of them.
            seeds (List[torch.Tensor]): The seeds of each.
        """
        values = list(inputs)
        if self.place is not None:
            values[self.place] = torch.cat(list(seeds))
        sizes = [batch.shape[0] for batch in seeds]
        return *values, segments.pointers(sizes, seeds[0].device)

    def run(self, inputs: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Runs several batches; returns the outputs for each."""
        assert self.together is not None
        return list(zip(*self.together(*inputs), strict=True))

    def prepare(self) -> bool:
        """Compiles it for several batches; returns whether that succeeded.

        Raises:
            PassError: If a pass fails and ``strict`` is set.
        """
        with self._lock:
            program, self._program = self._program, None
            if program is not None:
                self._prepare(program)
        return self.together is not None

    def _prepare(self, program: GraphModule) -> None:
        trace = self._options.rewrite(program)
        notes = {step.name: step.notes for step in trace.steps}
        # Without canonicalize, no pass runs, and its notes have the reason.
        self.notes = notes.get('super_batch', notes.get('canonicalize', ()))
        if is_super_batched(program.graph):
            self.num_draws = sum(
                n.target is current_program for n in program.graph.nodes
            )
            self.together = lower(program)

    def forget(self) -> None:
        """Drops values cached for a graph."""
        for function in (self.single, self.together):
            if hasattr(function, 'forget'):
                function.forget()  # type: ignore[union-attr]

    @property
    def is_settled(self) -> bool:
        """Whether the layouts of both are chosen."""
        return all(
            f.is_settled
            for f in (self.single, self.together)
            if isinstance(f, Measured)
        )
