"""Spark's metrics of stages."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

#: Least, median and longest of the tasks of a stage.
_QUANTILES = 0.0, 0.5, 1.0
_ENDED = 'COMPLETE', 'FAILED', 'SKIPPED'


@dataclass(frozen=True)
class StageMetrics:
    """The metrics of a stage.

    Bytes are as counted by Spark, after compression if any. ``task_seconds``
    is the time of all tasks, including Python workers; ``jvm_cpu_seconds`` is
    processor time in the JVM.
    """

    stage: int
    attempt: int
    job: str
    name: str
    status: str
    tasks: int
    tasks_done: int
    tasks_failed: int
    rows_read: int
    bytes_read: int
    rows_written: int
    bytes_written: int
    shuffle_rows_read: int
    shuffle_bytes_read: int
    shuffle_rows_written: int
    shuffle_bytes_written: int
    bytes_spilled: int
    peak_execution_bytes: int
    task_seconds: float
    jvm_cpu_seconds: float
    gc_seconds: float
    median_task_seconds: float
    longest_task_seconds: float

    @property
    def skew(self) -> float:
        """The longest task over the median one; 1 if there is no time."""
        if not self.median_task_seconds:
            return 1.0
        return self.longest_task_seconds / self.median_task_seconds

    def line(self) -> str:
        """Returns the stage as a line of a log."""
        rows = self.rows_read + self.shuffle_rows_read
        read = self.bytes_read + self.shuffle_bytes_read
        parts = [
            f'stage {self.stage} ({self.job or self.name})',
            f'{self.tasks_done} of {self.tasks} tasks',
            f'{rows:,} rows and {read / 1e6:.1f} MB read',
            f'{self.shuffle_bytes_written / 1e6:.1f} MB shuffled',
            f'skew {self.skew:.1f}',
        ]
        if self.bytes_spilled:
            parts.append(f'{self.bytes_spilled / 1e6:.1f} MB spilled')
        if self.tasks_failed:
            parts.append(f'{self.tasks_failed} tasks failed')
        return ', '.join(parts)


@dataclass
class JobReport:
    """The stages and counters of the jobs of a :func:`watch`.

    Args:
        name (str): Description of the jobs.
        seconds (float): Duration of the block.
        error (str, optional): The error that ended it.
        counters (Dict[str, int]): Sums of accumulators.
    """

    name: str
    seconds: float = 0.0
    error: str | None = None
    counters: dict[str, int] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict, repr=False)
    _stages: dict[tuple[int, int], StageMetrics] = field(
        default_factory=dict, repr=False
    )

    @property
    def stages(self) -> list[StageMetrics]:
        """The stages in their order."""
        return [stage for _, stage in sorted(self._stages.items())]

    def add(self, stage: StageMetrics) -> None:
        """Adds or updates a stage."""
        self._stages[stage.stage, stage.attempt] = stage

    def done(self) -> set[int]:
        """Returns the finished stages."""
        ended = (s for s in self.stages if s.status in _ENDED)
        return {stage.stage for stage in ended}

    def finish(self) -> None:
        """Reads the accumulators."""
        self.counters = {
            k: int(a.value()) for k, a in self.accumulators.items()
        }

    def total(self, name: str) -> float:
        """Returns the sum of a number over all stages.

        Args:
            name (str): A field of :class:`StageMetrics`.
        """
        return sum(getattr(stage, name) for stage in self.stages)

    def to_json(self) -> str:
        """Returns all numbers as JSON."""
        stages = [{**asdict(s), 'skew': s.skew} for s in self.stages]
        facts = {
            'name': self.name,
            'seconds': self.seconds,
            'error': self.error,
            'counters': self.counters,
            'stages': stages,
        }
        return json.dumps(facts, indent=2)

    def summary(self) -> str:
        """Returns the report as a line of a log."""
        stages = self.stages
        skew = median(s.skew for s in stages) if stages else 1.0
        greatest = max((s.skew for s in stages), default=1.0)
        counted = ''.join(f', {n:,} {k}' for k, n in self.counters.items())
        return (
            f'{self.name}: {self.error or "done"} after {self.seconds:.1f} s, '
            f'{len(stages)} stages, {self.total("task_seconds"):.1f} s of '
            f'tasks, {self.total("shuffle_bytes_written") / 1e6:.1f} MB '
            f'shuffled, skew {skew:.1f} (at most {greatest:.1f}){counted}'
        )


class StatusStore:
    """The metrics of the Spark UI, also if it is disabled.

    PySpark has no public API for them, so this calls the JVM.
    """

    def __init__(self, context: SparkContext):
        self._spark = context._jsc.sc()
        self._store = self._spark.statusStore()
        gateway = context._gateway
        assert gateway is not None
        self._quantiles = gateway.new_array(gateway.jvm.double, 3)
        for i, quantile in enumerate(_QUANTILES):
            self._quantiles[i] = quantile
        self._first = 1 + max(
            (job.jobId() for job in self._jobs(0)), default=-1
        )

    def settle(self) -> None:
        """Waits until all reports of tasks are counted."""
        self._spark.listenerBus().waitUntilEmpty()

    def stages(self, tag: str, known: set[int]) -> Iterator[StageMetrics]:
        """Returns the started stages of jobs with a tag.

        Args:
            tag (str): The tag.
            known (Set[int]): Stages to skip.
        """
        for job in self._jobs(self._first):
            if not job.jobTags().contains(tag):
                continue
            text = job.description()
            text = text.get() if text.isDefined() else ''
            ids = job.stageIds().mkString(',')
            for stage in sorted(map(int, ids.split(',') if ids else ())):
                if stage not in known:
                    try:
                        found = self._store.lastStageAttempt(stage)
                    except Py4JJavaError:  # Spark forgets old ones
                        continue
                    if found.submissionTime().isDefined():
                        yield self._stage(found, text)

    def _jobs(self, first: int) -> list[Any]:
        """Returns the jobs from a number on."""
        jobs, out = self._store.jobsList(None), []
        for i in range(jobs.size()):  # the last one comes first
            if jobs.apply(i).jobId() < first:
                break
            out.append(jobs.apply(i))
        return out[::-1]

    def _stage(self, data: Any, job: str) -> StageMetrics:
        stage, attempt = data.stageId(), data.attemptId()
        times = [0.0, 0.0, 0.0]
        summary = self._store.taskSummary(stage, attempt, self._quantiles)
        if summary.isDefined():
            text = summary.get().executorRunTime().mkString(',')
            times = [float(ms) / 1e3 for ms in text.split(',')]
        return StageMetrics(
            stage=stage,
            attempt=attempt,
            job=job,
            name=data.name(),
            status=data.status().toString(),
            tasks=data.numTasks(),
            tasks_done=data.numCompleteTasks(),
            tasks_failed=data.numFailedTasks(),
            rows_read=data.inputRecords(),
            bytes_read=data.inputBytes(),
            rows_written=data.outputRecords(),
            bytes_written=data.outputBytes(),
            shuffle_rows_read=data.shuffleReadRecords(),
            shuffle_bytes_read=data.shuffleReadBytes(),
            shuffle_rows_written=data.shuffleWriteRecords(),
            shuffle_bytes_written=data.shuffleWriteBytes(),
            bytes_spilled=data.diskBytesSpilled(),
            peak_execution_bytes=data.peakExecutionMemory(),
            task_seconds=data.executorRunTime() / 1e3,
            jvm_cpu_seconds=data.executorCpuTime() / 1e9,
            gc_seconds=data.jvmGcTime() / 1e3,
            median_task_seconds=times[1],
            longest_task_seconds=times[2],
        )
