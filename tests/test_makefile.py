"""Each target of the Makefile runs on a clone in which nothing was made."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cuda.on_gpu import STAGES

TOP = Path(__file__).resolve().parent.parent
CUDA_TARGETS = ['test-cuda', *(f'test-cuda-{stage}' for stage in STAGES)]
#: Targets that `.ci/run` does not run, and why.
NOT_IN_CI = {
    'bench': 'measures for minutes',
    'clean': 'removes all that was made',
    'demo': 'tests/examples trains the same for two batches',
    'test-aarch64': 'downloads gigabytes, and emulates a processor',
    'test-clients': "runs other projects' tests, from checkouts of them",
    'test-compile-other': 'compiles for minutes, with a compiler of its own',
    'test-fast': 'runs a part of what test runs',
    'test-sanitize': '.ci/run runs two of its three parts',
    'test-sanitize-thread': 'takes longer than all others',
    'test-torch211': 'downloads gigabytes',
    'test-wheels': 'downloads gigabytes; test-wheel does the last of them',
    **dict.fromkeys(CUDA_TARGETS, 'takes a GPU'),
}

#: Compilers, and what downloads or emulates.
PROGRAMS = (
    *('g++', 'aarch64-linux-gnu-g++', 'qemu-aarch64-static'),
    *('apt-get', 'debootstrap', 'dpkg'),
)
#: Replaces Python and all programs of its environment: writes their files, and
#: no folder that they would not make.
STUB = """\
#!/usr/bin/env bash
set -eu
echo "${0##*/} $*" >> "$STUB_LOG"
previous=
for word in "$@"; do
  case $word in
    *.py | *.whl) test -e "$word" ;;
  esac
  case $previous in
    --constraint | --egg-base) test -e "$word" ;;
    --outdir | --wheel-dir) mkdir -p "$word" && touch "$word/package.whl" ;;
  esac
  previous=$word
done
case "${0##*/} $*" in
  *' -m venv '*)
    mkdir -p "$previous/bin"
    for name in auditwheel clang-format gsample mypy pyright python ruff; do
      cp "$0" "$previous/bin/$name"
    done ;;
  *snippet.py*installation.md) echo picture > sample.png ;;
esac
"""


def targets():
    """The targets of the Makefile that a person names."""
    database = subprocess.run(
        ['make', '--print-data-base', '--question', '--no-builtin-rules'],
        cwd=TOP,
        capture_output=True,
        text=True,
    ).stdout
    [phony] = re.findall(r'^\.PHONY: (.*)$', database, re.MULTILINE)
    return sorted(phony.split())


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
    """The files of the checkout that are not ignored."""
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '-co', '--exclude-standard'],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = tmp_path_factory.mktemp('clone') / 'tree'
    for name in filter(None, listed.stdout.split('\0')):
        if (TOP / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, folder / name)
    return folder


@pytest.mark.parametrize('target', targets())
def test_a_target_runs_where_nothing_was_made(target, tree, tmp_path):
    clone, python = tmp_path / 'clone', tmp_path / 'python3'
    shutil.copytree(tree, clone, copy_function=os.link)
    for program in (python, *(tmp_path / name for name in PROGRAMS)):
        program.write_text(STUB)
        program.chmod(0o755)
    log = tmp_path / 'log'
    log.touch()
    done = subprocess.run(
        ['make', target, f'PYTHON={python}'],
        cwd=clone,
        env=os.environ
        | {'STUB_LOG': str(log), 'PATH': f'{tmp_path}:{os.environ["PATH"]}'},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr + log.read_text()
    assert log.read_text() or target == 'clean'


def test_ci_runs_all_targets_that_it_can():
    text = (TOP / '.ci/run').read_text().replace('\\\n', '')
    lines = re.findall(r'^make ([^#\n]*)|for target in (.*); do', text, re.M)
    words = ' '.join(map(' '.join, lines)).split()
    named = [word for word in words if not word.startswith('--')]
    assert set(named).isdisjoint(NOT_IN_CI)
    assert sorted([*named, *NOT_IN_CI]) == targets()


def test_ci_begins_with_the_first_line_of_the_readme():
    """Where no other target has made a folder that it needs."""
    commands = re.findall(r'^make [\w-]+', (TOP / '.ci/run').read_text(), re.M)
    assert commands[0] == 'make wheel'
    assert 'make wheel' in (TOP / 'README.md').read_text()
