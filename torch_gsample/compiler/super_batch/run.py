"""Runs a program for several batches at once."""

import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from torch import Tensor
from torch.fx import GraphModule

from torch_gsample.compiler.compiled import Compiled
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.super_batch.captured import Captured, runner
from torch_gsample.compiler.super_batch.size import Memory, SizeSearch
from torch_gsample.rng import BatchKeys
from torch_gsample.torch_private import is_transformed
from torch_gsample.torch_private.dynamo import unknown_length
from torch_gsample.torch_private.errors import BackendCompilerFailed

#: Errors if batches need too much memory together, or violate the assumptions
#: of a rule.
_FAILURES = RuntimeError, MemoryError, IndexError


class _Run:
    """Batches that run together, at the call of the first one.

    Args:
        search (SizeSearch): Measures the time of runs.
        seeds (List[torch.Tensor]): The seeds of each batch.
        keys (BatchKeys): The keys of these and other batches.
        first (int): Index of the first batch among them.
    """

    def __init__(
        self,
        search: SizeSearch,
        seeds: Sequence[Tensor],
        keys: BatchKeys,
        first: int,
    ):
        self._search, self._seeds, self._keys = search, seeds, keys
        self._next = self._first = first
        #: The program's graph, once compiled code has called it.
        self.captured: Captured | None = None
        #: The outputs of each batch, unless they run one by one.
        self._outputs: list[tuple[Any, ...]] | None = None
        #: The error if several batches failed together.
        self.failure: Exception | None = None
        #: Whether later runs take as long, and whether the time counts.
        self.is_settled = self.is_timed = True

    def __call__(self, captured: Captured, inputs: tuple[Any, ...]) -> Any:
        """Returns the outputs for the next batch."""
        if self.captured is None:
            self.captured = captured
            self.is_settled = captured.is_settled
            if captured.prepare():
                self._keys.draw(captured.num_draws)
                self._run(captured, inputs)
            else:
                self._search.settle(1)
        i, self._next = self._next, self._next + 1
        if self._outputs is not None and captured is self.captured:
            return self._outputs[i - self._first]
        with self._keys.of(i, i + 1):
            return captured.single(*inputs)

    def _run(self, captured: Captured, inputs: tuple[Any, ...]) -> None:
        """Runs all batches, and measures the memory if requested."""
        sizes = [seeds.shape[0] for seeds in self._seeds]
        self.is_timed = not self._search.wants_memory(sizes)
        if len(sizes) == 1 and self.is_timed:
            return
        end = self._first + len(sizes)
        given = captured.inputs_of(inputs, self._seeds)
        memory: Any = nullcontext() if self.is_timed else Memory()
        try:
            if not self.is_timed:  # fill the graph's caches before measuring
                with self._keys.of(self._first, end):
                    captured.run(given)
            with self._keys.of(self._first, end), memory:
                self._outputs = captured.run(given)
        except _FAILURES as error:
            self.failure = error
            self._search.note_failure(len(sizes))
        if not self.is_timed:
            self._search.note_memory(sizes, memory.peak)


