"""Runs other projects' tests: ``python -m tests.clients [NAME ...]``.

``--checkouts FOLDER`` has a checkout a suite, under the suite's name; what is
not there is cloned to it. The last lines are the rows of the table in
``docs/clients.md``. Arguments after ``--`` are pytest's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from tests.clients.suites import SUITES, Suite

TOP = Path(__file__).resolve().parent.parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog='tests.clients', description=__doc__)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument(
        '--checkouts', type=Path, default=TOP / 'build' / 'clients'
    )
    own, theirs = sys.argv[1:], []
    if '--' in own:
        at = own.index('--')
        own, theirs = own[:at], own[at + 1 :]
    args = parser.parse_args(own)
    if unknown := set(args.names) - set(SUITES):
        parser.error(f'no suite {sorted(unknown)}; there are {list(SUITES)}')
    failed, rows = [], []
    for name in args.names or SUITES:
        checkout = args.checkouts.absolute() / name
        fetch(SUITES[name], checkout)
        revision = revision_of(checkout)
        print(f'== {name}, {revision}', flush=True)
        with tempfile.TemporaryDirectory() as folder:
            counts = Path(folder, 'counts.json')
            if run(name, checkout, theirs, counts):
                failed.append(name)
            rows.append(row(name, revision, counts))
    print_table(rows)
    if failed:
        print(f'not as expected: {" ".join(failed)}')
    return bool(failed)


def fetch(suite: Suite, checkout: Path) -> None:
    """Clones a suite at its revision, where there is none."""
    if checkout.exists():
        return
    checkout.mkdir(parents=True)
    url = f'https://github.com/{suite.repository}.git'
    for command in (
        ('init', '--quiet'),
        ('fetch', '--quiet', '--depth=1', url, suite.revision),
        ('checkout', '--quiet', 'FETCH_HEAD'),
    ):
        try:
            subprocess.run(['git', *command], cwd=checkout, check=True)
        except subprocess.CalledProcessError:
            subprocess.run(['rm', '-r', checkout], check=True)
            raise


def revision_of(checkout: Path) -> str:
    """Returns the tag or commit of a checkout, and its date."""

    def git(*command: str) -> str:
        found = subprocess.run(
            ['git', *command], cwd=checkout, check=True, capture_output=True
        )
        return found.stdout.decode().strip()

    tag = git('tag', '--points-at', 'HEAD').partition('\n')[0]
    return git('log', '-1', f'--format={tag or "%h"} (%cs)')


def row(name: str, revision: str, counts: Path) -> str:
    """Returns the row of a suite, from the counts of the plugin."""
    if not counts.exists():
        return f'| {name} | {revision} | did not end | | |'
    found = json.loads(counts.read_text())
    numbers = [
        f'{found[kind]:,}' for kind in ('passed', 'expected', 'skipped')
    ]
    return f'| {name} | {revision} | {" | ".join(numbers)} |'


def print_table(rows: list[str]) -> None:
    """Prints the results as the table of the documentation."""
    import torch

    day = datetime.now(timezone.utc).date()
    python = '.'.join(map(str, sys.version_info[:2]))
    print(f'{day}, torch {torch.__version__}, Python {python}\n')
    print('| suite | revision | passed | expected failures | skipped |')
    print('|---|---|---|---|---|', *rows, sep='\n')


def run(name: str, checkout: Path, options: list[str], counts: Path) -> int:
    """Runs a suite on the package of its checkout."""
    suite = SUITES[name]
    paths = [
        str(checkout / suite.package),
        str(TOP),
        os.environ.get('PYTHONPATH', ''),
    ]
    env = {
        'GSAMPLE_SUITE': name,
        'GSAMPLE_COUNTS': str(counts),
        'PYTHONPATH': os.pathsep.join(filter(None, paths)),
    }
    return subprocess.run(
        [
            *(sys.executable, '-m', 'pytest', '-o', 'addopts='),
            *('-p', 'tests.clients.plugin', '-p', 'no:cacheprovider'),
            *('-q', '-rfEsx', '--tb=short', '--disable-warnings'),
            *suite.options,
            *(options or suite.paths),
        ],
        cwd=checkout / suite.folder,
        env=os.environ | env | suite.env,
    ).returncode


if __name__ == '__main__':
    sys.exit(main())
