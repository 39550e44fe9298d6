"""Layers of one node type and relation, under each rule of a frontier."""

import threading

import pytest
import torch

from tests.ops.cases import some_seeds, some_weights
from tests.ops.compare import (
    assert_equal_tensors,
    assert_equals_reference,
    digest,
)
from tests.ops.layers import (
    sample_plain_layers,
)
from tests.ops.neighbors import sample_one
from torch_gsample import ops
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    SMALL_GRAPHS,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

NONE = torch.empty(0, dtype=torch.int64)
IN_ORDER = FRONTIERS[4:]
PLAIN_FANOUTS = ([], [0], [1], [3, 2], [-1, 1, 2], [2, 0, 2], [20, 70])
PLAIN = {
    'plain': {},
    'replace': {'replace': True},
    'weighted': {'weighted': True},
    'weighted-replace': {'weighted': True, 'replace': True},
}
BIG = random_graph(50_000, 400_000, seed=1)


def weights_of(graph, weighted=False, **options):
    if weighted:
        options['cum_weight'] = ops.cumulate_weights(
            graph.indptr, some_weights(graph)
        )
    return options


@with_index_dtypes
@pytest.mark.parametrize('frontier', FRONTIERS)
@pytest.mark.parametrize('options', PLAIN)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_hops_equal_the_reference(name, options, frontier, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    given = weights_of(graph, **PLAIN[options])
    tensors = [graph.indptr, graph.indices]
    if 'cum_weight' in given:
        tensors.append(given.pop('cum_weight'))
    walks = frontier == 'walk'
    for i, fanouts in enumerate([[1] * 3] if walks else PLAIN_FANOUTS):
        hops = range(len(fanouts))
        out = assert_equals_reference(
            'sample_layers',
            tensors,
            [0, 0],
            [graph.num_cols],
            [some_seeds(graph)],
            fanouts,
            [make_key(i, hop // 2) for hop in hops],
            [3 * hop + i for hop in hops],
            FRONTIERS.index(frontier),
            i % 3 == 1 and frontier not in IN_ORDER,
            return_frontier=i % 2 == 0,
            **given,
        )
        for parts, dtype in zip(
            out, (graph.indptr, graph.indices, NONE), strict=False
        ):
            assert all(part.dtype == dtype.dtype for part in parts)


def by_hand(seeds, fanouts, frontier, key, **options):
    """The operators of single hops, as a program calls them."""
    out, columns, seen = [], seeds, seeds
    for hop, k in enumerate(fanouts):
        begin, edge = ops.sample_columns(
            BIG.indptr, k, key=key, call_id=hop, cols=columns, **options
        )
        row = BIG.indices[edge]
        out += [columns, begin, row, edge]
        if frontier in IN_ORDER:
            before, columns = columns, row.long()
            if frontier == 'walk':
                columns = before.clone()
                columns[begin.diff() > 0] = row.long()
            continue
        before = {'row': columns[:0], 'unseen': seen}.get(frontier, columns)
        seen = ops.unique_nodes(torch.cat([before, row]))[0]
        skipped = len(before) if frontier in ('new', 'unseen') else 0
        columns = seen[skipped:]
    return [*out, columns]


@pytest.mark.parametrize('frontier', FRONTIERS)
@pytest.mark.parametrize('options', PLAIN)
@pytest.mark.parametrize('size', [9, 6_000])
def test_hops_are_those_of_single_operators(frontier, options, size):
    seeds = torch.arange(size) * 7 % 50_000
    given = weights_of(BIG, **PLAIN[options])
    fanouts = [1, 1, 1] if frontier == 'walk' else [4, 3, 2]
    expected = by_hand(seeds, fanouts, frontier, make_key(5), **given)
    for threads in (1, 4):
        out = sample_plain_layers(
            BIG.indptr,
            BIG.indices,
            seeds,
            fanouts,
            key=[make_key(5)] * 3,
            frontier=frontier,
            return_frontier=True,
            num_threads=threads,
            **given,
        )
        columns = [seeds, *out.node]
        layers = zip(columns, out.indptr, out.row, out.edge, strict=False)
        got = [part for layer in layers for part in layer]
        for a, b in zip([*got, columns[-1]], expected, strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize('size', [50, 9_000])
def test_sorted_columns_are_the_same_nodes(size):
    args = BIG.indptr, BIG.indices, torch.arange(size) * 5, [3]
    given = {'key': [make_key(4)], 'return_frontier': True}
    [node] = sample_plain_layers(*args, **given).node
    [ascending] = sample_plain_layers(*args, sorted=True, **given).node
    assert torch.equal(ascending, node.sort().values)
    assert not torch.equal(ascending, node)


def test_one_node_is_sampled_by_neighbors_and_unseen_hops_alike():
    seeds = torch.arange(0, 900, 3)
    out = sample_plain_layers(
        BIG.indptr,
        BIG.indices,
        seeds,
        [5, 4],
        key=[make_key(2)] * 2,
        frontier='unseen',
        return_frontier=True,
    )
    other = sample_one(BIG.indptr, BIG.indices, seeds, [5, 4], key=make_key(2))
    assert torch.equal(torch.cat([seeds, *out.node]), other.node)
    assert torch.equal(torch.cat(out.edge), other.edge)


def test_a_tensor_of_seeds_gives_a_tensor_a_hop():
    graph = small_graph('hub')
    args = graph.indptr, graph.indices, torch.tensor([0, 3]), [3, 2]
    options = {'key': [make_key(1)] * 2, 'return_frontier': True}
    want = sample_plain_layers(*args, **options)
    from torch_gsample.csc import CSC
    from torch_gsample.graph import Graph

    csc = CSC(graph.indptr, graph.indices, graph.num_cols, None)
    out = ops.sample_layers(Graph.from_csc(csc), *args[2:], **options)
    assert_equal_tensors(out, want)


def test_threads_do_not_share_their_tables():
    def sample(seed):
        return digest(
            sample_plain_layers(
                BIG.indptr,
                BIG.indices,
                torch.arange(seed, 50_000, 100),
                [3, 3],
                key=[make_key(seed)] * 2,
                return_frontier=True,
            )
        )

    expected = [sample(seed) for seed in range(8)]
    got = {}
    threads = [
        threading.Thread(target=lambda i=i: got.update({i: sample(i)}))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[i] for i in range(8)] == expected


@pytest.mark.parametrize('frontier', FRONTIERS)
def test_a_call_that_fails_leaves_nothing_behind(frontier):
    def sample(seeds, indices=BIG.indices):
        return sample_plain_layers(
            BIG.indptr,
            indices,
            seeds,
            [1 + (frontier != 'walk')] * 2,
            key=[make_key(1)] * 2,
            frontier=frontier,
        )

    seeds = torch.arange(300)
    expected = digest(sample(seeds))
    with pytest.raises(RuntimeError, match="'indices' must be in"):
        sample(seeds, BIG.indices + 50_000)
    assert digest(sample(seeds)) == expected
