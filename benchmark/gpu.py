"""Times of the operators on a GPU, compared with bounds of its memory.

    python benchmark/gpu.py --graph large --page docs/benchmarks.md

Times are medians by CUDA events, of calls whose results are on the GPU;
de-duplication and relabelling are included. The bound of a row is the time of
its reads and writes alone, at rates measured in the same run. Writes
`cuda-<gpu>-<date>.json` and the table of the page, and with `--out` each row
when it is done to `rows.jsonl`. A failed row states the reason, and the others
continue.
"""

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gpu_bounds import Rates, Row, cuda_seconds, measure_rates
from gpu_kernels import attention, edge_kernels
from gpu_launches import (
    graphs,
    launches,
    one_relation,
    several_batches,
    typed_layers,
    uva,
)
from gpu_samples import fires, frontiers, negatives, nodes
from gpu_times import times_apart
from gpu_training import training
from harness import machine
from neighbor import load_graph
from torch import Tensor

from torch_gsample import CSC, SparseSample, algorithms, ops
from torch_gsample.compiler.backend import backend
from torch_gsample.rng import make_key, program_scope

RESULTS = Path(__file__).with_name('results')
MARKS = '<!-- cuda: begin -->', '<!-- cuda: end -->'
SEEDS = 196_615  # of an epoch, as of ogbn-products
P, Q = 2.0, 0.5  # of node2vec


