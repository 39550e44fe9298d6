"""A picture of a batch has all of its nodes and edges, where they belong."""

import math
import sys

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NodeSamplerInput, SamplerOutput

from torch_gsample import NeighborSampler, viz
from torch_gsample.loader import NeighborLoader, ShaDowKHopSampler
from torch_gsample.viz.batch import ring_positions

# Node 0 has in-edges of 1 and 2, these of 3 and of 4 and 5.
EDGES = torch.tensor([[1, 2, 3, 4, 5], [0, 0, 1, 2, 2]])


def tree() -> Data:
    loader = NeighborLoader(
        Data(edge_index=EDGES, num_nodes=6),
        [2, 2],
        input_nodes=torch.tensor([0]),
        batch_size=1,
    )
    return next(iter(loader))


def hetero() -> HeteroData:
    data = HeteroData()
    data['user'].num_nodes, data['item'].num_nodes = 3, 4
    data['item', 'of', 'user'].edge_index = torch.tensor([[3, 1], [0, 0]])
    data['user', 'has', 'item'].edge_index = torch.tensor([[1, 2], [3, 1]])
    loader = NeighborLoader(
        data, [2, 2], input_nodes=('user', torch.tensor([0])), batch_size=1
    )
    return next(iter(loader))


def legend(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def markers(ax) -> list[int]:
    """The number of markers of each collection."""
    from matplotlib.collections import PathCollection

    return [
        len(c.get_offsets())
        for c in ax.collections
        if isinstance(c, PathCollection)
    ]


def arrows(ax) -> int:
    from matplotlib.quiver import Quiver

    return sum(c.N for c in ax.collections if isinstance(c, Quiver))


def test_a_hop_is_a_ring():
    x, y = ring_positions(torch.tensor([0, 1, 1, 2, 2, 2]), EDGES)
    radius = (x**2 + y**2).sqrt()
    assert radius.allclose(torch.tensor([0.0, 1, 1, 2, 2, 2]))
    ends = torch.stack([x, y], 1)
    assert torch.cdist(ends, ends).fill_diagonal_(9).min() > 0.9


def test_nodes_stand_outside_of_their_parents():
    x, y = ring_positions(torch.tensor([0, 1, 1, 2, 2]), EDGES[:, :4])
    for child, parent in ((3, 1), (4, 2)):
        cosine = x[child] * x[parent] + y[child] * y[parent]
        assert cosine > 2 * math.cos(0.2)


def test_several_seeds_are_a_ring():
    x, y = ring_positions(torch.tensor([0, 0, 1]), torch.tensor([[2], [1]]))
    assert (x**2 + y**2).sqrt().allclose(torch.tensor([1.0, 1, 2]))
    ends = torch.stack([x, y])
    assert ends[:, 2].allclose(2 * ends[:, 1], atol=1e-5)


def test_all_nodes_and_edges_are_drawn():
    ax = viz.plot_batch(tree())
    assert legend(ax) == ['seed (1)', 'hop 1 (2)', 'hop 2 (3)']
    assert markers(ax) == [1, 2, 3]
    assert arrows(ax) == 5
    assert not ax.texts


def test_types_have_colours_in_heterogeneous_batches():
    ax = viz.plot_batch(hetero())
    assert legend(ax) == ['user (3)', 'item (2)']
    assert markers(ax) == [3, 2]
    assert arrows(ax) == 4


@pytest.mark.parametrize('batch', [tree, hetero])
def test_arrows_lead_from_a_ring_to_the_one_inside(batch):
    (arrow,) = viz.plot_batch(batch()).collections[:1]
    ends = (
        arrow.get_offsets(),
        arrow.get_offsets() + [*zip(arrow.U, arrow.V, strict=True)],
    )
    outer, inner = (torch.as_tensor(end).norm(dim=1) for end in ends)
    assert (outer - inner).sub(0.9).abs().max() < 0.15
    assert len(outer) == arrows(viz.plot_batch(batch()))


def test_samples_are_drawn_as_batches_are():
    data = Data(edge_index=EDGES, num_nodes=6)
    sampler = NeighborSampler(data, [2, 2])
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(1)))
    assert legend(viz.plot_batch(out)) == legend(viz.plot_batch(tree()))


