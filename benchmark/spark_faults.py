"""Equality of samples on Spark under faults of processes, disks and clocks.

    python benchmark/spark_faults.py --moments 20
    python benchmark/spark_faults.py --only disk shards

Runs of a small graph are disturbed at random moments, and compared with the
local sampler, on a standalone cluster of two workers of one core or in local
mode. Each row of the table is a kind of fault: its count, the runs that ended
with an error naming it, and the equal results. ``disk`` mounts a small file
system in memory, which requires root; ``clocks`` compiles a library that
shifts the wall clock of a process.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import Report, machine
from spark import processes
from spark_cluster import HOST, TOP, standalone
from spark_work import (
    BATCH,
    FANOUTS,
    Work,
    digest,
    local_batches,
    make_graph,
    store,
)
from torch_geometric.data import Data

from torch_gsample import spark as on_spark
from torch_gsample.spark import SampledParquetLoader
from torch_gsample.storage import ChunkedGraph

#: JVMs that live for seconds.
SHORT = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
#: For as many losses as moments: Spark gives up after four of a task.
PATIENT = {
    'spark_task_maxFailures': '1000',
    'spark_stage_maxConsecutiveAttempts': '1000',
}


@contextlib.contextmanager
def cluster(
    environments: tuple[dict[str, str], ...] = ({}, {}), **settings: str
) -> Iterator[Any]:
    """Spark on two workers of this machine."""
    with standalone(len(environments), '1g', environments) as master:
        spark = on_spark.local_session(
            master=master,
            spark_driver_host=HOST,
            spark_driver_bindAddress=HOST,
            spark_driver_memory='1g',
            spark_driver_extraJavaOptions=SHORT,
            spark_executor_extraJavaOptions=SHORT,
            spark_executor_memory='800m',
            spark_executorEnv_PYTHONPATH=str(TOP),
            spark_sql_shuffle_partitions='6',
            spark_ui_showConsoleProgress='false',
            **settings,
        )
        spark.sparkContext.setLogLevel('OFF')
        try:
            yield spark
        finally:
            spark.stop()


def _command(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f'/proc/{process}/cmdline').read_text()
    return ''


def executors() -> list[int]:
    """The JVMs that run tasks."""
    return [p for p in processes() if 'CoarseGrainedExecutor' in _command(p)]


def python_workers() -> list[int]:
    """The processes that daemons forked."""
    own = {p for p in processes() if 'worker_daemon' in _command(p)}
    parents = {}
    for p in own:
        with contextlib.suppress(OSError):
            text = Path(f'/proc/{p}/stat').read_text()
            parents[p] = int(text.rpartition(')')[2].split()[1])
    return [p for p, parent in parents.items() if parent in own]


@contextlib.contextmanager
def killing(
    victims: Callable[[], list[int]], moments: int, pause: float
) -> Iterator[list[int]]:
    """Kills one of the victims from time to time; adds it to a list."""
    killed: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while len(killed) < moments and not ended.wait(
            random.uniform(0, 2 * pause)
        ):
            if found := victims():
                victim = random.choice(found)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def killed_processes(
    victims: Callable[[], list[int]], pause: float
) -> Callable[..., list[Any]]:
    """A fault: processes are killed while jobs run one after another."""

    def fault(data: Data, folder: Path, moments: int) -> list[Any]:
        with cluster(**PATIENT) as spark:
            work, equal, rounds = Work(spark, data, folder), 0, 0
            with killing(victims, moments, pause) as killed:
                while len(killed) < moments or rounds % 4:
                    equal += work.run(rounds)
                    rounds += 1
            return [len(killed), 0, equal, rounds]

    return fault


def drivers(data: Data, folder: Path, moments: int) -> list[Any]:
    """A driver is killed, and the next one continues, until all are done."""
    run = folder / 'run'
    for _ in range(moments):
        child = _driver(folder, run, 1000)
        assert child.stdout is not None
        assert child.stdout.readline() == 'begins\n'
        # From before the first job to after several, on a busy machine.
        time.sleep(random.uniform(0, 40))
        child.kill()
        child.wait()
    epochs = max(len([*run.glob('epoch-*')]), 1)
    last = _driver(folder, run, epochs)
    assert last.wait() == 0
    return [moments, 0, *_equal_epochs(data, folder, run, epochs)]


def _driver(folder: Path, run: Path, epochs: int, errors: bool = False) -> Any:
    words = [sys.executable, __file__, '--drive', str(folder), str(run)]
    return subprocess.Popen(
        [*words, str(epochs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(TOP)},
    )


def _equal_epochs(
    data: Data, folder: Path, run: Path, epochs: int
) -> tuple[int, int]:
    loader = SampledParquetLoader(str(run))
    equal = 0
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        equal += digest(loader) == local_batches(data, epoch)
    return equal, epochs


def drive(folder: Path, run: Path, epochs: int) -> None:
    """Samples epochs in a separate driver."""
    spark = local_spark()
    print('begins', flush=True)
    sample_epochs(spark, folder, run, epochs)


def sample_epochs(spark: Any, folder: Path, run: Path, epochs: int) -> None:
    on_spark.sample_epochs(
        ChunkedGraph(folder / 'graph'),
        spark.read.parquet(str(folder / 'seeds.parquet')),
        FANOUTS,
        run,
        batch_size=BATCH,
        seed=12,
        epochs=epochs,
        batches_per_job=5,
    )


def local_spark() -> Any:
    spark = on_spark.local_session(
        master='local[2]',
        spark_driver_extraJavaOptions=SHORT,
        spark_driver_memory='1g',
        spark_sql_shuffle_partitions='4',
        spark_ui_showConsoleProgress='false',
    )
    spark.sparkContext.setLogLevel('OFF')
    return spark


def full_disk(data: Data, folder: Path, moments: int) -> list[Any]:
    """A disk has a random number of free bytes, then enough."""
    spark, disk, refused = local_spark(), folder / 'disk', 0
    disk.mkdir()
    mount = ['mount', '-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', str(disk)]
    subprocess.check_call(mount)
    try:
        edges = spark.read.parquet(str(folder / 'edges.parquet'))
        for moment in range(moments):
            free = os.statvfs(disk)
            room = random.randrange(1 << 17)
            size = max(free.f_bavail * free.f_bsize - room, 0)
            (disk / 'ballast').write_bytes(bytes(size))
            try:
                if moment % 4:
                    sample_epochs(spark, folder, disk / 'run', 100)
                else:
                    on_spark.prepare_adjacency(edges, disk / 'graph')
            except Exception as error:
                if 'No space left' not in str(error):
                    raise
                refused += 1
            (disk / 'ballast').unlink()
            assert not (disk / 'graph').exists()
            assert {p.name for p in disk.iterdir()} <= {'run'}
        epochs = max(len([*(disk / 'run').glob('epoch-*')]), 1)
        sample_epochs(spark, folder, disk / 'run', epochs)
        found = _equal_epochs(data, folder, disk / 'run', epochs)
    finally:
        spark.stop()
        subprocess.check_call(['umount', str(disk)])
    return [moments, refused, *found]


def corrupt_shards(data: Data, folder: Path, moments: int) -> list[Any]:
    """A byte of a finished epoch is changed, then restored."""
    spark, run, refused = local_spark(), folder / 'shards', 0
    sample_epochs(spark, folder, run, 1)
    spark.stop()
    files = [*(run / 'epoch-0').iterdir()]
    for _ in range(moments):
        file = random.choice(files)
        whole = file.read_bytes()
        at = random.randrange(len(whole))
        byte = bytes([whole[at] ^ 1 << random.randrange(8)])
        file.write_bytes(whole[:at] + byte + whole[at + 1 :])
        try:
            digest(SampledParquetLoader(str(run)))
        except ValueError:
            refused += 1
        file.write_bytes(whole)
    return [moments, refused, *_equal_epochs(data, folder, run, 1)]


def clocks(data: Data, folder: Path, moments: int) -> list[Any]:
    """An executor is three days ahead, another an hour behind."""
    library = folder / 'moved_clock.so'
    source = Path(__file__).with_name('moved_clock.c')
    command = ['gcc', '-O1', '-shared', '-fPIC', source, '-o', library]
    subprocess.run(command, check=True)
    apart = [
        {'LD_PRELOAD': str(library), 'MOVED_BY': str(seconds)}
        for seconds in (259_200, -3_600)
    ]
    with cluster((apart[0], apart[1])) as spark:
        days = spark.sparkContext.parallelize(range(8), 8).map(
            lambda _: time.time()
        )
        ahead = [at - time.time() for at in days.collect()]
        assert max(ahead) > 86_400, ahead
        assert min(ahead) < -1_800, ahead
        work = Work(spark, data, folder)
        equal = sum(work.run(round_) for round_ in range(4))
    return [2, 0, equal, 4]


def speculation(data: Data, folder: Path, moments: int) -> list[Any]:
    """Slow tasks run twice at the same time."""
    log = folder / 'log'
    log.mkdir()
    settings = {
        'spark_speculation': 'true',
        'spark_speculation_interval': '10ms',
        'spark_speculation_multiplier': '1',
        'spark_speculation_quantile': '0.1',
        'spark_speculation_minTaskRuntime': '0ms',
        'spark_eventLog_enabled': 'true',
        'spark_eventLog_rolling_enabled': 'false',
        'spark_eventLog_compress': 'false',
        'spark_eventLog_dir': f'file://{log}',
    }
    count = equal = rounds = 0
    with cluster(**settings) as spark:
        work = Work(spark, data, folder)
        while rounds < 4 or (count < moments and rounds < 40):
            equal += work.run(rounds)
            rounds += 1
            text = ''.join(p.read_text() for p in log.iterdir())
            count = sum(
                '"Speculative":true' in line
                for line in text.splitlines()
                if 'SparkListenerTaskStart' in line
            )
    return [count, 0, equal, rounds]


def two_drivers(data: Data, folder: Path, moments: int) -> list[Any]:
    """Two drivers start the same run at nearly the same time."""
    run, refused = folder / 'both', 0
    both = []
    for pause in (random.uniform(0, 3), 0):
        child = _driver(folder, run, 4, errors=True)
        both.append(child)
        time.sleep(pause)
    for child in both:
        text, _ = child.communicate()
        if child.returncode:
            assert 'another driver writes to' in text, text
            refused += 1
    return [1, refused, *_equal_epochs(data, folder, run, 4)]


FAULTS: dict[str, Callable[..., list[Any]]] = {
    'drivers': drivers,
    'executors': killed_processes(executors, 8.0),
    'workers': killed_processes(python_workers, 3.0),
    'disk': full_disk,
    'shards': corrupt_shards,
    'clocks': clocks,
    'speculation': speculation,
    'two_drivers': two_drivers,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--moments', type=int, default=20, help='how often a fault strikes')
    add('--only', nargs='*', default=[*FAULTS], choices=[*FAULTS])
    add('--seed', type=int, default=0, help='of the moments')
    add('--markdown', type=Path)
    add('--drive', nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive:
        folder, run, epochs = args.drive
        drive(Path(folder), Path(run), int(epochs))
        return
    print(machine())
    random.seed(args.seed)
    report = Report(
        'Faults',
        ['fault', 'struck', 'refused', 'equal', 'of', 'seconds'],
    )
    data = make_graph()
    for name in args.only:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            store(data, Path(folder))
            found = FAULTS[name](data, Path(folder), args.moments)
        report.add(name, *found, f'{time.monotonic() - start:.0f}')
    report.show()
    if args.markdown:
        args.markdown.write_text(f'{machine()}\n\n{report.markdown()}\n')


if __name__ == '__main__':
    main()
