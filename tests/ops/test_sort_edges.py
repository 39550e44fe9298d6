"""The layouts of few edges for vertex programs."""

import pytest
import torch

from tests import reference

GSAMPLE = torch.ops.gsample
#: Edges, sources and destinations: no edge, loops, duplicates, isolated
#: vertices, more sources, more destinations.
GRAPHS = {
    'empty': ([[], []], 0, 0),
    'isolated': ([[], []], 3, 2),
    'loops': ([[0, 1, 1, 2, 0], [0, 1, 1, 0, 2]], 3, 3),
    'hub': ([[3, 1, 2, 3, 0], [1, 1, 1, 1, 0]], 4, 2),
    'wide': ([[0, 1, 0, 1], [4, 1, 0, 4]], 2, 6),
}


def as_lists(out):
    return [x.tolist() for x in out]


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('loops', range(3))
@pytest.mark.parametrize('name', GRAPHS)
def test_edges_are_sorted_in_both_orders(name, loops, dtype):
    edges, num_rows, num_cols = GRAPHS[name]
    edge_index = torch.tensor(edges, dtype=dtype)
    out = GSAMPLE.sort_edges(edge_index, num_rows, num_cols, loops)
    expected = reference.sort_edges(edges, num_rows, num_cols, loops)
    assert as_lists(out) == list(expected)
    turned = GSAMPLE.transpose_columns(*out[:3], num_rows)
    columns = expected[:3]
    want = reference.transpose_columns(*columns, num_rows)
    assert as_lists(turned) == list(want)
    turned = GSAMPLE.transpose_columns(*out[:2], None, num_rows)
    want = reference.transpose_columns(*columns[:2], None, num_rows)
    assert as_lists(turned) == list(want)


@pytest.mark.parametrize('edge', [(2, 0), (0, 3), (-1, 0), (0, -1)])
def test_a_vertex_out_of_range_is_reported(edge):
    edge_index = torch.tensor([[0, edge[0]], [0, edge[1]]])
    assert reference.sort_edges(edge_index.tolist(), 2, 3, 0) is None
    for loops in range(3):
        assert GSAMPLE.sort_edges(edge_index, 2, 3, loops)[-1].tolist() == [-1]
