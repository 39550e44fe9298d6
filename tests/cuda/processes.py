"""Runs cases in processes of their own, and tells how each ended.

A wrong answer, an error, a crash and a hang are told apart, and none of them
keeps the others from running. Results are written as they come.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TAIL = 4000  # characters kept of a process's output
#: How outcomes begin that are no fault.
WELL = 'ok', 'skipped', 'left out'


def is_well(record):
    """Whether a case found no fault."""
    return record['said'].startswith(WELL)


class Stage:
    """A part of the checks, with a file of results and a limit of time.

    Args:
        name (str): Its name; results go to `<name>.jsonl`, a line a case.
        folder (Path): The folder of that file.
        minutes (float): At the end of this time running cases are killed, and
            no case begins.
    """

    def __init__(self, name, folder, minutes):
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.folder = name, folder
        self.path = folder / f'{name}.jsonl'
        self.path.write_text('')
        self.records, self._lock = [], threading.Lock()
        self._end = time.monotonic() + 60 * minutes

    def left(self):
        """Seconds until the end."""
        return self._end - time.monotonic()

    def write(self, case, said, seconds=0.0, **more):
        """Writes and prints how a case ended."""
        record = {'case': case, 'said': said, 's': round(seconds, 2), **more}
        with self._lock:
            self.records.append(record)
            with self.path.open('a') as file:
                file.write(json.dumps(record) + '\n')
            first = said.splitlines()[0]
            print(f'{seconds:7.1f} s  {case}: {first}', flush=True)
        return record

    def run(self, case, command, limit, keep_text=False, **environment):
        """Runs a process for `limit` seconds at most; writes how it ended."""
        if self.left() <= 0:
            return self.write(case, 'left out: no time was left')
        process = self.process(command, limit, **environment)
        said, text = process.said(), process.text()
        last = text.rstrip().rpartition('\n')[2]
        if process.status in (0, 1) and last.startswith('{"said": '):
            said = json.loads(last)['said']
        more = {} if said == 'ok' and not keep_text else {'text': text}
        return self.write(case, said, process.seconds, **more)

    def process(self, command, limit, **environment):
        """Runs a process, and writes nothing."""
        process = Process(command, environment)
        process.wait(min(limit, self.left()))
        return process

    def close(self):
        """Prints a summary; returns whether no case found a fault."""
        bad = [record for record in self.records if not is_well(record)]
        kinds = Counter(r['said'].split(':')[0] for r in self.records)
        print(f'{self.name}: {dict(kinds)}', flush=True)
        for record in bad:
            print(f'--- {record["case"]}: {record["said"]}')
        return not bad


class Process:
    """A process and its children, which end with it.

    Args:
        command (list): What runs, in the folder of the checkout.
        environment (dict): Variables in addition to the environment.
    """

    def __init__(self, command, environment):
        self._begin, self._hung = time.monotonic(), False
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            list(map(str, command)),
            cwd=TOP,
            env=clean_environment() | environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self, limit):
        """Waits, and kills the process after `limit` seconds."""
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()

    def is_running(self):
        """Whether it runs."""
        return self._process.poll() is None

    def kill(self):
        """Ends the process and its children."""
        self._hung = self.is_running()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def status(self):
        """The status; None if it had to be ended."""
        return None if self._hung else self._process.poll()

    @property
    def seconds(self):
        """How long it has run."""
        return time.monotonic() - self._begin

    def said(self):
        """How it ended."""
        if self.status is None:
            return f'HANG: ended after {self.seconds:.0f} s'
        if self.status < 0:
            return f'CRASH: {signal.Signals(-self.status).name}'
        return f'FAILED: status {self.status}' if self.status else 'ok'

    def text(self):
        """The end of its output."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - TAIL))
        return self._output.read().decode(errors='replace')


def clean_environment():
    """The environment of a process in a checkout, without a sanitizer."""
    environment = dict(os.environ)
    environment.pop('LD_PRELOAD', None)
    paths = [str(TOP), *filter(None, [environment.get('PYTHONPATH')])]
    return environment | {
        'GSAMPLE_TEST_GPU': '1',
        'PYTHONPATH': os.pathsep.join(paths),
        'PYTHONUNBUFFERED': '1',
    }


#: Status of a process of tests that ends as the device has a fault.
DEVICE_FAULT = 99


def run_tests(stage, tests, limit):
    """Runs tests in one process, and the rest in another one after a crash.

    Args:
        stage (Stage): Where results are written.
        tests (list): Ids of pytest.
        limit (float): A test that takes more seconds hangs.
    """
    while tests and stage.left() > 0:
        with tempfile.NamedTemporaryFile('r') as outcomes:
            process = Process(
                [*pytest('-p', 'tests.cuda.outcomes'), *tests],
                {'GSAMPLE_OUTCOMES': outcomes.name, 'OMP_NUM_THREADS': '2'},
            )
            begun, done = follow(stage, process, outcomes, limit)
        tests = [test for test in tests if test not in done]
        if stage.left() <= 0 or (process.status == 0 and not tests):
            break
        if process.status == DEVICE_FAULT and done:  # the test has said so
            continue
        culprits = [test for test in tests if test in begun]
        if culprits or not begun or process.status not in (0, 1):
            name = (culprits or tests or [f'the end of {max(done)}'])[0]
            text = process.text()
            stage.write(name, process.said(), process.seconds, text=text)
            tests = [test for test in tests if test != name]
        if not culprits:
            break
    why = 'it was not begun' if stage.left() > 0 else 'no time was left'
    for test in tests:
        stage.write(test, f'left out: {why}')


def follow(stage, process, outcomes, limit):
    """Writes outcomes while tests run; returns the tests begun and done."""
    begun, done, rest = set(), set(), ''
    last = time.monotonic()
    while True:
        running = process.is_running()
        *lines, rest = (rest + outcomes.read()).split('\n')
        for record in map(json.loads, lines):
            last = time.monotonic()
            if 'said' in record:
                done.add(record['case'])
                stage.write(record.pop('case'), **record)
            else:
                begun.add(record['case'])
        if not running:
            return begun, done
        silent = time.monotonic() - last
        if silent > limit + 60 * (not begun) or stage.left() <= 0:
            process.kill()
            return begun, done
        time.sleep(0.1)


def pytest(*options):
    """A command that runs tests, with none of the project's options."""
    own = ['-o', 'addopts=', '-p', 'no:cacheprovider', *options]
    return [sys.executable, '-m', 'pytest', *own]
