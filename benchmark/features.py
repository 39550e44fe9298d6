"""Gather time of quantized features, and the accuracy that remains.

python benchmark/features.py --accuracy --seeds 0,1,2
"""

import argparse
import contextlib
import importlib.util
import io
import re
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from unittest import mock

import torch
from harness import Report, compare, machine
from torch import Tensor

from torch_gsample import quantize_rows, use_huge_pages
from torch_gsample.loader import NeighborLoader
from torch_gsample.ops import gather_rows

STORAGES = ('float32', 'bfloat16', 'float16', 'int8')
EXAMPLE = Path(__file__).parents[1] / 'examples/train_debian.py'
Stored = dict[str, Tensor]


def store(x: Tensor, storage: str) -> Stored:
    """Returns features, and their scales if any."""
    if storage == 'int8':
        return dict(zip(('x', 'x_scale'), quantize_rows(x), strict=True))
    return {'x': x.to(getattr(torch, storage))}


def ours(stored: Stored, threads: int, index: Tensor) -> Tensor:
    return gather_rows(
        stored['x'],
        index,
        stored.get('x_scale'),
        widen=True,
        num_threads=threads,
    )


def of_torch(stored: Stored, threads: int, index: Tensor) -> Tensor:
    torch.set_num_threads(threads)
    rows = stored['x'][index].float()
    if 'x_scale' in stored:
        rows *= stored['x_scale'][index, None]
    return rows


def candidates(
    storages: dict[str, Stored], threads: int, indices: list[Tensor]
) -> dict[str, Callable[[int], object]]:
    """Returns what takes turns: each storage, by us and by torch."""
    result: dict[str, Callable[[int], object]] = {}
    for name, stored in storages.items():
        for kind, gather in (('ours', ours), ('torch', of_torch)):
            result[f'{kind} {name}'] = lambda i, g=gather, s=stored: g(
                s, threads, indices[i % len(indices)]
            )
    return result


def mapped(storages: dict[str, Stored], folder: str) -> dict[str, Stored]:
    """Returns features in mapped files, which are then in the page cache."""
    result = {}
    for name, stored in storages.items():
        torch.save(stored, f'{folder}/{name}.pt')
        result[name] = torch.load(
            f'{folder}/{name}.pt', mmap=True, weights_only=True
        )
    return result


def on_huge_pages(storages: dict[str, Stored]) -> dict[str, Stored]:
    """Returns copies on pages of 2 MiB, which int8 rows have anyway."""
    return {
        name: {k: use_huge_pages(v.clone()) for k, v in stored.items()}
        for name, stored in storages.items()
    }


def time_gathers(report: Report, args: argparse.Namespace) -> None:
    x = torch.randn(args.nodes, args.features)
    in_memory = {name: store(x, name) for name in STORAGES}
    indices = [torch.randint(args.nodes, (args.rows,)) for _ in range(7)]
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        places = {
            'memory': in_memory,
            'huge pages': on_huge_pages(in_memory),
            'file': mapped(in_memory, folder),
        }
        for place, storages in places.items():
            for threads in map(int, args.threads.split(',')):
                calls = candidates(storages, threads, indices)
                # A neighbour takes time, but no CPU time.
                timings = compare(calls, args.rounds, clock=time.process_time)
                base = timings['ours float32'].median
                for name, stored in storages.items():
                    mine = timings[f'ours {name}'].median
                    peer = timings[f'torch {name}'].median
                    row = sum(t[:1].nbytes for t in stored.values())
                    report.add(
                        place,
                        threads,
                        name,
                        row,
                        mine * 1e3,
                        f'{base / mine:.1f}x',
                        f'{peer / mine:.1f}x',
                    )


def demo() -> ModuleType:
    """Returns the example as a module."""
    spec = importlib.util.spec_from_file_location('train_debian', EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accuracy(storage: str, seed: int) -> float:
    """Returns the test accuracy of the example with this storage."""
    module = demo()
    load_graph = module.load_graph

    def load_stored(*args: str) -> object:
        data, num_classes = load_graph(*args)
        data.update(store(data.x, storage))
        return data, num_classes

    widening = partial(NeighborLoader, widen_features=True)
    with (
        mock.patch.object(module, 'load_graph', load_stored),
        mock.patch.object(module, 'NeighborLoader', widening),
        mock.patch.object(module, 'sampling_rate', return_value=0.0),
        mock.patch('sys.argv', [str(EXAMPLE), '--seed', str(seed)]),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        module.main()
    found = re.search(r'Test accuracy ([\d.]+)', printed.getvalue())
    assert found is not None
    return float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--nodes', type=int, default=4_000_000)
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--rows', type=int, default=300_000)
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--rounds', type=int, default=16, help='0: none')
    parser.add_argument('--folder', help='of the files that are mapped')
    parser.add_argument('--accuracy', action='store_true', help='minutes')
    parser.add_argument('--seeds', default='0', help='of the example')
    parser.add_argument('--markdown', type=Path, help='write the tables there')
    args = parser.parse_args()
    reports = [
        Report(
            f'{args.rows:,} random rows of {args.nodes:,} with '
            f'{args.features} features, as float32: {machine()}',
            [
                'place',
                'threads',
                'storage',
                'bytes a row',
                'CPU ms',
                'gain over float32',
                'gain over torch',
            ],
        )
    ]
    if args.rounds:
        time_gathers(reports[0], args)
    if args.accuracy:
        seeds = list(map(int, args.seeds.split(',')))
        title = 'Test accuracy of examples/train_debian.py'
        columns = ['storage', *(f'seed {seed}' for seed in seeds)]
        reports.append(Report(title, columns))
        for name in STORAGES:
            found = [f'{accuracy(name, seed):.4f}' for seed in seeds]
            reports[1].add(name, *found)
    for report in reports:
        report.show()
    if args.markdown:
        args.markdown.write_text('\n'.join(r.markdown() for r in reports))


if __name__ == '__main__':
    main()
