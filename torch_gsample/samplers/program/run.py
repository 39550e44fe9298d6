"""Runs a program for one batch, or for several at once if that is faster.

Matrices, seeds and keys come in; the program's output for each batch goes
out.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample import rng
from torch_gsample.samplers.program.steps import Run

#: Maximum share of an epoch's time for measuring.
_SHARE = 0.1
#: Minimum of that time in seconds. Several batches are another program, which
#: the passes have to compile first.
_LEAST = 0.5
#: Minimum number of batches in an epoch.
_SHORT = 64
#: Calls until layouts are chosen, and one that is timed.
_CALLS = 7


def checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns compiler options after checks.

    Raises:
        TypeError: If an option has the wrong type.
        ValueError: If an option is unknown.
    """
    _options(options)
    return dict(options or {})


def _options(options: Mapping[str, Any] | None) -> Any:
    """Reads options; imports the compiler only here, to import fast."""
    from torch_gsample.compiler import Options

    return Options.read(options)


class ProgramRunner:
    """A program of matrices and seeds.

    Args:
        program (Callable): ``program(A, seeds)``.
        compile (bool): Whether to compile it, at the first batch.
        options (Dict[str, Any]): Compiler options.
        several (bool): Whether it takes one vector of seeds, so that several
            batches can run together.
        size (int, optional): The fastest number of batches, if known.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        compile: bool,
        options: Mapping[str, Any],
        several: bool,
        size: int | str | None = None,
    ):
        self._program = program
        from torch_gsample.compiler import Compiled
        from torch_gsample.compiler.super_batch.run import SuperBatch

        self._several: SuperBatch | None = None
        self._seconds: float | None = None
        chosen = _options(options)
        if compile and several and chosen.super_batch != 1:
            size = size or chosen.super_batch
            budget = chosen.memory_budget
            self._several = SuperBatch(program, size, budget, options)
            self._program = self._several.alone
        elif compile:
            self._program = Compiled(program, options=options)

    def __call__(self, A: Any, runs: Sequence[Run]) -> list[Any]:
        """Runs the program for some batches."""
        several, out = self._several, []
        if several is not None and len(runs) > 1:
            if not self.is_compiled:  # raise errors for a single batch
                out, runs = [self._alone(A, runs[0])], runs[1:]
            if not several.reads_module:
                with rng.program_scope(torch.cat([run.key for run in runs])):
                    batches = [(A, run.seeds) for run in runs]
                    return out + several.run_all(batches)
        return out + [self._alone(A, run) for run in runs]

    def _alone(self, A: Any, run: Run) -> Any:
        with rng.program_scope(run.key):
            return self._program(A, run.seeds)

    @property
    def is_compiled(self) -> bool:
        """Whether the program is compiled, or is not to be."""
        program = self._program
        return getattr(program, 'is_compiled', True)

    @property
    def size(self) -> int:
        """Number of batches to pass at once.

        It is 1 if the program reads a module, whose state may change between
        two batches, as the bandits' weights do.
        """
        several = self._several
        if several is None or several.reads_module:
            return 1
        return several.search.best

    @property
    def found(self) -> int | None:
        """The fastest number of batches, once it is known."""
        several = self._several
        if several is None or not several.search.is_decided:
            return None
        return several.search.best

    def search(
        self,
        A: Any,
        seeds: Callable[[], Sequence[Tensor]],
        num_batches: int,
    ) -> None:
        """Continues to measure the fastest number of batches.

        Args:
            A (SparseSample): The graph.
            seeds (Callable): Returns int64 ``[num_seeds]`` of some batches.
            num_batches (int): Number of batches in an epoch.
        """
        several = self._several
        if several is None or several.search.is_decided:
            return
        if num_batches < _SHORT:
            return
        keyed = ((ids, rng.make_key(0, 0, i)) for i, ids in enumerate(seeds()))
        runs = [Run(ids, key) for ids, key in keyed]
        if self._seconds is None:
            times = []
            for i in range(_CALLS):
                start = time.perf_counter()
                self._alone(A, runs[i % len(runs)])
                times.append(time.perf_counter() - start)
            self._seconds = min(times)
        allowed = _SHARE * num_batches * self._seconds
        if several.reads_module or allowed < _LEAST:
            return
        end = time.perf_counter() + allowed
        while not several.search.is_decided and time.perf_counter() < end:
            some = [runs[i % len(runs)] for i in range(several.size)]
            with rng.program_scope(torch.cat([run.key for run in some])):
                several.run([(A, run.seeds) for run in some])
