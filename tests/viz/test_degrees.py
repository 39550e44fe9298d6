"""A line of degrees counts the nodes with at least that many edges."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from torch_gsample import CSC, SparseSample, viz

# In-degrees 3, 1, 0, 0; out-degrees 0, 1, 1, 2.
EDGES = torch.tensor([[1, 2, 3, 3], [0, 0, 0, 1]])
DATA = Data(edge_index=EDGES, num_nodes=4)
GRAPHS = {
    'Data': DATA,
    'CSC': CSC.from_coo(EDGES[0], EDGES[1], 4, 4),
    'SparseSample': SparseSample.from_edge_index(EDGES, num_nodes=4),
}


def lines(ax) -> dict[str, list[tuple[int, float]]]:
    return {
        line.get_label(): [(int(x), float(y)) for x, y in line.get_xydata()]
        for line in ax.get_lines()
    }


@pytest.mark.parametrize('graph', GRAPHS.values(), ids=GRAPHS)
def test_a_line_has_the_share_of_nodes(graph):
    assert lines(viz.plot_degrees(graph)) == {
        'in-degree': [(1, 0.5), (3, 0.25)],
        'out-degree': [(1, 0.75), (2, 0.25)],
    }


def test_a_line_begins_at_one_edge():
    both = torch.tensor([[0, 1, 0, 1], [0, 0, 1, 1]])
    drawn = lines(viz.plot_degrees(Data(edge_index=both, num_nodes=2)))
    assert drawn['in-degree'] == [(1, 1.0), (2, 1.0)]


def test_edge_types_have_lines_of_their_own():
    data = HeteroData()
    data['a'].num_nodes, data['b'].num_nodes = 2, 4
    data['a', 'to', 'b'].edge_index = torch.tensor([[0, 1], [3, 3]])
    data['b', 'in', 'a'].edge_index = torch.tensor([[0], [1]])
    assert lines(viz.plot_degrees(data)) == {
        'a to b': [(1, 0.25), (2, 0.25)],
        'b in a': [(1, 0.5)],
    }


def test_a_plot_shows_the_sample_and_its_graph():
    sample = Data(edge_index=EDGES[:, :2], num_nodes=4)
    ax = viz.plot_quality(DATA, sample)
    drawn = lines(ax)
    assert list(drawn) == [
        'in-degree, original',
        'in-degree, sampled (distance 0.250)',
        'out-degree, original',
        'out-degree, sampled (distance 0.250)',
    ]
    assert list(drawn.values())[1] == [(1, 0.25), (2, 0.25)]
    styles = [line.get_linestyle() for line in ax.get_lines()]
    assert styles == ['-', '--', '-', '--']
    assert ax.get_xscale() == ax.get_yscale() == 'log'


@pytest.mark.parametrize('size', [0, 3])
def test_graphs_without_edges_are_drawn(size, tmp_path):
    empty = Data(edge_index=torch.empty(2, 0).long(), num_nodes=size)
    assert lines(viz.plot_degrees(empty))['in-degree'] == []
    viz.plot_quality(empty, empty).figure.savefig(tmp_path / 'empty.png')


def test_axes_of_the_caller_are_used():
    from matplotlib.figure import Figure

    one, two = Figure().subplots(1, 2)
    assert viz.plot_degrees(DATA, one) is one
    assert viz.plot_quality(DATA, DATA, ax=two) is two


@pytest.mark.parametrize(
    ('call', 'error', 'match'),
    [
        (
            lambda: viz.plot_degrees(EDGES),
            TypeError,
            r"plot_degrees: 'graph' must be .*HeteroData \(got Tensor\)",
        ),
        (
            lambda: viz.plot_quality(DATA, HeteroData()),
            TypeError,
            r"plot_quality: 'sampled' must be .*got HeteroData",
        ),
        (
            lambda: viz.plot_degrees(Data(num_nodes=3)),
            ValueError,
            "'graph' must have an 'edge_index'",
        ),
        (
            lambda: viz.plot_degrees(HeteroData()),
            ValueError,
            "'graph' must have an 'edge_index'",
        ),
        (
            lambda: viz.plot_quality(DATA, DATA, 'ax'),
            TypeError,
            r"plot_quality: 'ax' must be matplotlib's Axes \(got str\)",
        ),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()
