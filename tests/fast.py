"""Runs the tests of changed files (``make test-fast``).

Changed files differ from ``main``, or on ``main`` itself from its last commit.
Without a change, it runs a selection of two minutes.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
#: About two minutes on two cores.
SELECTION = ('ops', 'sparse_sample', 'samplers', 'algorithms', 'codegen')
#: With slow tests.
MARKERS = 'not interop and not sanitizers'
#: Tests of files outside the package, by path prefix.
OTHERS = {
    'csrc/cuda': ['tests/cuda'],
    'csrc/emu': ['tests/cuda'],
    'csrc/core': ['tests/core', 'tests/ops'],
    'csrc/storage': ['tests/storage'],
    'csrc': ['tests/ops'],
    'docs': ['tests/test_docs.py'],
    'README.md': ['tests/test_docs.py'],
    'examples': ['tests/examples', 'tests/test_gallery.py'],
    'benchmark': ['tests/cli/test_bench.py'],
    'Makefile': ['tests/test_makefile.py'],
    '.ci': ['tests/test_makefile.py'],
}


def changed_files() -> list[str]:
    """Returns the files that differ from main, or are not tracked."""

    def git(*args: str) -> list[str]:
        done = subprocess.run(
            ['git', *args], cwd=TOP, capture_output=True, text=True
        )
        return done.stdout.splitlines()

    base = git('merge-base', 'HEAD', 'main') or ['HEAD']
    untracked = git('ls-files', '--others', '--exclude-standard')
    return sorted({*git('diff', '--name-only', base[0]), *untracked})


def concerned(path: str, top: Path = TOP) -> list[str]:
    """Returns the test files and folders of a file."""
    if not path.startswith(('tests/', 'torch_gsample/')):
        start = next((s for s in OTHERS if path.startswith(s)), None)
        return [] if start is None else OTHERS[start]
    parts = Path(path).parts
    if parts[0] == 'tests':
        is_test = parts[-1].startswith('test_') and path.endswith('.py')
        found = top / path if is_test else top / Path(*parts[:2])
        return [str(found.relative_to(top))] if found.exists() else []
    module = path.removesuffix('.py').removesuffix('/__init__')
    package, _, name = module.replace('/', '.').rpartition('.')
    uses = re.compile(
        rf'\b{package}\.{name}\b|from {package} import [^)]*?\b{name}\b'
    )
    folder = f'tests/{parts[1]}' if len(parts) > 2 else ''
    return [
        str(file.relative_to(top))
        for file in sorted((top / 'tests').rglob('test_*.py'))
        if str(file.relative_to(top)).startswith(f'{folder}/')
        or uses.search(file.read_text())
    ]


def main(options: list[str]) -> int:
    """Runs pytest, with additional options for it."""
    files = {test for path in changed_files() for test in concerned(path)}
    folders = {f'tests/{name}' for name in SELECTION}
    chosen = sorted(files or folders)
    print('\n'.join(chosen), flush=True)
    run = ['-n', '2', '--dist', 'loadfile', '-m', MARKERS]
    return pytest.main([*run, *options, *chosen])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
