"""A plugin of pytest: writes when a test begins and how it ends, at once.

`GSAMPLE_OUTCOMES` names the file. The lines say which test ended the process
that ran it.
"""

import json
import os

import torch

from tests.cuda.processes import DEVICE_FAULT, TAIL


def write(**record):
    with open(os.environ['GSAMPLE_OUTCOMES'], 'a') as file:
        file.write(json.dumps(record) + '\n')


def pytest_runtest_logstart(nodeid):
    write(case=nodeid)


def pytest_runtest_logreport(report):
    if report.skipped:
        write(case=report.nodeid, said=f'skipped: {report.longrepr[2]}')
    elif report.failed:
        crash = getattr(report.longrepr, 'reprcrash', None)
        message = crash.message if crash else report.longreprtext
        works = device_works()
        write(
            case=report.nodeid,
            said=kind(message, works),
            seconds=report.duration,
            text=report.longreprtext[-TAIL:],
        )
        if not works:  # each later test would fail for that
            os._exit(DEVICE_FAULT)
    elif report.when == 'call':
        write(case=report.nodeid, said='ok', seconds=report.duration)


def kind(message, works):
    """The kind of a failure, and the first line of its message."""
    wrong = message.startswith(('assert ', 'AssertionError'))
    name = 'WRONG' if wrong else 'ERROR'
    first = message.splitlines()[0] if message else ''
    return f'{name if works else "DEVICE FAULT"}: {first[:200]}'


def device_works():
    """Whether the GPU takes more work."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True
