"""Watches Spark jobs: progress in logs, names in the UI, metrics as JSON.

Messages go to the logger ``torch_gsample.spark``, at level INFO.
"""

import builtins
import errno
import functools
import inspect
import itertools
import logging
import math
import os
import re
import tempfile
import threading
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from torch_gsample.ops._check import plain_number
from torch_gsample.spark.metrics import JobReport, StatusStore
from torch_gsample.storage.stored_graph import StoredGraph

Function = TypeVar('Function', bound=Callable[..., Any])

log = logging.getLogger('torch_gsample.spark')

_DESCRIPTION = 'spark.job.description'
#: In the JVM's error if a file cannot grow.
_FULL = 'java.io.IOException: No space left on device'
#: An error of this package in Spark's error: raised by a Python worker, or by
#: ``raise_error`` of the JVM.
_OF_TASK = re.compile(
    r'^(?:(?P<kind>IndexError|TypeError|ValueError): '
    r'|.*\[USER_RAISED_EXCEPTION\] )'
    r'(?P<text>\w+: .*?)(?: SQLSTATE: \w+)?$',
    re.MULTILINE,
)
_tags = itertools.count()
#: The report of the innermost :func:`watch`, and its context.
_watched: ContextVar[tuple[SparkContext, JobReport] | None] = ContextVar(
    '_watched', default=None
)


@contextmanager
def watch(
    session: SparkSession,
    name: str,
    *,
    interval: float = 10.0,
    metrics: str | None = None,
) -> Iterator[JobReport]:
    """Logs the progress of all jobs of a block, and measures their stages.

    It covers jobs that this thread starts in the block; the Spark UI shows
    ``name`` for them. A line is logged for each running stage every
    ``interval`` seconds, and for each finished stage. Most functions of
    :mod:`torch_gsample.spark` are lazy, so write or count their frames in the
    block as well. An accumulator counts the draws of vertices and edges by
    frames of the block; a repeated task draws, and counts, again.

    Args:
        session (SparkSession): The session, not one of Spark Connect.
        name (str): Description of the jobs.
        interval (float, optional): Seconds between lines.
        metrics (str, optional): A local file for the report as JSON, written
            at the end of the block, also after an error.

    Raises:
        OSError: If ``metrics`` is a folder, or its folder is missing.
        TypeError: If an argument has the wrong type.
        ValueError: If ``interval`` is not positive, or ``session`` has no
            context.

    Example:
        >>> from torch_gsample.spark import local_session
        >>> with watch(local_session(), 'count three rows') as report:
        ...     count = local_session().range(3).count()
        >>> report.error is None, sum(s.tasks for s in report.stages) > 0
        (True, True)
    """
    _check_types('watch', _WATCH, locals())
    context = context_of(session)
    if context is None:
        raise ValueError(
            "watch: 'session' must run in this process or on a cluster, not "
            'behind Spark Connect'
        )
    if not 0 < interval < math.inf:
        raise ValueError(
            f"watch: 'interval' must be positive (got {interval})"
        )
    if metrics is not None:
        _check_file('metrics', Path(metrics))
    tag = f'torch_gsample-{next(_tags)}'
    report = JobReport(name)
    progress = _Progress(StatusStore(context), report, tag, interval)
    scope = _watched.set((context, report))
    context.addJobTag(tag)
    start = time.perf_counter()
    try:
        with described(session, name), progress:
            yield report
    except BaseException as error:
        report.error = f'{type(error).__name__}: {error}'.split('\n')[0]
        raise
    finally:
        context.removeJobTag(tag)
        _watched.reset(scope)
        report.seconds = time.perf_counter() - start
        report.finish()
        if metrics is not None:
            Path(metrics).write_text(report.to_json() + '\n')
        log.info('%s', report.summary())


@contextmanager
def described(session: SparkSession, text: str) -> Iterator[None]:
    """Sets and logs the description of a block's jobs in the Spark UI.

    In a nested block, descriptions are joined.
    """
    context = context_of(session)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(f'{before}: {text}' if before else text)
    start = time.perf_counter()
    log.debug('%s: begins', text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore
        log.debug('%s: %.1f s', text, time.perf_counter() - start)


def operation(function: Function) -> Function:
    """Decorates a public function: checks arguments, describes jobs.

    Arguments annotated with types of ``_KINDS``, or a union of them, are
    checked before a job runs. Numbers of NumPy become plain ones, for Spark
    and for files.
    """
    signature = inspect.signature(function)
    hints = typing.get_type_hints(function)
    name = function.__name__
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            (table,) = typing.get_args(hints[parameter.name])
            hints.update(typing.get_type_hints(table))

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(plain_number, args))
        kwargs = {n: plain_number(value) for n, value in kwargs.items()}
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f'{name}: {error}') from None
        _check_types(name, hints, {**given, **kwargs})
        session = _session_of(given.values())
        if session is None:
            return function(*args, **kwargs)
        with described(session, name), _plain_errors(session, name):
            return function(*args, **kwargs)

    return typing.cast(Function, checked)


