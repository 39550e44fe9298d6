"""Every kernel under ThreadSanitizer and AddressSanitizer with UBSan."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda.emulated import GXX

TESTS = Path(__file__).parent


def runtime(name):
    """The library that a program must load before all others."""
    command = [GXX, f'-print-file-name=lib{name}.so']
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def without_gpu(environment):
    """An environment in which no part of CUDA is loaded below a sanitizer."""
    environment = dict(environment, CUDA_VISIBLE_DEVICES='')
    environment.pop('GSAMPLE_TEST_GPU', None)
    return environment


def test_sanitizers_start_no_test_on_a_gpu(monkeypatch):
    monkeypatch.setenv('GSAMPLE_TEST_GPU', '1')
    code = 'from tests.cuda.conftest import HAS_GPU; print(HAS_GPU)'
    done = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True,
        text=True,
        cwd=TESTS.parents[1],
        env=without_gpu(os.environ),
        check=True,
    )
    assert done.stdout == 'False\n'


@pytest.mark.sanitizers
@pytest.mark.parametrize(
    ('sanitizer', 'libraries'),
    [('thread', ['tsan']), ('address', ['asan', 'ubsan'])],
)
def test_kernels_are_clean(builder, sanitizer, libraries):
    """The tests that are marked so, in a process of their own."""
    supp = TESTS.parent / 'sanitize' / 'tsan.supp'
    environment = {
        **without_gpu(os.environ),
        'GSAMPLE_EMULATED': str(builder.operators(sanitizer)),
        'LD_PRELOAD': ' '.join(map(runtime, libraries)),
        'ASAN_OPTIONS': 'detect_leaks=0',
        'TSAN_OPTIONS': f'report_signal_unsafe=0:suppressions={supp}:'
        'halt_on_error=1:exitcode=66',
    }
    # ThreadSanitizer needs a fixed layout of memory.
    done = subprocess.run(
        ['setarch', '-R', sys.executable, '-m', 'pytest', TESTS, '-x']
        + ['-p', 'no:cacheprovider', '-m', 'sanitize'],
        capture_output=True,
        text=True,
        cwd=TESTS.parents[1],
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