class Bench:
    """A graph on a device, and the timing of its operators.

    Args:
        graph (CSC): The graph, on the CPU.
        device (torch.device): Where operators run.
        rates (Rates): The memory rates of the device.
        seconds (Callable): Returns the median time of a function of the
            round's number, and its last result.
        num_seeds (int): Seeds of an epoch.
    """

    def __init__(
        self,
        graph: CSC,
        device: torch.device,
        rates: Rates,
        seconds: Callable[..., tuple[float, object]] = cuda_seconds,
        num_seeds: int = SEEDS,
    ):
        self.host, self.device = graph, device
        self.rates, self.seconds = rates, seconds
        self.graph = graph.indptr.to(device), graph.indices.to(device)
        generator = torch.Generator().manual_seed(12)
        self.epoch = torch.randperm(graph.num_cols, generator=generator)
        self.epoch = self.epoch[:num_seeds]

    def batches(self, size: int) -> list[Tensor]:
        """The seeds of each batch of an epoch, on the device."""
        return list(self.epoch.to(self.device).split(size))

    def weights(self) -> Tensor:
        """Random weights, prepared on the device."""
        generator = torch.Generator().manual_seed(3)
        weight = torch.rand(self.host.num_edges, generator=generator)
        return ops.cumulate_weights(self.graph[0], weight.to(self.device))

    # Rows.

    def neighbor_batches(self) -> Iterator[Row]:
        """[15, 10, 5] of 1,024 seeds, uniform and weighted, and an epoch."""
        batches = self.batches(1024)
        goal = 0.25
        for name, weight in (('uniform', None), ('weighted', self.weights())):

            def call(i: int, weight: Tensor | None = weight) -> object:
                return self.sample(batches[i % len(batches)], i, weight)

            ms, out = self.milliseconds(call)
            same = self.is_same(batches[0], weight)
            yield Row(
                f'[15, 10, 5] of 1,024 seeds, {name}',
                ms,
                self.neighbor_bound(out),
                goal,
                f'{"the" if same else "NOT THE"} sample of the CPU',
            )
            goal = 3 * ms
        total, _ = self.milliseconds(
            lambda _: [call(i, None) for i in range(len(batches))], rounds=3
        )
        yield Row(f'the same, an epoch of {len(self.epoch):,} seeds', total)

    def neighbor_epoch(self) -> Iterator[Row]:
        """[25, 10] of 512 seeds over an epoch, batch after batch."""
        batches = self.batches(512)

        def epoch(_: int) -> object:
            return [
                self.sample(seeds, i, None, (25, 10))
                for i, seeds in enumerate(batches)
            ]

        ms, outs = self.milliseconds(epoch, rounds=3)
        bound = sum(map(self.neighbor_bound, outs))
        yield Row('[25, 10] of 512 seeds, an epoch', ms, bound, 15)

    def walks(self) -> Iterator[Row]:
        """DeepWalk and node2vec of length 80."""
        seeds, goal = self.epoch.to(self.device), 2.5
        steps = 80 * len(seeds)
        # An offset and a neighbour per step; node2vec sometimes tries again.
        bound = 1e3 * 2 * steps / self.rates.reads
        for name, walk in (
            ('DeepWalk', ops.random_walk),
            ('node2vec', lambda *a, key: ops.node2vec_walk(*a, P, Q, key=key)),
        ):

            def call(i: int, walk: Callable[..., object] = walk) -> object:
                return walk(*self.graph, seeds, 80, key=make_key(0, 0, i))

            ms, _ = self.milliseconds(call, rounds=9)
            rate = f'{steps / ms / 1e6:.2f} G steps/s'
            yield Row(f'{name}, {len(seeds):,} walks', ms, bound, goal, rate)
            goal = 2 * ms

    def layers(self) -> Iterator[Row]:
        """Layer-wise programs of 4,000 nodes per layer, compiled and eager."""
        matrix = SparseSample.from_csc(*self.graph)
        batches = self.batches(1024)
        for name in ('ladies', 'fastgcn'):
            program = getattr(algorithms, name)
            for kind, run in (
                ('eager', program),
                ('compiled', torch.compile(program, backend=backend)),
            ):

                def call(i: int, run: Callable[..., object] = run) -> object:
                    with program_scope(make_key(0, 0, i)):
                        seeds = batches[i % len(batches)]
                        return run(matrix, seeds, [4000] * 3)

                title = f'{name} 4000 x 3, {kind}'
                try:
                    ms, out = self.milliseconds(call, rounds=9)
                    yield Row(title, ms, self.layers_bound(out))
                except Exception as error:
                    yield Row(title, note=reason(error))

    def features(self) -> Iterator[Row]:
        """Rows of 100 floats, from the GPU's memory and the host's."""
        size, width = 1_000_000, 100
        size = min(size, self.host.num_cols)
        index = torch.randint(size, (size // 4,), device=self.device)
        table = torch.rand(size, width)
        moved = 4 * width * index.numel()
        for name, source, rate in (
            ('device', table.to(self.device), self.rates.copy / 2),
            ('pinned host', self.rates.pin(table), self.rates.host),
        ):

            def call(_: int, source: Tensor = source) -> object:
                return ops.gather_rows(source, index)

            ms, _ = self.milliseconds(call)
            note = f'{moved / ms / 1e6:.0f} GB/s'
            bound = 1e3 * moved / rate
            yield Row(f'features of {name} memory', ms, bound, note=note)

    # What they share.

    def milliseconds(
        self, call: Callable[[int], object], rounds: int = 25
    ) -> tuple[float, object]:
        seconds, out = self.seconds(call, rounds)
        return 1e3 * seconds, out

    def sample(
        self,
        seeds: Tensor,
        batch: int,
        weight: Tensor | None = None,
        fanouts: tuple[int, ...] = (15, 10, 5),
    ) -> ops.Sample:
        graph = one_relation(*self.graph, weight)
        key = make_key(0, 0, batch)
        return ops.sample_neighbors(graph, seeds, list(fanouts), key)

    def neighbor_bound(self, out: ops.Sample) -> float:
        """Milliseconds of the sectors that a sample reads or writes."""
        edges, nodes = out.row.numel(), out.node.numel()
        # One offset per node; per edge its neighbour and the table's entry.
        reads = nodes + 2 * edges
        written = 8 * (3 * edges + nodes)
        return 1e3 * (reads / self.rates.reads + written / self.rates.copy)

    def layers_bound(self, out: Any) -> float:
        """Milliseconds to read the edges of the layers' columns.

        A layer reads all of them twice, and for each edge an entry of a table
        of rows: to sum up probabilities, and to select the drawn edges.
        """
        indptr = self.graph[0].to(torch.int64)
        reads = copied = 0.0
        for S in out:
            columns = S.col_ids
            edges = int((indptr[columns + 1] - indptr[columns]).sum())
            reads += columns.numel() + 2 * edges
            copied += 2 * edges * (self.graph[1].element_size() + 4)
        return 1e3 * (reads / self.rates.reads + copied / self.rates.copy)

    def is_same(self, seeds: Tensor, weight: Tensor | None) -> bool:
        """Whether a sample equals the CPU's."""
        host = self.host.indptr, self.host.indices
        cum_weight = None if weight is None else weight.cpu()
        graph, key = one_relation(*host, cum_weight), make_key(0, 0, 0)
        want = ops.sample_neighbors(graph, seeds.cpu(), [15, 10, 5], key)
        out = self.sample(seeds, 0, weight)
        return all(
            torch.equal(getattr(out, name).cpu(), getattr(want, name))
            for name in ('row', 'col', 'node', 'edge')
        )


def reason(error: Exception) -> str:
    """The text of a failed row."""
    return f'failed: {type(error).__name__}: {str(error).splitlines()[0]}'


def measure(
    bench: Bench,
    seconds: float = 1200,
    write: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """Returns all rows that the time allows; `write` gets each at once."""
    rows: list[Row] = []
    end = time.monotonic() + seconds

    def add(row: Row) -> None:
        rows.append(row)
        write(row)
        print(' | '.join(row.cells()), flush=True)

    for part in (
        bench.neighbor_batches,
        bench.neighbor_epoch,
        partial(times_apart, bench),
        partial(several_batches, bench),
        partial(training, bench),
        bench.walks,
        bench.layers,
        bench.features,
        *(
            partial(part, bench)
            for part in (negatives, frontiers, fires, nodes)
        ),
        partial(edge_kernels, bench),
        partial(attention, bench),
        partial(uva, bench),
        partial(graphs, bench),
        partial(typed_layers, bench),
        partial(launches, bench),
    ):
        name = getattr(part, 'func', part).__name__
        if time.monotonic() > end:
            add(Row(name, note='left out: no time was left'))
            continue
        try:
            for row in part():
                add(row)
        except Exception as error:
            add(Row(name, note=reason(error)))
    return rows


def write_row(folder: Path | None, row: Row) -> None:
    """Adds a row to `rows.jsonl` of a folder, if any."""
    if folder is not None:
        with (folder / 'rows.jsonl').open('a') as file:
            file.write(json.dumps(asdict(row)) + '\n')


def write_json(
    folder: Path, gpu: str, graph: str, rates: Rates, rows: list[Row]
) -> Path:
    """Writes a result file, and returns its path."""
    slug = re.sub(r'[^a-z0-9]+', '-', gpu.lower()).strip('-')
    path = folder / f'cuda-{slug}-{date.today()}.json'
    result = {
        'gpu': gpu,
        'graph': graph,
        'machine': machine(),
        'rates': asdict(rates),
        'rows': [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(result, indent=1) + '\n')
    return path


def table(gpu: str, rates: Rates, rows: list[Row]) -> str:
    """Returns the text of a run for the page."""
    names = 'measurement', 'ms', 'bound ms', 'goal ms', 'bound / time', ''
    lines = [f'{gpu}, {machine()}: {rates}.', '']
    lines.append('| ' + ' | '.join(names) + ' |')
    lines.append('|' + '---|' * len(names))
    lines += ['| ' + ' | '.join(row.cells()) + ' |' for row in rows]
    return '\n'.join(lines)


def write_page(page: Path, text: str) -> None:
    """Inserts a table between the marks of a page."""
    before, rest = page.read_text().split(MARKS[0])
    _, after = rest.split(MARKS[1])
    page.write_text(f'{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graph', default='large')
    parser.add_argument('--minutes', type=float, default=15)
    parser.add_argument('--page', type=Path, help='write the table there')
    parser.add_argument('--out', type=Path, help='write results there')
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, 'benchmark/gpu.py: there is no GPU\n')
    device = torch.device('cuda', torch.cuda.current_device())
    gpu = torch.cuda.get_device_name(device)
    rates = measure_rates(device)
    print(rates)
    bench = Bench(load_graph(args.graph), device, rates)
    folder = args.out or RESULTS
    rows = measure(bench, 60 * args.minutes, partial(write_row, args.out))
    print(write_json(folder, gpu, args.graph, rates, rows))
    if args.page:
        write_page(args.page, table(gpu, rates, rows))


if __name__ == '__main__':
    main()
