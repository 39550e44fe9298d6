"""A pytest plugin: another project's tests with our classes in PyG's place.

``python -m tests.clients`` runs pytest with it. Tests that are expected to
fail must fail: one that passes, or that is not there, is an error as well.
Tests that fail for want of a network are skipped.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
import torch_geometric.typing
from torch_geometric.testing import decorators

import torch_gsample
from tests.clients.suites import SUITES

#: Packages that are not installed: PyG's samplers need one of them.
SAMPLERS = {'pyg_lib', 'torch_sparse'}
#: What PyG's tests ask before they sample.
FLAGS = (
    'WITH_PYG_LIB',
    'WITH_TORCH_SPARSE',
    'WITH_WEIGHTED_NEIGHBOR_SAMPLE',
    'WITH_EDGE_TIME_NEIGHBOR_SAMPLE',
)

_suite = SUITES[os.environ['GSAMPLE_SUITE']]
_not_found: list[str] = []


def pytest_configure() -> None:
    torch_gsample.patch_pyg()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Tests that PyG skips without a sampler of its own are collected."""
    path = collector.path.as_posix()
    samples = any(part in path for part in _suite.sampling)
    if not samples or not isinstance(collector, pytest.Module):
        return (yield)
    with samplers_are_there():
        return (yield)


@contextmanager
def samplers_are_there() -> Iterator[None]:
    """Tells PyG's decorators that pyg-lib and torch-sparse are installed."""
    has_package = decorators.has_package

    def has(package: str) -> bool:
        named = set(package.split('|'))
        return bool(named & SAMPLERS) or has_package(package)

    with (
        mock.patch.object(decorators, 'has_package', has),
        mock.patch.object(decorators, 'WITH_PYG_LIB', True),
        mock.patch.multiple(
            torch_geometric.typing, **dict.fromkeys(FLAGS, True)
        ),
    ):
        yield


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks tests that must fail, and notes missing ones."""
    failing, files = _suite.failing(), set()
    for item in items:
        path = item.path.relative_to(config.invocation_params.dir).as_posix()
        files.add(path)
        reason = failing.pop(f'{path}::{item.nodeid.partition("::")[2]}', None)
        if reason is not None:
            strict = reason not in _suite.random
            item.add_marker(pytest.mark.xfail(reason=reason, strict=strict))
    # A part of a suite may run alone.
    _not_found.extend(n for n in failing if n.partition('::')[0] in files)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and call.excinfo and _is_offline(call.excinfo.value):
        report.outcome = 'skipped'
        report.longrepr = str(item.path), 0, 'needs a download'
    return report


def _is_offline(error: BaseException | None) -> bool:
    """Whether a name of the network was not found."""
    while error is not None:
        reason = getattr(error, 'reason', None)
        if isinstance(error, socket.gaierror) or isinstance(
            reason, socket.gaierror
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _not_found and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter) -> None:
    for name in _not_found:
        terminalreporter.write_line(f'expected to fail, not found: {name}')
    stats = terminalreporter.stats
    count = {kind: len(found) for kind, found in stats.items()}
    counts = {
        'passed': count.get('passed', 0) + count.get('xpassed', 0),
        'expected': count.get('xfailed', 0),
        'skipped': count.get('skipped', 0),
    }
    Path(os.environ['GSAMPLE_COUNTS']).write_text(json.dumps(counts))
