"""Several batches of seeds, as tests give them to sample_neighbors."""

from itertools import chain

import torch

from tests.ops import cases
from torch_gsample.csc import CSC
from torch_gsample.rng import make_key

#: Duplicates, in a batch and between them; and empty ones.
SEEDS = ([5, 1, 5, 70], [], [1, 5], [], [], [33], [5, 5, 5, 2, 1, 9], [])


def make_keys(count, epoch=1):
    return torch.cat([make_key(3, epoch, 7 + b) for b in range(count)])


def ptr_of(batches):
    sizes = torch.tensor([0, *map(len, batches)])
    return sizes.cumsum(0)


def batch_arguments(indptr, indices, batches=SEEDS, **options):
    """The seeds of all batches of one relation, and the other arguments."""
    seeds = torch.tensor(list(chain(*batches)), dtype=torch.int64)
    graph = CSC(indptr, indices, indptr.numel() - 1)
    options, _ = cases.arguments(graph, seeds, **options)
    return seeds, {**options, 'seed_ptr': [ptr_of(batches)]}


def one_by_one(
    operator,
    graph,
    ends,
    num_nodes,
    seeds,
    fanouts,
    keys,
    call_id=0,
    **options,
):
    """What batches give alone, one after another."""
    ptr = options.pop('seed_ptr')
    time = options.pop('seed_time', None)

    def part(values, b):
        return [v[p[b] : p[b + 1]] for v, p in zip(values, ptr, strict=True)]

    outputs = [
        operator(
            *(graph, ends, num_nodes, part(seeds, b), fanouts),
            *(keys[b : b + 1].clone(), call_id),
            seed_time=None if time is None else part(time, b),
            **options,
        )
        for b in range(len(keys))
    ]
    return [torch.cat(of_all) for of_all in zip(*outputs, strict=True)]
