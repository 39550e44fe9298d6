"""Rows on graph placement, and on launches on a GPU.

Without a GPU they run on the CPU, for tests: memory is not pinned, nothing is
cached, and calls are repeated instead of replayed in a CUDA graph.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from gpu_bounds import SECTOR, Bench, Rates, Row
from torch import Tensor

from torch_gsample import CSC, Graph, ops
from torch_gsample.list_cache import ListCache
from torch_gsample.rng import make_key

FANOUTS = [15, 10, 5]
FANOUTS_OF_TWO = [8, 5, 3]


def uva(bench: Bench) -> Iterator[Row]:
    """[15, 10, 5] of a graph in pinned memory, without and with a cache.

    The bound is the time to transfer sectors from the host, at the rate of
    copies from it.
    """
    batches = bench.batches(1024)
    indices = Rates.pin(bench.host.indices)
    graph = one_relation(bench.graph[0], indices)

    def call(i: int) -> Any:
        seeds = batches[i % len(batches)]
        return ops.sample_neighbors(graph, seeds, FANOUTS, make_key(0, 0, i))

    for name in ('no cache', 'lists of a quarter of the edges cached'):
        cache = None if name == 'no cache' else cached(bench, indices)
        ms, out = bench.milliseconds(call)
        hits, both = (0, 1) if cache is None else cache.reads()
        host = SECTOR * out.row.numel() * (1 - hits / max(both, 1))
        yield Row(
            f'graph in pinned memory, {name}',
            ms,
            1e3 * host / bench.rates.host,
            note=f'{host / ms / 1e6:.1f} GB/s of sectors from the host, '
            f'{100 * hits / max(both, 1):.0f} % of edges cached',
        )


def several_batches(bench: Bench) -> Iterator[Row]:
    """[25, 10] of 512 seeds over an epoch, several batches per launch."""
    graph = one_relation(*bench.graph)
    batches = bench.batches(512)
    keys = torch.cat([make_key(0, 0, i) for i in range(len(batches))])
    single, wants = bench.milliseconds(
        lambda _: [
            ops.sample_neighbors(graph, seeds, [25, 10], keys[i : i + 1])
            for i, seeds in enumerate(batches)
        ],
        rounds=3,
    )
    for size in (4, 8, 16, 32, 64):

        def epoch(_: int, size: int = size) -> list[ops.Sample]:
            return [
                sample
                for i in range(0, len(batches), size)
                for sample in ops.sample_batches(
                    graph, batches[i : i + size], [25, 10], keys[i : i + size]
                )
            ]

        ms, outs = bench.milliseconds(epoch, rounds=3)
        same = all(
            torch.equal(out.row, want.row) and torch.equal(out.node, want.node)
            for out, want in zip(outs, wants, strict=True)
        )
        yield Row(
            f'[25, 10] of 512 seeds, an epoch, {size} batches a launch',
            ms,
            goal_ms=15,
            note=f'{single / ms:.2f} times as fast as one a launch, '
            f'{"the" if same else "NOT THE"} same samples',
        )


def one_relation(
    indptr: Tensor, indices: Tensor, cum_weight: Tensor | None = None
) -> Graph:
    """A homogeneous graph, wherever its tensors are."""
    size = indptr.numel() - 1
    csc = CSC(indptr, indices, size, None, cum_weight, checked=True)
    return Graph.from_csc(csc)


def two_relations(one: Graph) -> Graph:
    """A graph with two relations, both equal to a graph."""
    relations = tuple(('node', r, 'node') for r in ('a', 'b'))
    return Graph(('node',), relations, one.num_nodes, one.columns * 2)


def cached(bench: Bench, indices: Tensor) -> ListCache | None:
    """A cache of the hottest adjacency lists, if there is a GPU."""
    if not torch.cuda.is_available():
        return None
    host = bench.host
    met = torch.bincount(host.indices, minlength=host.num_cols)
    room = indices.numel() * indices.element_size() // 4 + 8 * met.numel()
    return ListCache(host.indptr, indices, met, room, bench.device)


def graphs(bench: Bench) -> Iterator[Row]:
    """Padded samples of 1,024 seeds, launched and replayed.

    Of one relation, and of two of the same edges.
    """
    seeds = bench.batches(1024)[0]
    one = one_relation(*bench.graph)
    two = two_relations(one)
    key = make_key(0).to(bench.device)

    def sample() -> Any:
        most = most_edges(seeds.numel(), FANOUTS)
        return ops.sample_neighbors(one, seeds, FANOUTS, key, max_edges=[most])

    def sample_two() -> Any:
        most = most_edges(seeds.numel(), FANOUTS_OF_TWO, relations=2)
        return ops.sample_neighbors(
            two, [seeds], [FANOUTS_OF_TWO] * 2, key, max_edges=[most] * 2
        )

    yield from replays(bench, f'padded {FANOUTS}', key, sample)
    name = f'padded, two relations of {FANOUTS_OF_TWO}'
    yield from replays(bench, name, key, sample_two)


def most_edges(seeds: int, fanouts: list[int], relations: int = 1) -> int:
    """The most edges of each relation of one node type."""
    most, layer = 0, seeds
    for fanout in fanouts:
        most += layer * fanout
        layer *= fanout * relations
    return most


def replays(
    bench: Bench, name: str, key: Tensor, sample: Callable[[], Any]
) -> Iterator[Row]:
    """A padded sample with a key per round, launched and replayed."""

    def of_round(call: Callable[[], object]) -> Callable[[int], object]:
        def run(i: int) -> object:
            key[0, 2] = i
            return call()

        return run

    ms, _ = bench.milliseconds(of_round(sample))
    yield Row(f'{name}, launched', ms)
    replay, out = captured(sample)
    ms, _ = bench.milliseconds(of_round(replay))
    edges = int(out.check().num_edges.sum())
    yield Row(f'{name}, replayed', ms, note=f'{edges:,} edges')


def captured(call: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
    """Returns a replay of a call, and the result each replay overwrites."""
    out = call()
    if not torch.cuda.is_available():
        return call, out
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    return graph.replay, out


def launches(bench: Bench) -> Iterator[Row]:
    """Layers of [15, 10, 5] in one call, and in one call per hop.

    The kernels are the same: between calls the host waits for sizes.
    """
    batches, keys = bench.batches(1024), [make_key(0)] * len(FANOUTS)
    graph = one_relation(*bench.graph)

    def at_once(i: int) -> Any:
        seeds = batches[i % len(batches)]
        return ops.sample_layers(graph, seeds, FANOUTS, keys)

    def hop_by_hop(i: int) -> Any:
        columns, out = batches[i % len(batches)], []
        for hop, fanout in enumerate(FANOUTS):
            sample = ops.sample_layers(
                graph,
                columns,
                [fanout],
                keys[:1],
                call_id=[hop],
                return_frontier=True,
            )
            (columns,) = sample.node
            out += sample.row
        return out

    one, out = bench.milliseconds(at_once)
    many, rows = bench.milliseconds(hop_by_hop)
    same = all(map(torch.equal, out.row, rows))
    edges = sum(row.numel() for row in out.row)
    bound = layers_bound(bench, out.indptr, edges)
    yield Row('layers of [15, 10, 5], one call', one, bound)
    yield Row(
        'the same, a call a hop',
        many,
        bound,
        note=f'{many / one:.2f} times as long, '
        f'{"the" if same else "NOT THE"} same sample',
    )


def typed_layers(bench: Bench) -> Iterator[Row]:
    """Layers of a graph with two equal relations, in one call."""
    batches, keys = bench.batches(1024), [make_key(0)] * len(FANOUTS)
    graph = two_relations(one_relation(*bench.graph))
    for title, disjoint in (('', False), (', in trees', True)):

        def call(i: int, disjoint: bool = disjoint) -> Any:
            return ops.sample_layers(
                graph,
                [batches[i % len(batches)]],
                [[8, 5, 3]] * 2,
                keys,
                sampling=ops.Sampling(disjoint=disjoint),
            )

        ms, out = bench.milliseconds(call)
        edges = sum(row.numel() for hop in out.row for row in hop)
        yield Row(
            f'layers of [8, 5, 3] of two relations{title}',
            ms,
            layers_bound(bench, [p for hop in out.indptr for p in hop], edges),
            note=f'{edges:,} edges',
        )


def layers_bound(bench: Bench, indptr: list[Tensor], edges: int) -> float:
    """Milliseconds of one offset per column, and 32 bytes written per edge.

    Each edge reads its neighbour and the table's entry.
    """
    reads = 2 * edges + sum(ptr.numel() for ptr in indptr)
    return 1e3 * (reads / bench.rates.reads + 32 * edges / bench.rates.copy)
