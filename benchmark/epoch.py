"""Cost of a training step, by candidate and by part.

A model of several layers over sampled batches, forward and backward, in turns:

- `PyG`: its layers over the whole batch, the usual code;
- `PyG, trimmed`: with PyG's `trim_to_layer`, which is not exact for GCN;
- `PyG on blocks`: its layers on `batch.blocks` (not possible for GCN);
- `fused`: `torch_gsample.vertex.nn` over the whole batch;
- `fused on blocks`: the same on `batch.blocks`;
- `fuse(model)`: the unchanged PyG model after `torch_gsample.fuse`;
- `products`: the matrix products of `fused on blocks` alone.

Batches are sampled in advance, so that all candidates use the same ones, and
their features are gathered: a prefetching loader hides both. `typed` are
Debian's packages with their types: a layer is a `HeteroConv` of `SAGEConv`, or
(RGCN) of linear means of neighbours, one per relation.

`cpu_ms` is the time of all threads; `faults` are page faults of a step. With
`--peak`, each candidate runs in a separate process, and `first_mib` and
`peak_mib` are the peak memory beyond the batches, in the first two steps (in
which `fuse` plans) and in later ones. `--keep` calls `keep_memory()` first.

    python benchmark/epoch.py --graphs packages --models SAGE,GAT --threads 1,2
    python benchmark/epoch.py --graphs large --batches 2 --peak
    python benchmark/epoch.py --graphs typed --models RGCN --hidden 128,256
"""

import argparse
import multiprocessing
import re
import resource
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from epoch_models import GRAPHS, Forward, Model, layer, ways_of
from harness import Report, compare, machine
from torch_geometric.data import HeteroData

import torch_gsample
from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.batch_edge_index import reading_marks


def fused_model(convs: torch.nn.ModuleList) -> Forward:
    """Returns the call of an unchanged model after `fuse`."""
    model = Model(convs)
    torch_gsample.fuse(model)

    def call(_: Any, batch: Any, more: list[Any]) -> Any:
        if isinstance(batch, HeteroData):
            return model(batch.x_dict, batch.edge_index_dict)
        return model(batch.x, batch.edge_index, *more)

    return call


def products(
    batch: Any, sizes: list[tuple[int, int]], num: int
) -> Callable[[int], object]:
    """Returns the matrix products of a step on blocks."""
    rows = [(block.num_src, block.num_dst) for block in batch.blocks]
    parts = [
        (torch.randn(r[0] if num == 1 else r[1], n, requires_grad=i > 0), n, m)
        for i, (r, (n, m)) in enumerate(zip(rows, sizes, strict=True))
    ]
    weights = [
        [torch.randn(n, m, requires_grad=True) for _ in range(num)]
        for _, n, m in parts
    ]

    def call(_: int) -> object:
        for (x, _, _), several in zip(parts, weights, strict=True):
            for weight in several:
                (x @ weight).backward(torch.ones(x.shape[0], weight.shape[1]))
        return None

    return call


Step = Callable[[int], object]


def step_of(
    name: str,
    way: str,
    batches: list[Any],
    sizes: list[tuple[int, int]],
    batch_size: int,
) -> Step:
    """Returns the step of a candidate."""
    is_typed = isinstance(batches[0], HeteroData)
    module, forward = ways_of(name, is_typed)[way]
    types: Any = batches[0].edge_types if is_typed else 0
    if name == 'RGCN' and not is_typed:
        types = 1 + int(max(int(batch.edge_type.max()) for batch in batches))
    torch.manual_seed(0)
    convs = torch.nn.ModuleList(
        layer(module, name, size, types) for size in sizes
    )
    if way == 'fuse(model)':
        forward = fused_model(convs)

    def step(i: int) -> None:
        batch = batches[i % len(batches)]
        more = [batch.edge_type] if name == 'RGCN' and not is_typed else []
        out: Any = forward(convs, batch, more)
        out = out['package'] if is_typed else out
        convs.zero_grad()
        out[:batch_size].square().mean().backward()

    return step


class Usage:
    """A step, and the processor time and page faults of each call."""

    def __init__(self, step: Step):
        self._step, self._seen = step, list[tuple[float, int]]()

    def __call__(self, i: int) -> None:
        first = resource.getrusage(resource.RUSAGE_SELF)
        self._step(i)
        last = resource.getrusage(resource.RUSAGE_SELF)
        seconds = last.ru_utime + last.ru_stime
        seconds -= first.ru_utime + first.ru_stime
        self._seen.append((seconds, last.ru_minflt - first.ru_minflt))

    def medians(self) -> tuple[float, int]:
        """Returns milliseconds of all threads, and page faults."""
        seconds, faults = zip(*self._seen, strict=True)
        return median(seconds) * 1e3, int(median(faults))


