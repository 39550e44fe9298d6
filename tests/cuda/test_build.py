"""When an object is built again; `make test-wheel` checks a whole build."""

import os
import runpy
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    'source',
    ['cpu/sample_hops.cpp', 'cpu/draws.cpp', 'storage/io_uring.cpp'],
)
def test_objects_depend_on_every_included_file(source, monkeypatch):
    monkeypatch.setattr('setuptools.setup', lambda **_: None)
    build = runpy.run_path(str(ROOT / 'setup.py'))
    path = ROOT / 'csrc' / source
    read = subprocess.run(
        [os.environ.get('CXX', 'g++'), '-std=c++17', '-MM', path],
        capture_output=True,
        text=True,
        check=True,
    )
    names = read.stdout.split(':')[1].replace('\\\n', ' ').split()
    want = {Path(name).resolve() for name in names}
    assert build['included'](path) == want


@pytest.mark.parametrize('name', ['NVCC_PREPEND_FLAGS', 'NVCC_APPEND_FLAGS'])
def test_objects_are_made_again_for_flags_that_only_nvcc_reads(
    name, monkeypatch
):
    monkeypatch.setattr('setuptools.setup', lambda **_: None)
    build = runpy.run_path(str(ROOT / 'setup.py'))
    sources = ROOT / 'csrc/cuda/weights.cu', ROOT / 'csrc/cpu/draws.cpp'

    def made(path):
        name = build['fingerprint'](path, ['compiler'])
        return name, build['folder_of'](path)

    def prints():
        return [*map(made, sources)]

    kernel, host = prints()
    monkeypatch.setenv(name, '--Ofast-compile=max')
    assert prints()[0][0] != kernel[0]
    assert prints()[0][1] != kernel[1]  # objects of both are kept
    assert prints()[1] == host
