"""The findings of `gsample doctor`, and its advice."""

import importlib.metadata
import json

import pytest
import torch

from torch_gsample import cli, doctor


def finding(part):
    [found] = [f for f in doctor.examine() if f.part == part]
    return found


@pytest.fixture
def versions(monkeypatch):
    """Versions of packages that differ from the installed ones."""
    known, other = importlib.metadata.version, {}

    def version(name):
        if name in other and other[name] is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return other.get(name) or known(name)

    monkeypatch.setattr(importlib.metadata, 'version', version)
    return other


def test_doctor_finds_installed_packages(capsys):
    assert cli.main(['doctor']) == 0
    out = capsys.readouterr().out
    assert '(everything)' not in out  # no advice without a problem
    lines = out.splitlines()
    states = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert states['torch'] == ['ok', torch.__version__]
    assert states['extension'][0] == 'ok'
    assert states['extension'][1].rstrip(',') == 'CPU'
    assert states['compiler'][0] == 'ok'


def test_findings_are_json(capsys):
    assert cli.main(['doctor', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert [f['part'] for f in found] == [f.part for f in doctor.examine()]
    assert all(f['advice'] for f in found if f['state'] != 'ok')


def test_required_packages_decide_the_exit_status(versions, capsys):
    versions['torch-geometric'] = '2.6.1'
    assert cli.main(['doctor']) == 1
    out = capsys.readouterr().out
    assert 'torch-geometric  too old  2.6.1\n' in out
    assert (
        "torch-geometric (everything): pip install 'torch-geometric>=2.7"
        in out
    )


def test_optional_packages_do_not_change_the_exit_status(versions, capsys):
    versions['pyspark'] = None
    assert cli.main(['doctor']) == 0
    assert "(spark)): pip install 'pyspark>=4.1'" in capsys.readouterr().out


def test_versions_are_compared_as_numbers(versions):
    versions['torch'] = '2.9.1+cu130'
    assert finding('torch').state == 'too old'
    versions['torch'] = '2.11.0a0'
    assert finding('torch').state == 'ok'


def test_a_compiler_is_tried(monkeypatch, tmp_path):
    monkeypatch.setenv('CXX', str(tmp_path / 'cc'))
    assert finding('compiler').state == 'missing'
    (tmp_path / 'cc').write_text('#!/bin/sh\necho no disk >&2; exit 3\n')
    (tmp_path / 'cc').chmod(0o755)
    broken = finding('compiler')
    assert broken.state == 'broken'
    assert 'no disk' in broken.advice


def test_a_gpu_needs_kernels(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    assert finding('gpu').state == 'missing'
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda: 'H200')
    monkeypatch.setattr(doctor, 'has_cuda_kernel', lambda _: False)
    assert 'GSAMPLE_CUDA=1' in finding('gpu').advice
    monkeypatch.setattr(doctor, 'has_cuda_kernel', lambda _: True)
    assert finding('gpu').state == 'ok'


def test_threads_that_spin_are_named(monkeypatch):
    monkeypatch.setattr(torch, 'get_num_threads', lambda: 2)
    monkeypatch.delenv('OMP_WAIT_POLICY', raising=False)
    assert 'OMP_WAIT_POLICY=PASSIVE' in finding('waiting').advice
    monkeypatch.setenv('OMP_WAIT_POLICY', 'passive')
    assert finding('waiting').state == 'ok'
    monkeypatch.delenv('OMP_WAIT_POLICY')
    monkeypatch.setattr(torch, 'get_num_threads', lambda: 1)
    assert finding('waiting').state == 'ok'


@pytest.mark.parametrize(
    ('variable', 'value', 'state'),
    [
        ('MALLOC_MMAP_MAX_', '0', 'ok'),
        ('MALLOC_MMAP_MAX_', '65536', 'slow'),
        ('GLIBC_TUNABLES', 'a.b=1:glibc.malloc.mmap_max=0', 'ok'),
        ('LD_PRELOAD', '/usr/lib/libjemalloc.so.2', 'ok'),
        ('LD_PRELOAD', '/usr/lib/libasan.so', 'slow'),
    ],
)
def test_allocators_that_keep_no_pages_are_named(
    monkeypatch, variable, value, state
):
    monkeypatch.setattr(doctor.platform, 'libc_ver', lambda: ('glibc', '2.36'))
    for name in ('MALLOC_MMAP_MAX_', 'GLIBC_TUNABLES', 'LD_PRELOAD'):
        monkeypatch.delenv(name, raising=False)
    assert finding('allocator').state == 'slow'
    monkeypatch.setenv(variable, value)
    assert finding('allocator').state == state
    assert ('MALLOC_MMAP_MAX_=0' in finding('allocator').advice) == (
        state == 'slow'
    )


def test_other_allocators_are_left_alone(monkeypatch):
    monkeypatch.setattr(doctor.platform, 'libc_ver', lambda: ('', ''))
    assert finding('allocator').state == 'ok'
