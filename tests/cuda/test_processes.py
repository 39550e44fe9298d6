"""`on_gpu.py` tells right, wrong, crashed and hung processes apart."""

import functools
import json
import os
import re
import subprocess
import sys
import time

import pytest
import torch

from tests.cuda import on_gpu, processes
from tests.cuda.processes import Stage, clean_environment, run_tests

HERE = 'tests/sanitize/planted_faults.py'


@pytest.fixture
def stage(tmp_path):
    return Stage('smoke', tmp_path / 'new' / 'folder', minutes=10)


def written(stage):
    """What each case said."""
    lines = map(json.loads, stage.path.read_text().splitlines())
    return {line['case']: line['said'] for line in lines}


@pytest.mark.parametrize(
    ('code', 'said'),
    [
        ('pass', 'ok'),
        ('raise SystemExit(3)', 'FAILED: status 3'),
        ('import os; os.abort()', 'CRASH: SIGABRT'),
        ('import time; time.sleep(60)', 'HANG: ended after 1 s'),
        ('print(\'{"said": "WRONG: 3"}\'); exit(1)', 'WRONG: 3'),
    ],
)
def test_a_process_is_said_to_end_as_it_does(stage, code, said):
    limit = 1 if 'HANG' in said else 30
    stage.run('it', [sys.executable, '-c', code], limit)
    assert written(stage) == {'it': said}
    assert stage.close() == (said == 'ok')


def test_children_of_a_process_that_hangs_end_with_it(stage, tmp_path):
    file = tmp_path / 'child'
    script = f'while true; do date > {file}; sleep 0.01; done & wait'
    for limit in (0.5, 5, 50):  # until it has begun
        stage.run('it', ['sh', '-c', script], limit)
        if file.exists():
            break
    file.unlink()
    time.sleep(0.1)
    assert not file.exists()


def test_output_of_a_failed_process_is_recorded(stage):
    stage.run('it', [sys.executable, '-c', '1 / 0'], 30)
    assert 'ZeroDivisionError' in stage.records[0]['text']


def test_nothing_begins_after_the_end_of_a_stage(tmp_path):
    stage = Stage('smoke', tmp_path, minutes=0)
    stage.run('it', ['false'], 30)
    run_tests(stage, ['tests/test_x.py::test_y'], 30)
    assert [said.split(':')[0] for said in written(stage).values()] == [
        'left out'
    ] * 2


def test_tests_go_on_after_one_that_ends_their_process(stage, monkeypatch):
    monkeypatch.delenv('GSAMPLE_TEST_GPU', raising=False)
    # Four processes start; fixtures of other tests take most of that time.
    alone = functools.partial(processes.pytest, '--noconftest')
    monkeypatch.setattr(processes, 'pytest', alone)
    names = ['right', 'wrong', 'error', 'skipped', 'crash', 'device_fault']
    names += ['hang', 'after_all']
    run_tests(stage, [f'{HERE}::test_{name}' for name in names], 3)
    said = written(stage)
    kinds = ['ok', 'WRONG', 'ERROR', 'skipped', 'CRASH', 'DEVICE FAULT']
    assert [said[f'{HERE}::test_{name}'].split(':')[0] for name in names] == [
        *kinds, 'HANG', 'ok'
    ]  # fmt: skip
    assert 'no kernel image' in said[f'{HERE}::test_error']
    assert said[f'{HERE}::test_crash'] == 'CRASH: SIGABRT'
    assert not stage.close()


def test_a_test_that_is_not_there_is_a_failure(stage):
    run_tests(stage, [f'{HERE}::test_none', f'{HERE}::test_no'], 30)
    assert list(written(stage).values()) == [
        'FAILED: status 4',
        'left out: it was not begun',
    ]


def test_no_sanitizer_is_loaded_before_cuda(monkeypatch):
    monkeypatch.setenv('LD_PRELOAD', 'libasan.so')
    environment = clean_environment()
    assert 'LD_PRELOAD' not in environment
    assert environment['GSAMPLE_TEST_GPU'] == '1'
    assert environment['PYTHONPATH'].split(os.pathsep)[0] == str(on_gpu.TOP)


def test_the_extension_loads_up_to_the_first_call_of_cuda():
    command = [sys.executable, '-c', on_gpu.LOAD]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.startswith(torch.__version__)
    if not torch.cuda.is_available():
        assert re.search(
            'built without CUDA|not compiled with CUDA|no NVIDIA driver',
            done.stderr,
        ), done.stderr


def test_cases_of_a_first_look_run_on_the_cpu(monkeypatch, tmp_path):
    cases = ['op:slice_cols']
    out = ['--out', str(tmp_path), '--device', 'cpu', '--jobs', '1']
    command = ['on_gpu.py', 'smoke', *out, '--only', *cases]
    monkeypatch.setattr(sys, 'argv', command)
    with pytest.raises(SystemExit) as ended:
        on_gpu.main()
    lines = (tmp_path / 'smoke.jsonl').read_text().splitlines()
    said = [(x['case'], x['said']) for x in map(json.loads, lines)]
    assert said == [(case, 'ok') for case in cases]
    assert ended.value.code == 0
