"""Runs other projects' tests: ``python -m tests.clients [NAME ...]``.

``--checkouts FOLDER`` has a checkout a suite, under the suite's name; what is
not there is cloned to it. Arguments after ``--`` are pytest's.
"""

import argparse
import os
import subprocess
import sys
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
    failed = []
    for name in args.names or SUITES:
        checkout = args.checkouts.absolute() / name
        fetch(SUITES[name], checkout)
        print(f'== {name}, {SUITES[name].revision}', flush=True)
        if run(name, checkout, theirs):
            failed.append(name)
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


def run(name: str, checkout: Path, options: list[str]) -> int:
    """Runs a suite on the package of its checkout."""
    suite = SUITES[name]
    paths = [
        str(checkout / suite.package),
        str(TOP),
        os.environ.get('PYTHONPATH', ''),
    ]
    env = {
        'GSAMPLE_SUITE': name,
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