@contextmanager
def _plain_errors(session: SparkSession, op: str) -> Iterator[None]:
    """Raises the error of a task in the driver, and names a full disk.

    Spark's error has the tracebacks of the worker and of the JVM.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if own := _OF_TASK.search(str(error)):
            kind = getattr(builtins, own['kind'] or 'ValueError')
            raise kind(own['text']) from error
        if _FULL not in str(error):
            raise
        context, where = context_of(session), ''
        if context is not None:
            found = context.getConf().get('spark.local.dir')
            where = f' ({found or tempfile.gettempdir()} by its setting)'
        raise OSError(
            errno.ENOSPC,
            f"{op}: a disk is full: that of 'spark.local.dir'{where}, where "
            'Spark stores shuffled rows, or that of the result',
        ) from error


def counter(name: str) -> Any:
    """Returns a counter of the report, to which tasks in the JVM add.

    It is a ``LongAccumulator``; None outside of :func:`watch`.
    """
    watched = _watched.get()
    if watched is None:
        return None
    context, report = watched
    if name not in report.accumulators:
        spark: Any = context._jsc.sc()
        report.accumulators[name] = spark.longAccumulator(name)
    return report.accumulators[name]


class _Progress:
    """A thread that periodically polls the stages of a tag."""

    def __init__(
        self,
        store: StatusStore,
        report: JobReport,
        tag: str,
        interval: float,
    ):
        self._store, self._report = store, report
        self._tag, self._interval = tag, interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *args: object) -> None:
        self._ended.set()
        self._thread.join()
        self._store.settle()
        self._look()

    def _run(self) -> None:
        while not self._ended.wait(self._interval):
            self._look()

    def _look(self) -> None:
        # The JVM may have ended; the caller raises its own error.
        with suppress(Py4JError, OSError):
            for stage in self._store.stages(self._tag, self._report.done()):
                if stage.status != 'PENDING':
                    log.info('%s: %s', self._report.name, stage.line())
                self._report.add(stage)


def context_of(session: SparkSession) -> SparkContext | None:
    """Returns the context of a session; Spark Connect has none."""
    try:
        return session.sparkContext
    except (AttributeError, PySparkException):
        return None


def parallelism(session: SparkSession) -> int:
    """Returns the number of tasks that a cluster runs at once, if known."""
    context = context_of(session)
    if context is None:
        return int(str(session.conf.get('spark.sql.shuffle.partitions')))
    return context.defaultParallelism


def _session_of(values: Any) -> SparkSession | None:
    """The session of the first frame among arguments or their parts."""
    for value in values:
        if isinstance(value, DataFrame):
            return value.sparkSession
        if isinstance(value, dict):
            value = tuple(value.values())
        elif hasattr(value, 'seeds'):  # batches that write themselves
            value = (value.seeds,)
        elif hasattr(value, 'kind') and hasattr(value, 'frame'):  # ids
            value = (value.frame,)
        if isinstance(value, tuple):
            found = _session_of(value)
            if found is not None:
                return found
    return None


_PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, 'a bool'),
    int: (Integral, 'an integer'),
    float: (Real, 'a number'),
    str: (str, 'a string'),
}
#: How an argument of each annotated type is checked and named.
_KINDS: dict[Any, tuple[Any, str]] = {
    **_PLAIN,
    Callable: (Callable, 'a function'),
    DataFrame: (DataFrame, 'a Spark DataFrame'),
    Mapping: (Mapping, 'a dictionary'),
    Path: (os.PathLike, 'a path'),
    SparkSession: (SparkSession, 'a SparkSession'),
    StoredGraph: (StoredGraph, 'a ChunkedGraph'),
    range: (range, 'a range'),
    tuple: (tuple, 'a pair'),
}
_WATCH = {
    'session': SparkSession,
    'name': str,
    'interval': float,
    'metrics': str | None,
}


def _check_types(op: str, hints: dict[str, Any], given: Any) -> None:
    for name, value in given.items():
        hint = hints.get(name)
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        every = typing.get_args(hint) if is_union else (hint,)
        kinds = [_kind_of(k) for k in every]
        if types.NoneType in kinds:
            kinds.remove(types.NoneType)
            if value is None:
                continue
        if all(k in _KINDS for k in kinds) and not _is_one(value, kinds):
            rule = ' or '.join(_KINDS[kind][1] for kind in kinds)
            plain = all(kind in _PLAIN for kind in kinds)
            shown = plain or isinstance(value, (int, float, str))
            got = repr(value) if shown else type(value).__name__
            raise TypeError(f"{op}: '{name}' must be {rule} (got {got})")


def _kind_of(hint: Any) -> Any:
    """The key of an annotated type in ``_KINDS``."""
    kind = typing.get_origin(hint) or hint
    is_graph = isinstance(kind, type) and issubclass(kind, StoredGraph)
    return StoredGraph if is_graph else kind


def _is_one(value: Any, kinds: list[Any]) -> bool:
    if isinstance(value, bool):  # an Integral
        return bool in kinds
    if SparkSession in kinds and type(value).__name__ == 'SparkSession':
        return True  # Spark Connect's is another class
    return any(isinstance(value, _KINDS[kind][0]) for kind in kinds)


def _check_file(name: str, path: Path) -> None:
    """Checks that a file can be in a folder."""
    if path.is_dir():
        raise IsADirectoryError(f"watch: '{name}' is a folder (got {path})")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"watch: there is no folder for '{name}' (got {path})"
        )
