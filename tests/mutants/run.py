"""Plants mistakes one at a time: `python tests/mutants/run.py [name ...]`.

Each is made in a copy of the tree, where the tests run that must catch it.
The table at the end says which test did. A mistake that no test caught is
the exit status 1. A mistake in a source of the extension builds its object
again; those in headers are compiled by their tests.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.table import MUTANTS, Mutant  # noqa: E402

COPIED = (
    *('csrc', 'torch_gsample', 'tests', 'setup.py', 'pyproject.toml'),
    *('docs', 'README.md', 'LICENSE', 'build/objects'),
)
SECONDS = 900  # of the tests of a mistake


def copy_tree(folder: Path) -> None:
    """Copies what builds and tests need."""
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(
                *(source, target),
                ignore=shutil.ignore_patterns('__pycache__'),
            )
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def environment(folder: Path) -> dict[str, str]:
    out = dict(os.environ, PYTHONPATH=str(folder))
    cuda = (ROOT / 'build/objects/cuda').is_dir()
    out.setdefault('GSAMPLE_CUDA', str(int(cuda)))
    return out


def build(folder: Path) -> None:
    command = [sys.executable, 'setup.py', '-q', 'build_ext', '--inplace']
    subprocess.run(
        *(command,), cwd=folder, env=environment(folder), check=True
    )


def failed_test(folder: Path, mutant: Mutant) -> str | None:
    """Runs tests until one fails; returns its name."""
    command = f'{sys.executable} -m pytest -q -x -n 0 -p no:cacheprovider'
    done = subprocess.run(
        f'{command} --no-header {mutant.tests}',
        shell=True,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    for line in done.stdout.splitlines():
        if line.startswith(('FAILED', 'ERROR')):
            return line.partition(' ')[2].partition(' - ')[0]
    if done.returncode != 0:
        raise RuntimeError(f'{mutant.name}: {done.stdout}\n{done.stderr}')
    return None


def caught_by(folder: Path, mutant: Mutant) -> str | None:
    """Plants a mistake, runs its tests, and takes it out again."""
    path = folder / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f'{mutant.name}: the old text must stand once')
    built = path.suffix == '.cpp'
    try:
        path.write_text(text.replace(mutant.old, mutant.new))
        if built:
            build(folder)
        return failed_test(folder, mutant)
    finally:
        path.write_text(text)
        if built:
            part = path.relative_to(folder / 'csrc')
            for name in (f'build/objects/{part}.o', 'torch_gsample/_C.so'):
                shutil.copy2(ROOT / name, folder / name)
            note = f'build/objects/{part}.sha256'
            shutil.copy2(ROOT / note, folder / note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('names', nargs='*', help='parts of names or files')
    names = parser.parse_args().names
    chosen = [
        m
        for m in MUTANTS
        if not names or any(n in m.name or n in m.file for n in names)
    ]
    survivors = 0
    with tempfile.TemporaryDirectory(prefix='mutants') as folder:
        copy_tree(Path(folder))
        print('| mistake | file | caught by |\n|---|---|---|', flush=True)
        for mutant in chosen:
            found = caught_by(Path(folder), mutant)
            survivors += found is None
            said = f'`{found}`' if found else 'NOTHING'
            print(f'| {mutant.name} | `{mutant.file}` | {said} |', flush=True)
    print(f'{len(chosen) - survivors} of {len(chosen)} were caught')
    return int(survivors > 0)


if __name__ == '__main__':
    sys.exit(main())
