"""Runs a program for several batches together."""

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.exc import BackendCompilerFailed
from torch.fx import GraphModule

from torch_gsample.compiler.compiled import Compiled
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.captured import Captured
from torch_gsample.compiler.super_batch.size import Memory, SizeSearch
from torch_gsample.rng import BatchKeys

#: What fails when batches together are too much, or differ from what a rule
#: takes for granted.
_FAILURES = RuntimeError, MemoryError, IndexError


class _Inputs(Exception):
    """Ends a run where its graph would be called, whose inputs are known."""

    def __init__(self, captured: Captured, values: tuple[Any, ...]):
        self.captured, self.values = captured, values


#: What the graph of a program does when it is called: hands out its inputs
#: (:class:`_Inputs`), returns results that are known already (a tuple), or
#: runs (:obj:`None`).
_task: ContextVar[Any] = ContextVar('torch_gsample_super_batch', default=None)


class SuperBatch:
    """A program that samples several batches in one run.

    See :func:`super_batch`, which makes it.

    Args:
        fn (Callable): The program, ``fn(A, seeds, ...)``.
        size (int or str): How many batches run together at most, or
            ``'auto'``: as many as measured fastest.
        memory_budget (int, optional): Bytes that the tensors of a run may
            take.
        options (Dict[str, Any], optional): Options of the backend.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is not positive.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        size: int | str = 'auto',
        memory_budget: int | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        chosen = Options.read(
            {
                **(options or {}),
                'super_batch': size,
                'memory_budget': memory_budget,
            }
        )
        self._fn, self._options, self._chosen = fn, options, chosen

        def program(
            graph: Any, seeds: Tensor, *args: Any, **kwargs: Any
        ) -> Any:
            return fn(graph, seeds, *args, **kwargs)

        program.__name__ = getattr(fn, '__name__', type(fn).__name__)
        #: The program of one batch, compiled.
        self.alone: Callable[..., Any] = Compiled(
            program, options=options, backend=self._capture
        )
        self.search = SizeSearch(size, memory_budget)
        self._lock = threading.RLock()
        self._found: list[Captured] = []
        self._fails = False
        self.notes: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {
            'fn': self._fn,
            'size': self._chosen.super_batch,
            'memory_budget': self._chosen.memory_budget,
            'options': self._options,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def size(self) -> int:
        """How many batches the next run should have."""
        return self.search.size

    @property
    def reads_module(self) -> bool:
        """Whether the program, once compiled, reads a buffer of a module."""
        return any(captured.reads_module for captured in self._found)

    def __call__(
        self, graph: Any, seeds: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Samples batches.

        Args:
            graph (SparseSample): What ``fn`` takes first.
            seeds (List[torch.Tensor]): int64 ``[num_seeds]`` of each batch.
            *args (optional): What else ``fn`` takes, for all batches.
            **kwargs (optional): By name.

        Returns:
            List[Any]: What ``fn`` returns for each batch.

        Raises:
            TypeError: If ``seeds`` is no list of tensors.
        """
        return self.run([(graph, s, *args) for s in seeds], **kwargs)

    def run(
        self, batches: Sequence[tuple[Any, ...]], **kwargs: Any
    ) -> list[Any]:
        """Samples batches, given as the arguments of ``fn`` for each.

        All but the second, the seeds, must be the same objects for batches
        to run together.
        """
        return self._run(batches, kwargs, tries=True)

    def run_all(self, batches: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As :meth:`run`, all together if the budget allows it."""
        return self._run(batches, {}, tries=False)

    def forget(self) -> None:
        """Drops what was computed once: see :func:`torch_gsample.forget`."""
        for captured in self._found:
            captured.forget()

    # Helpers #################################################################

    def _run(
        self,
        batches: Sequence[tuple[Any, ...]],
        kwargs: dict[str, Any],
        tries: bool,
    ) -> list[Any]:
        start = time.perf_counter() if tries else None
        batches = [tuple(batch) for batch in batches]
        for batch in batches:
            if len(batch) < 2 or not isinstance(batch[1], Tensor):
                raise TypeError(
                    "super_batch: 'seeds' must be a list of tensors (got "
                    f'{batch[1:2]} for a batch)'
                )
        found = None
        if not self.search.is_alone:
            batches = [(b[0], _marked(b[1]), *b[2:]) for b in batches]
            if tries:
                self.search.offer(len(batches))
            found = self._inputs(batches, kwargs)
        if found is None:
            return self._one_by_one(
                batches, kwargs, BatchKeys(len(batches)), 0
            )
        keys = BatchKeys(len(batches), found.captured.num_draws)
        results: list[Any] = []
        while len(results) < len(batches):
            first = len(results)
            sizes = [batch[1].shape[0] for batch in batches[first:]]
            part = batches[first : first + self.search.take(sizes, tries)]
            results += self._measured(found, part, kwargs, keys, first, start)
            start = time.perf_counter() if tries else None
        return results

    def _inputs(
        self, batches: list[tuple[Any, ...]], kwargs: dict[str, Any]
    ) -> _Inputs | None:
        """What the graph of a run is given, if batches can run together."""
        if not batches or self._fails or not _fit(batches):
            return None
        with self._lock:
            token = _task.set(_Inputs)
            try:
                self.alone(*batches[0], **kwargs)
            except _Inputs as found:
                possible = found.captured.prepare()
                self.notes = found.captured.notes
                if possible:
                    return found
                self.search.settle(1)
            except Exception as error:  # its own errors come again, alone
                failed = isinstance(error, BackendCompilerFailed)
                if failed and self._chosen.strict:
                    raise
                self._fails, reason = True, str(error).split('\n')[0]
                self.notes = (f'it cannot be captured: {reason}',)
                warnings.warn(
                    f'super_batch: batches run one by one, as {self.notes[0]}',
                    stacklevel=4,
                )
            finally:
                _task.reset(token)
        return None  # a program that draws nothing may have no graph

    def _capture(
        self,
        gm: GraphModule,
        example_inputs: Sequence[Any],
        options: Mapping[str, Any] | None = None,
    ) -> Callable[..., Any]:
        """The backend: compiles a graph for one batch and for several."""
        captured = Captured(gm, example_inputs, options, self._chosen)
        self._found.append(captured)

        def call(*inputs: Any) -> Any:
            task = _task.get()
            if task is None:
                return captured.single(*inputs)
            if task is _Inputs:
                raise _Inputs(captured, inputs)
            return task

        return call

    def _one_by_one(
        self,
        batches: list[tuple[Any, ...]],
        kwargs: dict[str, Any],
        keys: BatchKeys,
        first: int,
    ) -> list[Any]:
        run, out = self._fn if self._fails else self.alone, []
        for i, batch in enumerate(batches, first):
            with keys.of(i, i + 1):
                out.append(run(*batch, **kwargs))
        return out

    def _measured(
        self,
        found: _Inputs,
        batches: list[tuple[Any, ...]],
        kwargs: dict[str, Any],
        keys: BatchKeys,
        first: int,
        start: float | None,
    ) -> list[Any]:
        """Runs batches together, and notes what that takes if asked to."""
        sizes = [batch[1].shape[0] for batch in batches]
        measure = self.search.wants_memory(sizes)
        settled = found.captured.is_settled
        if len(batches) == 1 and not measure:
            out = self._one_by_one(batches, kwargs, keys, first)
        else:
            task = found, batches, kwargs, keys, first
            if measure:  # what is kept for the graph is made before
                self._together(*task, nullcontext())
            memory: Any = Memory() if measure else nullcontext()
            out = self._together(*task, memory)
        if measure:
            self.search.note_memory(sizes, memory.peak)
        elif start is not None:
            seconds = time.perf_counter() - start
            self.search.note_time(len(batches), seconds, settled)
        return out

    def _together(
        self,
        found: _Inputs,
        batches: list[tuple[Any, ...]],
        kwargs: dict[str, Any],
        keys: BatchKeys,
        first: int,
        memory: Any,
    ) -> list[Any]:
        seeds = [batch[1] for batch in batches]
        inputs, captured = list(found.values), found.captured
        if captured.place is not None:
            inputs[captured.place] = torch.cat(seeds)
        ptr = segments.pointers([s.shape[0] for s in seeds], seeds[0].device)
        assert captured.together is not None
        try:
            with keys.of(first, first + len(batches)), memory:
                results = captured.together(*inputs, ptr)
        except _FAILURES as error:
            out = self._one_by_one(batches, kwargs, keys, first)
            warnings.warn(
                f'super_batch: {len(batches)} batches run one by one, as '
                f'together they fail: {error}',
                stacklevel=4,
            )
            self.search.note_failure(len(batches))
            return out
        out = []
        for batch, result in zip(
            batches, zip(*results, strict=True), strict=True
        ):
            token = _task.set(result)
            try:
                out.append(self.alone(*batch, **kwargs))
            finally:
                _task.reset(token)
        return out


def _marked(seeds: Tensor) -> Tensor:
    """Seeds of which a compilation does not know how many they are."""
    seeds = seeds.detach()  # marks are not for the caller's tensor
    if seeds.dim() > 0:
        torch._dynamo.decorators.mark_unbacked(seeds, 0)
    return seeds


def _fit(batches: list[tuple[Any, ...]]) -> bool:
    """Whether batches differ in nothing but the ids of their seeds."""
    graph, seeds, *rest = batches[0]
    return seeds.dim() == 1 and all(
        batch[0] is graph
        and batch[1].dtype == seeds.dtype
        and batch[1].dim() == 1
        and len(batch) == len(batches[0])
        and all(a is b for a, b in zip(batch[2:], rest, strict=True))
        for batch in batches
    )


def super_batch(
    fn: Callable[..., Any],
    size: int | str = 'auto',
    *,
    memory_budget: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> SuperBatch:
    """Makes a program sample several mini-batches in one run.

    The result takes the graph, a list of seeds and what else ``fn`` takes,
    and returns a list: ``super_batch(fn)(A, seeds)`` is
    ``[fn(A, s) for s in seeds]``, sample by sample, and for the same
    ``torch.manual_seed``. Inside of a
    :func:`~torch_gsample.rng.program_scope` its key must have a row for each
    batch: batch ``i`` draws what it draws alone under row ``i``.

    Small batches are bound by the overhead of operators, which a super-batch
    pays once (`"gSampler: General and Efficient GPU-Based Graph Sampling for
    Graph Learning" <https://doi.org/10.1145/3600006.3613168>`_, SOSP 2023,
    section 4.4). Programs for which there is no rule, or whose sampling is
    trained with the model, run batch by batch: ``notes`` says why. What a
    program reads is that of the time of the call, for all batches of it.

    Args:
        fn (Callable): The program, ``fn(A, seeds, ...)``.
        size (int or str, optional): How many batches run together at most.
            ``'auto'`` tries 8, 16 and 32 on the first batches, and as many
            alone, and takes what is fastest.
        memory_budget (int, optional): Bytes that the tensors of a run may
            take, as far as measured before: fewer batches run together where
            they would take more.
        options (Dict[str, Any], optional): Options of the backend.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is not positive.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(torch.arange(20).view(2, 10) % 4)
        >>> sample = super_batch(lambda A, s: A[:, s].individual_sample(2), 4)
        >>> seeds = [torch.tensor([0, 1]), torch.tensor([2])]
        >>> _ = torch.manual_seed(12)
        >>> first, second = sample(A, seeds)
        >>> first.col_ids, second.degree(dim=0)
        (tensor([0, 1]), tensor([2]))
    """
    return SuperBatch(fn, size, memory_budget, options)