class SuperBatch:
    """A program that samples several batches in one run.

    Created by :func:`super_batch`.

    Args:
        fn (Callable): The program, ``fn(A, seeds, ...)``.
        size (int or str): Maximum number of batches that run together, or
            ``'auto'`` for the fastest number by measurement.
        memory_budget (int, optional): Maximum memory of a run's tensors in
            bytes.
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
        #: The compiled program of one batch.
        self.alone = Compiled(program, options=options, backend=self._capture)
        self.search = SizeSearch(size, memory_budget)
        self._found: weakref.WeakSet[Captured] = weakref.WeakSet()
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
        """Number of batches that the next run should have."""
        return self.search.size

    @property
    def reads_module(self) -> bool:
        """Whether the compiled program reads a buffer of a module."""
        return any(captured.reads_module for captured in list(self._found))

    def __call__(
        self, graph: Any, seeds: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Samples batches.

        Args:
            graph (SparseSample): The first argument of ``fn``.
            seeds (List[torch.Tensor]): int64 ``[num_seeds]`` of each batch.
            *args (optional): Further arguments of ``fn``, for all batches.
            **kwargs (optional): Keyword arguments of ``fn``.

        Returns:
            List[Any]: The result of ``fn`` for each batch.

        Raises:
            TypeError: If ``seeds`` is not a list of tensors.
        """
        return self.run([(graph, s, *args) for s in seeds], **kwargs)

    def run(
        self, batches: Sequence[tuple[Any, ...]], **kwargs: Any
    ) -> list[Any]:
        """Samples batches, given as the arguments of ``fn`` for each.

        All arguments except the second one (the seeds) must be the same
        objects for batches to run together.
        """
        return self._run(batches, kwargs, tries=True)

    def run_all(self, batches: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Runs all batches together if the memory budget allows it."""
        return self._run(batches, {}, tries=False)

    def forget(self) -> None:
        """Drops cached values; see :func:`torch_gsample.forget`."""
        self.alone.forget()

    # Helpers #################################################################

    def _run(
        self,
        batches: Sequence[tuple[Any, ...]],
        kwargs: dict[str, Any],
        tries: bool,
    ) -> list[Any]:
        batches = [tuple(batch) for batch in batches]
        for batch in batches:
            if len(batch) < 2 or not isinstance(batch[1], Tensor):
                raise TypeError(
                    "super_batch: 'seeds' must be a list of tensors (got "
                    f'{batch[1:2]} for a batch)'
                )
        keys, out = BatchKeys(len(batches)), list[Any]()
        alone = self.search.is_alone or is_transformed()  # runs as written
        fit = bool(batches) and not alone and _fit(batches)
        if not alone:
            batches = [(b[0], _marked(b[1]), *b[2:]) for b in batches]
        if fit and getattr(batches[0][0], '_disk', None) is not None:
            self.search.read_disk()
        if fit and tries:
            self.search.offer(len(batches))
        while len(out) < len(batches):
            first, rest = len(out), batches[len(out) :]
            if self._fails or self.search.is_alone or not fit:
                return out + self._one_by_one(rest, kwargs, keys, first)
            sizes = [batch[1].shape[0] for batch in rest]
            part = rest[: self.search.take(sizes, tries)]
            start = time.perf_counter()
            run = _Run(self.search, [b[1] for b in part], keys, first)
            out += self._together(run, part, kwargs)
            if tries and run.is_timed:
                seconds = time.perf_counter() - start
                self.search.note_time(len(part), seconds, run.is_settled)
        return out

    def _together(
        self,
        run: _Run,
        batches: list[tuple[Any, ...]],
        kwargs: dict[str, Any],
    ) -> list[Any]:
        """Runs batches; returns none if the program cannot be captured."""
        token = runner.set(run)
        try:
            out = [self.alone(*batch, **kwargs) for batch in batches]
        except Exception as error:
            failed = isinstance(error, BackendCompilerFailed)
            if run.captured is not None or (failed and self._chosen.strict):
                raise
            # Its own errors are raised again by single batches.
            self._fails, reason = True, str(error).split('\n')[0]
            self.notes = (f'it cannot be captured: {reason}',)
            _warn(f'batches run one by one: {self.notes[0]}')
            return []
        finally:
            runner.reset(token)
        if run.captured is not None:
            self.notes = run.captured.notes
        if run.failure is not None:
            _warn(
                f'{len(batches)} batches run one by one because '
                f'running them together failed: {run.failure}'
            )
        return out

    def _capture(
        self,
        gm: GraphModule,
        example_inputs: Sequence[Any],
        options: Mapping[str, Any] | None = None,
    ) -> Captured:
        """The backend: compiles a graph for one batch and for several."""
        captured = Captured(gm, example_inputs, options, self._chosen)
        self._found.add(captured)
        return captured

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


def _warn(text: str) -> None:
    warnings.warn(f'super_batch: {text}', stacklevel=5)


def _marked(seeds: Tensor) -> Tensor:
    """Returns seeds whose number is unknown to a compilation."""
    seeds = seeds.detach()  # the caller's tensor gets no mark
    if seeds.dim() > 0:
        vars(seeds).update(unknown_length())
    return seeds


def _fit(batches: list[tuple[Any, ...]]) -> bool:
    """Whether batches differ only in the ids of their seeds."""
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
    """Returns a function that samples several mini-batches in one run.

    The arguments of the result are the graph, a list of seeds, and the other
    arguments of ``fn``. It returns a list: ``super_batch(fn)(A, seeds)`` is
    ``[fn(A, s) for s in seeds]``, with equal samples for the same
    ``torch.manual_seed``. Inside a :func:`~torch_gsample.rng.program_scope`,
    the key must have one row per batch: batch ``i`` has the same draws as
    alone with row ``i``.

    Small batches are bound by the overhead of operators, which a super-batch
    pays once (`"gSampler: General and Efficient GPU-Based Graph Sampling for
    Graph Learning" <https://doi.org/10.1145/3600006.3613168>`_, SOSP 2023,
    section 4.4). Programs without a rule, or with sampling that is trained
    with the model, run batch by batch; ``notes`` has the reason. All batches
    of a call read the tensors as they are at the call.

    Args:
        fn (Callable): The program, ``fn(A, seeds, ...)``.
        size (int or str, optional): Maximum number of batches that run
            together. ``'auto'`` tries 8, 16 and 32 on the first batches, and
            the same numbers one by one, and takes the fastest.
        memory_budget (int, optional): Maximum memory of a run's tensors in
            bytes, by earlier measurements: fewer batches run together if they
            would exceed it.
        options (Dict[str, Any], optional): Options of the backend.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is not positive.

    Example:
        >>> import torch
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
