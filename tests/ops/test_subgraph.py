import pytest
import torch

from tests.ops.cases import some_ids
from tests.ops.compare import assert_equals_reference, digest, lists
from torch_gsample import ops
from torch_gsample.testing import (
    INDEX_DTYPES,
    SMALL_GRAPHS,
    from_columns,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)


def induce_checked(graph, rows, cols, *batches):
    """Compares with the reference; the front and the operator agree."""
    args = (graph.indptr, graph.indices, graph.num_rows, rows, cols, *batches)
    out = assert_equals_reference(
        'induce_subgraph', *args, operator=ops.induce_subgraph
    )
    assert all(tensor.dtype == torch.int64 for tensor in out)
    return out


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_subgraphs_equal_the_reference(name, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    for size in (0, 1, 5, 60):  # 60 nodes hold duplicates
        nodes = some_ids(graph.num_cols, size, seed=size)
        others = some_ids(graph.num_cols, 7, seed=size + 1)
        induce_checked(graph, nodes, nodes)
        induce_checked(graph, nodes, others)
        batch = torch.arange(len(nodes)) % 3
        induce_checked(graph, nodes, nodes, batch, batch.flip(0))


@with_index_dtypes
def test_subgraphs_of_two_node_types_equal_the_reference(index_dtypes):
    graph = random_graph(30, 500, num_rows=12, seed=0)
    graph = to_dtypes(graph, index_dtypes)
    rows, cols = some_ids(12, 6, seed=1), some_ids(30, 20, seed=2)
    out = induce_checked(graph, rows, cols)
    assert out[0].numel() > 50
    induce_checked(
        graph, rows, cols, torch.arange(6) % 2, torch.arange(20) % 2
    )


@with_index_dtypes
@pytest.mark.parametrize('num_trees', [1, 7, 200])
def test_long_columns_of_many_trees_equal_the_reference(
    num_trees, index_dtypes
):
    """In any order, and with large ids of trees."""
    graph = random_graph(300, 9000, seed=1)
    graph = to_dtypes(graph, index_dtypes)
    nodes = some_ids(300, 400, seed=2)
    batch = some_ids(num_trees, 400, seed=3)
    for tree in (batch, batch.sort().values, batch * 2**40):
        out = induce_checked(graph, nodes, nodes, tree, tree)
        assert out[0].numel() > 10


def test_all_nodes_induce_the_graph():
    graph = small_graph('random')
    nodes = torch.arange(40)
    row, col, edge = induce_checked(graph, nodes, nodes)
    assert torch.equal(edge, torch.arange(400))
    assert torch.equal(row, graph.indices)
    assert torch.equal(col, graph.col())


def test_the_first_of_duplicate_rows_gets_the_edges():
    graph = from_columns([[1, 1], [0]])
    nodes = torch.tensor([1, 0, 1])
    out = induce_checked(graph, nodes, nodes)
    assert lists(out) == [[1, 0, 0, 1], [0, 1, 1, 2], [2, 0, 1, 2]]


def test_edges_join_nodes_of_one_batch_only():
    graph = from_columns([[1], [0]])
    nodes, batch = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 7, 8])
    row, col, _ = induce_checked(graph, nodes, nodes, batch, batch)
    assert lists([row, col]) == [[1, 0], [0, 1]]


def test_threads_and_dtypes_change_nothing():
    graph = random_graph(5_000, 100_000, seed=3)
    nodes = some_ids(5_000, 3_000, seed=4)
    batch = torch.arange(3_000) % 2
    digests = [set(), set()]
    for threads, dtypes in zip((1, 2, 4), INDEX_DTYPES, strict=True):
        torch.set_num_threads(threads)
        g = to_dtypes(graph, dtypes)
        for num_threads in (0, 1, threads):
            for batches, seen in zip(
                [(), (batch, batch)], digests, strict=True
            ):
                out = ops.induce_subgraph(
                    g.indptr,
                    g.indices,
                    g.num_rows,
                    nodes,
                    nodes,
                    *batches,
                    num_threads=num_threads,
                )
                assert out[0].numel() > 8_192
                seen.add(digest(out))
    assert [len(seen) for seen in digests] == [1, 1]
