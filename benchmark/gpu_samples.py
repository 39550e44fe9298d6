"""Rows on operators that draw nodes, and edges of columns, on a GPU."""

from collections.abc import Iterator
from typing import Any

import torch
from gpu_bounds import Bench, Row
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import make_key

WORD = 8  # bytes of an int64
CHOSEN, MANY = 4_000, 100_000  # nodes of a layer, and of a large one


def negatives(bench: Bench) -> Iterator[Row]:
    """A negative for each of a million targets.

    The bound is their memory traffic, with weights plus the last read of a
    search.
    """
    ids = torch.arange(1 << 20, device=bench.device)
    size = bench.host.num_cols
    for name, weight in (('uniform', None), ('weighted', weights(bench))):

        def call(i: int, weight: Tensor | None = weight) -> object:
            key = make_key(0, 0, i)
            return ops.negative_sample(ids, size, key=key, cum_weight=weight)

        ms, _ = bench.milliseconds(call)
        bound = 2 * WORD * ids.numel() / bench.rates.copy
        if weight is not None:
            bound += ids.numel() / bench.rates.reads
        yield Row(f'{ids.numel():,} negatives, {name}', ms, 1e3 * bound)


def frontiers(bench: Bench) -> Iterator[Row]:
    """15 edges of each column of an epoch, from lengths and positions only."""
    columns = bench.epoch.to(bench.device)
    graph = bench.graph[0].to(torch.int64)
    start = graph[columns]
    length = graph[columns + 1] - start
    indptr = torch.cat([length.new_zeros(1), length.cumsum(0)])

    def call(i: int) -> Any:
        key = make_key(0, 0, i)
        of_columns = {'id': columns, 'start': start}
        return ops.sample_columns(indptr, 15, key=key, **of_columns)

    ms, (_, edge) = bench.milliseconds(call)
    # Reads lengths, positions and ids; writes lengths and positions.
    words = 4 * columns.numel() + edge.numel()
    yield Row(
        f'15 edges of {columns.numel():,} columns by their lengths',
        ms,
        1e3 * WORD * words / bench.rates.copy,
    )


def fires(bench: Bench) -> Iterator[Row]:
    """A forest fire of 1,024 seeds."""
    [seeds, *_] = bench.batches(1024)

    def call(i: int) -> Any:
        return ops.forest_fire(*bench.graph, seeds, 0.3, key=make_key(0, 0, i))

    ms, burnt = bench.milliseconds(call)
    indptr, indices = bench.graph
    edges = int((indptr[burnt + 1] - indptr[burnt]).sum())
    # The offset of a node; per edge its neighbour, and the neighbour's bit.
    reads = (burnt.numel() + edges) / bench.rates.reads
    copied = edges * indices.element_size() / bench.rates.copy
    yield Row(
        'a forest fire of 1,024 seeds',
        ms,
        1e3 * (reads + copied),
        note=f'{burnt.numel():,} nodes burnt, of {edges:,} edges',
    )


def nodes(bench: Bench) -> Iterator[Row]:
    """Nodes of a layer, without replacement.

    The bound is one read per draw. It is loose for weighted draws: each
    depends on the earlier ones, and takes a search of dependent reads.
    """
    size, weight = bench.host.num_cols, weights(bench)
    for name, k, cum_weight in (
        ('uniform', CHOSEN, None),
        ('weighted', CHOSEN, weight),
        ('weighted', MANY, weight),
    ):
        k = min(k, size // 2)

        def call(
            i: int, k: int = k, cum_weight: Tensor | None = cum_weight
        ) -> object:
            return ops.sample_nodes(
                size,
                k,
                key=make_key(0, 0, i),
                cum_weight=cum_weight,
                device=bench.device,
            )

        ms, _ = bench.milliseconds(call)
        bound = k / bench.rates.reads + WORD * k / bench.rates.copy
        rate = f'{ms * 1e3 / k:.2f} us a node'
        yield Row(f'{k:,} of {size:,} nodes, {name}', ms, 1e3 * bound, 0, rate)


def weights(bench: Bench) -> Tensor:
    """Random weights of all nodes, prepared on the device."""
    generator = torch.Generator().manual_seed(4)
    weight = torch.rand(bench.host.num_cols, generator=generator)
    ptr = torch.tensor([0, weight.numel()], device=bench.device)
    return ops.cumulate_weights(ptr, weight.to(bench.device))
