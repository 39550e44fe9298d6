"""The gain of each sampler over ``NeighborLoader`` in its example.

    python benchmark/examples.py --folder build/examples --markdown table.md

Runs the examples that compare samplers, on one thread. Methods of an example
read the same number of feature rows, so their scores compare. Their processor
times compare within an example. Results in ``--folder`` are not measured
again.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from harness import Report, machine

EXAMPLES = Path(__file__).parents[1] / 'examples'
NAMES = (
    'train_ladies',
    'train_graph_saint',
    'train_shadow',
    'train_pass',
    'train_gat',
    'train_node2vec',
    'train_pinsage',
    'train_seal',
    'link_prediction_gcc',
)
COLUMNS = (
    'example',
    'method',
    'metric',
    'test',
    'steps',
    'largest batch, rows',
    'processor s',
)


def results(name: str, folder: Path) -> list[dict]:
    """Returns the results of an example, which runs if they are missing."""
    path = folder / f'{name}.json'
    if not path.exists():
        part = path.with_suffix('.part')
        part.unlink(missing_ok=True)
        command = [sys.executable, EXAMPLES / f'{name}.py', '--json', part]
        one = os.environ | {'OMP_NUM_THREADS': '1'}
        subprocess.run(command, check=True, env=one)
        part.rename(path)
    return list(map(json.loads, path.read_text().splitlines()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--folder', type=Path, default=Path('build/examples'))
    parser.add_argument('--names', nargs='+', choices=NAMES, default=NAMES)
    parser.add_argument('--markdown', type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    report = Report(f'Examples: {machine()}', list(COLUMNS))
    for name in args.names:
        for r in results(name, args.folder):
            cost = '-', '-', '-'
            if r['steps']:
                rows = f'{r["largest_batch"]:,}'
                cost = str(r['steps']), rows, f'{r["seconds"]:.1f}'
            score = f'{r["score"]:.3f}'
            report.add(name, r['name'], r['metric'], score, *cost)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