def test_nodes_have_the_labels_of_their_ids():
    ax = viz.plot_batch(tree(), labels='abcdef')
    assert sorted(text.get_text() for text in ax.texts) == list('abcdef')
    assert ax.texts[0].get_text() == 'a'
    assert ax.texts[0].xy == (0.0, 0.0)
    labels = {'item': ['i0', 'i1', 'i2', 'i3']}
    ax = viz.plot_batch(hetero(), labels=labels)
    assert sorted(text.get_text() for text in ax.texts) == ['i1', 'i3']


def test_hubs_of_a_batch_are_marked():
    star = torch.stack([torch.arange(1, 41), torch.zeros(40).long()])
    out = SamplerOutput(torch.arange(41), *star, None)
    out.num_sampled_nodes = [1, 40]
    ax = viz.plot_batch(out)
    assert legend(ax)[-1] == 'hub (1)'
    assert markers(ax) == [1, 40, 1]


def test_hubs_of_a_graph_are_marked():
    degree = torch.ones(100)
    degree[3] = 50
    ax = viz.plot_batch(tree(), degree=degree)
    assert legend(ax)[-1] == 'hub (1)'
    degree = {'user': torch.tensor([0, *[1] * 9, 0, 99])}
    assert legend(viz.plot_batch(hetero(), degree=degree)) == legend(
        viz.plot_batch(hetero())
    )


def test_a_batch_without_edges_is_drawn():
    out = SamplerOutput(torch.arange(2), *torch.empty(2, 2, 0).long()[0], None)
    out.num_sampled_nodes = [2, 0]
    assert markers(viz.plot_batch(out)) == [2]


def test_pictures_are_drawn_without_a_display(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.setitem(sys.modules, 'matplotlib.pyplot', None)
    ax = viz.plot_batch(tree())
    ax.figure.savefig(tmp_path / 'batch.png')
    assert (tmp_path / 'batch.png').stat().st_size > 1000
    given = Figure().subplots()
    assert viz.plot_batch(tree(), given) is given


def no_hops() -> Data:
    data = Data(edge_index=EDGES, num_nodes=6)
    return next(iter(ShaDowKHopSampler(data, depth=1, num_neighbors=2)))


def padded() -> Data:
    batch = tree()
    batch.num_sampled_nodes = [1, 2]
    return batch


def without(name: str) -> Data:
    batch = tree()
    del batch[name]
    return batch


@pytest.mark.parametrize(
    ('call', 'error', 'match'),
    [
        (lambda: viz.plot_batch(EDGES), TypeError, r"'batch'.*got Tensor"),
        (lambda: viz.plot_batch(tree(), 3), TypeError, r"'ax'.*got int"),
        (lambda: viz.plot_batch(no_hops()), ValueError, 'num_sampled_nodes'),
        (lambda: viz.plot_batch(padded()), ValueError, 'got 3 for 6 nodes'),
        (
            lambda: viz.plot_batch(without('edge_index')),
            ValueError,
            "'batch' must have an 'edge_index'",
        ),
        (
            lambda: viz.plot_batch(without('n_id'), labels='abcdef'),
            ValueError,
            "'labels' needs a batch with 'n_id'",
        ),
        (
            lambda: viz.plot_batch(tree(), labels='abc'),
            ValueError,
            r"'labels' must have an item.*at least 6 \(got 3\)",
        ),
        (
            lambda: viz.plot_batch(tree(), degree=torch.ones(5)),
            ValueError,
            r"'degree' must have an item.*at least 6 \(got 5\)",
        ),
        (
            lambda: viz.plot_batch(hetero(), labels='abc'),
            TypeError,
            r'dictionaries by node type.*got str',
        ),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize('name', viz.__all__)
def test_missing_matplotlib_raises_with_install_command(name, monkeypatch):
    for module in [m for m in sys.modules if m.startswith('matplotlib')]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    data = tree()
    arguments = [data, data] if name == 'plot_quality' else [data]
    with pytest.raises(ImportError, match=rf'{name}.*torch_gsample\[viz\]'):
        getattr(viz, name)(*arguments)
