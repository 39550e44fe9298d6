"""A standalone cluster on this machine, and a replay of its event logs.

Master and workers are processes on the loopback address. A replay is a
simulation: recorded tasks, with their recorded lengths, are dealt to more
executors of one core in the order in which Spark submitted their stages.
"""

import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from statistics import median

import pyspark

HOST = '127.0.0.1'
TOP = Path(__file__).resolve().parent.parent


@contextmanager
def standalone(
    workers: int,
    memory: str,
    environments: Sequence[dict[str, str]] | None = None,
) -> Iterator[str]:
    """Starts a master and workers of one core, and returns its address.

    Args:
        workers (int): How many.
        memory (str): What each may give to its executor.
        environments (List[Dict[str, str]], optional): Variables of each.
    """
    port, web = _free_port(), _free_port()
    address = f'spark://{HOST}:{port}'
    started = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            master = f'--host {HOST} --port {port} --webui-port {web}'
            started.append(_start('master.Master', master.split(), folder, {}))
            for i in range(workers):
                # Hosts of their own: speculative tasks run on another host.
                words = f'{address} --host 127.0.0.{i + 1} --cores 1'
                words += f' --memory {memory} --webui-port 0'
                words += f' --work-dir {folder}/{i}'
                own = environments[i] if environments else {}
                started.append(
                    _start('worker.Worker', words.split(), folder, own)
                )
            _wait(f'http://{HOST}:{web}/json/', workers)
            yield address
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def _start(
    name: str, words: list[str], folder: str, variables: dict[str, str]
) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        'SPARK_HOME': str(home),
        'SPARK_LOCAL_IP': HOST,
        'PYSPARK_PYTHON': sys.executable,
        'PYTHONPATH': str(TOP),
        'SPARK_DAEMON_MEMORY': '256m',
        **variables,
    }
    with open(f'{folder}/log', 'ab') as log:
        return subprocess.Popen(
            [home / 'bin/spark-class', f'org.apache.spark.deploy.{name}']
            + words,
            env=environment,
            stdout=log,
            stderr=log,
        )


def _free_port() -> int:
    with socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def _wait(url: str, workers: int) -> None:
    """Waits until all workers are known."""
    for _ in range(600):
        with (
            suppress(OSError, ValueError),
            urllib.request.urlopen(url) as answer,
        ):
            if json.load(answer)['aliveworkers'] == workers:
                return
        time.sleep(0.2)
    raise TimeoutError(f'spark_cluster: no {workers} workers at {url}')


@dataclass
class Stage:
    """A stage of an event log: times in seconds."""

    submitted: float = 0.0
    completed: float = 0.0
    tasks: list[float] = field(default_factory=list)

    @property
    def skew(self) -> float:
        """The longest task over the median one."""
        return max(self.tasks) / max(median(self.tasks), 1e-3)


def read_log(folder: str, start: float, end: float) -> list[Stage]:
    """Returns the stages that were submitted between two times.

    Args:
        folder (str): Of the one event log, not rolled.
        start (float): Seconds since 1970.
        end (float): Seconds since 1970.
    """
    (path,) = (p for p in Path(folder).iterdir() if p.is_file())
    stages: dict[tuple[int, int], Stage] = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event['Event'] == 'SparkListenerTaskEnd':
            info = event['Task Info']
            key = event['Stage ID'], event['Stage Attempt ID']
            took = info['Finish Time'] - info['Launch Time']
            stages.setdefault(key, Stage()).tasks.append(took / 1e3)
        elif event['Event'] == 'SparkListenerStageCompleted':
            info = event['Stage Info']
            key = info['Stage ID'], info['Stage Attempt ID']
            stage = stages.setdefault(key, Stage())
            stage.submitted = info['Submission Time'] / 1e3
            stage.completed = info['Completion Time'] / 1e3
    found = [s for s in stages.values() if start <= s.submitted <= end]
    return sorted(
        (s for s in found if s.tasks), key=lambda stage: stage.submitted
    )


def replay(stages: list[Stage], start: float, executors: int) -> float:
    """Returns the time of recorded stages on more executors of one core.

    A stage waits for the stages that had ended when Spark submitted it, and
    then as long as the driver took. Tasks keep their length: costs (network,
    launches) and savings (a shared disk) of many executors are not included.

    Args:
        stages (List[Stage]): By submission.
        start (float): Earliest start of the first job.
        executors (int): Number of concurrent tasks.
    """
    free = [0.0] * executors
    ends: list[float] = []
    for stage in stages:
        before = [
            (other.completed, end)
            for other, end in zip(stages, ends, strict=False)
            if other.completed <= stage.submitted
        ]
        driver = stage.submitted - max([start, *(done for done, _ in before)])
        ready = max([0.0, *(end for _, end in before)]) + driver
        last = ready
        for task in stage.tasks:
            begin = max(heapq.heappop(free), ready)
            heapq.heappush(free, begin + task)
            last = max(last, begin + task)
        ends.append(last)
    return max(ends, default=0.0)
