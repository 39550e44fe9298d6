"""The four measured tasks, and the libraries that can do each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

import torch_gsample
from torch_gsample import SparseSample, algorithms, ops
from torch_gsample.bench import peers
from torch_gsample.bench.timing import Timing, compare
from torch_gsample.csc import CSC
from torch_gsample.datasets import power_law
from torch_gsample.graph import Graph
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import make_key, program_scope

Call = Callable[[int], object]

OURS = 'torch_gsample'
_FANOUTS = [15, 10, 5]
_LAYERS = [512, 512, 512]
_FEATURES = 64
_WALK = 40
_ROUNDS = 50
_TRIALS = 12  # a compiled program tries layouts in its first calls


@dataclass(frozen=True)
class Row:
    """A task, with a number of threads, by each candidate.

    Args:
        task (str): Its name.
        threads (int): How many torch was told to use.
        timings (Dict[str, Timing]): Ours first.
    """

    task: str
    threads: int
    timings: dict[str, Timing]

    @property
    def ratios(self) -> dict[str, float]:
        """How many times the seconds of ours each peer takes."""
        ours = self.timings[OURS].median
        return {
            name: timing.median / ours
            for name, timing in self.timings.items()
            if name != OURS
        }


@dataclass(frozen=True)
class _Size:
    nodes: int
    edges: int
    max_degree: int
    seeds: int
    batches: int  # of a pass of a loader
    walks: int


_FULL = _Size(1_000_000, 16_000_000, 10_000, 1024, 16, 10_000)
_QUICK = _Size(20_000, 200_000, 1_000, 256, 8, 2_000)


def run_tasks(
    threads: list[int], max_seconds: float, quick: bool = False
) -> Iterator[Row]:
    """Measures each task with each number of threads.

    Args:
        threads (List[int]): The numbers of threads.
        max_seconds (float): Time limit of a row, without its preparation.
        quick (bool, optional): Whether to take small graphs.
    """
    size = _QUICK if quick else _FULL
    before = torch.get_num_threads()
    graph = power_law(size.nodes, size.edges, size.max_degree)
    try:
        for name, prepare in TASKS.items():
            candidates = prepare(graph, size)
            for count in threads:
                torch.set_num_threads(count)
                timings = compare(candidates, _ROUNDS, max_seconds=max_seconds)
                yield Row(name, count, timings)
            del candidates  # the peers' copies of the graph
    finally:
        torch.set_num_threads(before)


def _data(graph: CSC) -> Data:
    edge_index = torch.stack([graph.indices.long(), graph.col().long()])
    return Data(edge_index=edge_index, num_nodes=graph.num_cols)


def _permutation(graph: CSC) -> torch.Tensor:
    generator = torch.Generator().manual_seed(12)
    return torch.randperm(graph.num_cols, generator=generator)


def _neighbors(graph: CSC, size: _Size) -> dict[str, Call]:
    batches = list(_permutation(graph).split(size.seeds)[: size.batches])
    known = Graph.from_csc(graph)

    def ours(i: int) -> object:
        seeds = batches[i % len(batches)]
        return ops.sample_neighbors(known, seeds, _FANOUTS, make_key(0, 0, i))

    others = peers.neighbor_samplers(graph, _data(graph), batches, _FANOUTS)
    return {OURS: ours, **others}


def _loader(graph: CSC, size: _Size) -> dict[str, Call]:
    data = _data(graph)
    generator = torch.Generator().manual_seed(12)
    data.x = torch.rand(size.nodes, _FEATURES, generator=generator)
    options: dict[str, Any] = {
        'input_nodes': _permutation(graph)[: size.batches * size.seeds],
        'batch_size': size.seeds,
    }
    loader = NeighborLoader(data, _FANOUTS, seed=0, **options)
    return {
        OURS: lambda _: sum(1 for _ in loader),
        **peers.loaders(data, _FANOUTS, **options),
    }


def _walks(graph: CSC, size: _Size) -> dict[str, Call]:
    seeds = _permutation(graph)[: size.walks]

    def ours(i: int) -> object:
        return ops.random_walk(
            graph.indptr, graph.indices, seeds, _WALK, key=make_key(0, 0, i)
        )

    return {OURS: ours, **peers.walkers(graph, seeds, _WALK)}


def _compiled(graph: CSC, size: _Size) -> dict[str, Call]:
    A = SparseSample.from_data(graph)
    seeds = _permutation(graph)[: size.seeds]

    def program(A: SparseSample, seeds: torch.Tensor) -> Any:
        return algorithms.ladies(A, seeds, _LAYERS)

    def keyed(function: Callable[..., Any]) -> Call:
        def run(i: int) -> object:
            with program_scope(make_key(0, 0, i)), torch.no_grad():
                return function(A, seeds)

        return run

    compiled = keyed(torch_gsample.compile(program))
    for i in range(_TRIALS):
        compiled(i)
    return {OURS: compiled, 'uncompiled': keyed(program)}


#: The tasks by name: what a call of each candidate does.
TASKS: dict[str, Callable[[CSC, _Size], dict[str, Call]]] = {
    'neighbour sampling': _neighbors,
    'epoch of a loader': _loader,
    'random walks': _walks,
    'LADIES, compiled': _compiled,
}