def mib_of(field: str) -> float:
    """Returns a field of this process's status."""
    text = Path('/proc/self/status').read_text()
    found = re.search(rf'^{field}:\s+(\d+) kB', text, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def peak_of(
    file: str, threads: int, keep: bool, rest: Any
) -> tuple[float, float]:
    """Returns the peak memory of the first two steps, and of later ones."""
    torch.set_num_threads(threads)
    if keep:
        torch_gsample.keep_memory()
    name, way, sizes, batch_size = rest
    batches = torch.load(file, weights_only=False)
    step = step_of(name, way, batches, sizes, batch_size)
    base, peaks = mib_of('VmRSS'), []
    for steps in (2, 6):
        Path('/proc/self/clear_refs').write_text('5')  # of the peak
        for i in range(steps):
            step(i)
        peaks.append(mib_of('VmHWM') - base)
    return peaks[0], peaks[1]


def peaks_of(
    args: Any, name: str, sizes: Any, threads: int, given: dict[bool, Any]
) -> dict[str, tuple[float, float]]:
    """Returns the memory of each candidate, in a separate process."""
    found = {}
    spawn = multiprocessing.get_context('spawn')
    with tempfile.TemporaryDirectory() as folder:
        for marked, batches in given.items():
            torch.save(batches, f'{folder}/{marked}')
        is_typed = isinstance(given[False][0], HeteroData)
        for way in ways_of(name, is_typed) if args.peak else ():
            file = f'{folder}/{way == "fuse(model)"}'
            rest = name, way, sizes, args.batch_size
            with spawn.Pool(1) as pool:
                found[way] = pool.apply(
                    peak_of, (file, threads, args.keep, rest)
                )
    return found


def measure(report: Report, graph: str, args: argparse.Namespace) -> None:
    """Adds the rows of a graph."""
    data: Any = GRAPHS[graph](args.features)
    loader = NeighborLoader(
        data,
        args.fanouts,
        input_nodes='package' if graph == 'typed' else None,
        batch_size=args.batch_size,
        shuffle=True,
        seed=12,
    )
    given = {False: list(islice(loader, args.batches))}
    loader.set_epoch(0)
    with reading_marks():
        given[True] = list(islice(loader, args.batches))
    for name in args.models:
        for hidden in args.hidden:
            sizes = [(args.features, hidden)]
            sizes += [(hidden, hidden)] * (len(args.fanouts) - 1)
            for threads in args.threads:
                measure_model(
                    report, (graph, name, hidden, threads), args, given, sizes
                )


def measure_model(
    report: Report,
    key: tuple[str, str, int, int],
    args: argparse.Namespace,
    given: dict[bool, list[Any]],
    sizes: list[tuple[int, int]],
) -> None:
    """Adds the rows of a model, and of a number of threads."""
    graph, name, _, threads = key
    torch.set_num_threads(threads)
    steps: dict[str, Any] = {
        way: Usage(
            step_of(
                *(name, way, given[way == 'fuse(model)'], sizes),
                args.batch_size,
            )
        )
        for way in ways_of(name, graph == 'typed')
    }
    if graph != 'typed':
        num = 1 + (name == 'SAGE')
        steps['products'] = Usage(products(given[False][0], sizes, num))
    times = compare(steps, rounds=args.rounds, max_seconds=args.seconds)
    peaks = peaks_of(args, name, sizes, threads, given)
    first = times['PyG'].median
    for way, time in times.items():
        report.add(
            *(*key, way, time.best * 1e3, time.median * 1e3),
            *(first / time.median, *steps[way].medians()),
            *peaks.get(way, ('', '')),
        )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)

    def several(kind: Any) -> Callable[[str], list[Any]]:
        return lambda text: [kind(part) for part in text.split(',')]

    parser.add_argument('--graphs', type=several(str), default=['packages'])
    parser.add_argument(
        '--models', type=several(str), default=['SAGE', 'GCN', 'GAT', 'RGCN']
    )
    parser.add_argument('--hidden', type=several(int), default=[128])
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--fanouts', type=several(int), default=[15, 10, 5])
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--batches', type=int, default=4)
    parser.add_argument('--threads', type=several(int), default=[1, 2])
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--peak', action='store_true')
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(argv)
    if args.keep:
        torch_gsample.keep_memory()
    columns = (
        'graph model hidden threads way best_ms median_ms times_PyG cpu_ms '
        'faults first_mib peak_mib'
    )
    report = Report(f'Steps of training ({machine()})', columns.split())
    for graph in args.graphs:
        measure(report, graph, args)
        if args.markdown:
            args.markdown.write_text(report.markdown())
    report.show()


if __name__ == '__main__':
    main()
