"""Threads, dtypes, tables and earlier calls change nothing."""

import numpy as np
import pytest
import torch

from tests.ops.cases import OPTIONS, arguments, sample_checked, some_seeds
from tests.ops.compare import assert_equal_tensors, digest
from tests.ops.neighbors import sample_one
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    assert_valid_sample,
    random_graph,
    small_graph,
    to_dtypes,
)

# 40,000 edges at the second hop: several threads work on it.
BIG = random_graph(20_000, 200_000, seed=1)
BIG_SEEDS = torch.randint(
    20_000, (1_000,), generator=torch.Generator().manual_seed(2)
)


def sample_big(graph=BIG, num_threads=0, **options):
    given, _ = arguments(graph, BIG_SEEDS, **options)
    return sample_one(
        graph.indptr,
        graph.indices,
        BIG_SEEDS,
        [9, 6, 2],
        key=make_key(11),
        num_threads=num_threads,
        **given,
    )


@pytest.mark.parametrize('options', OPTIONS)
def test_threads_change_nothing(options):
    digests = set()
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        out = sample_big(**OPTIONS[options])
        assert out.num_edges[1] > 8192
        digests.add(digest(out))
    for num_threads in (1, 2, 3, 100):
        out = sample_big(num_threads=num_threads, **OPTIONS[options])
        digests.add(digest(out))
    assert len(digests) == 1


@pytest.mark.parametrize('dtypes', INDEX_DTYPES)
def test_threads_that_relabel_together_change_nothing(dtypes):
    """From 65,536 edges a hop on, where there are six processors."""
    graph = to_dtypes(BIG, dtypes)
    seeds = BIG_SEEDS.repeat(12)  # most of them twice
    torch.set_num_threads(8)
    outs = [
        sample_one(
            graph.indptr,
            graph.indices,
            seeds,
            [-1, -1],
            key=make_key(11),
            num_threads=num_threads,
        )
        for num_threads in (1, 4, 8)
    ]
    assert min(outs[0].num_edges) > 65_536
    for out in outs[1:]:
        assert_equal_tensors(out, outs[0])


def test_big_samples_are_valid():
    torch.set_num_threads(4)
    for options in OPTIONS.values():
        _, rules = arguments(BIG, BIG_SEEDS, **options)
        assert_valid_sample(
            sample_big(**options),
            BIG.indptr,
            BIG.indices,
            BIG_SEEDS,
            [9, 6, 2],
            **rules,
        )


@pytest.mark.parametrize('options', OPTIONS)
def test_dtypes_change_nothing(options):
    outs = [
        sample_big(to_dtypes(BIG, dtypes), **OPTIONS[options])
        for dtypes in INDEX_DTYPES
    ]
    for out in outs[1:]:
        assert_equal_tensors(out, outs[0])


def test_hash_and_dense_tables_agree():
    # A table of all 40 nodes serves 4 seeds; 2 of 10,000 nodes are hashed.
    # Isolated nodes at the end change nothing but that choice.
    graph = small_graph('random')
    n = 100_000
    padded = torch.cat([graph.indptr, graph.indptr[-1].expand(n)])
    seeds = torch.tensor([1, 38])
    for fanouts in ([2], [3, 3], [-1, 2]):
        for replace in (False, True):
            dense, hashed = (
                sample_one(
                    indptr,
                    graph.indices,
                    seeds,
                    fanouts,
                    key=make_key(0),
                    replace=replace,
                )
                for indptr in (graph.indptr, padded)
            )
            assert_equal_tensors(dense, hashed)


def test_graphs_beyond_a_dense_table_are_sampled():
    # More than 2^26 nodes; untouched pages of the pointers take no memory.
    n = 2**26 + 1
    indptr = np.zeros(n + 1, dtype=np.int32)
    indptr[-1] = 3
    indices = torch.tensor([5, n - 1, 5], dtype=torch.int32)
    out = sample_one(
        torch.from_numpy(indptr),
        indices,
        torch.tensor([n - 1]),
        [-1, -1],
        key=make_key(0),
    )
    assert out.node.tolist() == [n - 1, 5]
    assert out.row.tolist() == [1, 0, 1]


def test_calls_on_alternating_graphs_do_not_mix():
    graphs = [random_graph(n, 5 * n, seed=n) for n in (50, 3, 400, 7_000, 20)]
    for turn in range(6):
        for graph in graphs:
            graph = to_dtypes(graph, INDEX_DTYPES[turn % 3])
            sample_checked(
                graph,
                some_seeds(graph),
                [[2], [-1, 2], [4, 4]][turn // 2],
                make_key(turn),
                disjoint=turn % 2 == 0,
            )


def test_a_failed_call_leaves_no_trace():
    graph = small_graph('random')
    broken = graph.indices.clone()
    broken[200:] = graph.num_rows
    for _ in range(3):
        for fanouts in ([2], [-1, 3]):  # a hash table, a dense table
            with pytest.raises(RuntimeError, match="'indices' must be in"):
                sample_one(
                    graph.indptr,
                    broken,
                    torch.arange(40),
                    fanouts,
                    key=make_key(0),
                )
            sample_checked(graph, torch.tensor([3]), fanouts, make_key(0))


def test_samples_keep_their_memory():
    # Memory of samples that are gone is used again, that of others is not.
    keys = [make_key(i) for i in range(6)]
    args = (BIG.indptr, BIG.indices, BIG_SEEDS, [9, 6, 2])
    outs = [sample_one(*args, key=key) for key in keys]
    wanted = [digest(out) for out in outs]
    for dropped in (4, 1, 3):
        outs[dropped] = None
        sample_one(*args, key=make_key(99))
        outs[dropped] = sample_one(*args, key=keys[dropped])
        assert [digest(out) for out in outs] == wanted
