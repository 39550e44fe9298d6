"""ShaDowKHopSampler: PyG's fields, exact subgraphs, one sample everywhere."""

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.testing import get_random_edge_index

from tests.algorithms.checks import chi_square_p
from tests.loader.batches import run
from tests.samplers import graphs
from torch_gsample.loader import ShaDowKHopSampler


def hand_made():
    """0 -> 1 -> 2 -> 3 and 0 -> 2: all subgraphs are known."""
    return Data(
        x=torch.tensor([[10.0], [11.0], [12.0], [13.0]]),
        y=torch.tensor([20, 21, 22, 23]),
        edge_index=torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]]),
        edge_attr=torch.tensor([[1.0], [2.0], [3.0], [4.0]]),
        name='path',
        scale=torch.tensor(0.5),
    )


def graph(**attributes):
    return graphs.homogeneous(
        num_nodes=50, num_edges=250, y=torch.arange(50), **attributes
    )


def test_batches_have_pygs_fields():
    loader = ShaDowKHopSampler(hand_made(), 2, 5, batch_size=4)
    assert len(loader) == 1
    batch = next(iter(loader))
    assert isinstance(batch, Batch)
    assert set(batch.keys()) == {
        *('batch', 'ptr', 'root_n_id', 'edge_index'),
        *('x', 'y', 'edge_attr', 'name', 'scale'),
    }
    # The nodes: {0}, {1, 0}, {2, 0, 1}, {3, 2, 0, 1}.
    assert batch.ptr.tolist() == [0, 1, 3, 6, 10]
    assert batch.batch.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert batch.root_n_id.tolist() == [0, 1, 3, 6]
    assert batch.x[batch.root_n_id].view(-1).tolist() == [10, 11, 12, 13]
    assert batch.y.tolist() == [20, 21, 22, 23]
    assert (batch.name, batch.scale) == ('path', 0.5)
    assert batch.num_nodes == 10
    edges = sorted(
        (int(batch.batch[u]), int(batch.x[u]), int(batch.x[v]), int(e))
        for (u, v), e in zip(
            batch.edge_index.t(), batch.edge_attr, strict=True
        )
    )
    assert edges == [
        (1, 10, 11, 1),
        *((2, 10, 11, 1), (2, 10, 12, 4), (2, 11, 12, 2)),
        *((3, 10, 11, 1), (3, 10, 12, 4), (3, 11, 12, 2), (3, 12, 13, 3)),
    ]
    for key in ('batch', 'ptr', 'root_n_id', 'edge_index', 'y'):
        assert batch[key].dtype == torch.int64
    assert batch.x.dtype == batch.edge_attr.dtype == torch.float32


@pytest.mark.parametrize('replace', [False, True])
def test_subgraphs_are_induced_and_bounded(replace):
    data = graph()
    data.wide = torch.randn(50, 20)
    seeds = torch.tensor([4, 9, 4, 30, 0])
    loader = ShaDowKHopSampler(
        data, 2, 3, seeds, replace, batch_size=5, seed=0
    )
    batch = next(iter(loader))
    node = batch.x.view(-1)
    assert torch.equal(node[batch.root_n_id], seeds)
    assert torch.equal(batch.y, seeds)
    assert torch.equal(batch.wide, data.wide[node])
    assert torch.equal(
        data.edge_index[:, batch.edge_attr], node[batch.edge_index]
    )
    found = 0
    for i in range(5):
        own = node[batch.ptr[i] : batch.ptr[i + 1]].tolist()
        assert len(own) == len(set(own)) <= 1 + 3 + 9
        count = sum(
            u in own and v in own for u, v in data.edge_index.t().tolist()
        )
        tree = batch.batch[batch.edge_index]
        assert int((tree[0] == i).sum()) == int((tree[1] == i).sum()) == count
        found += count
    assert found == batch.num_edges > 0


def test_each_neighbour_is_drawn_as_often():
    """2 of the 6 in-neighbours of node 0: each with probability 1 / 3."""
    edge_index = torch.stack([torch.arange(1, 7), torch.zeros(6).long()])
    data = Data(x=torch.arange(7), edge_index=edge_index, num_nodes=7)
    loader = ShaDowKHopSampler(
        data, 1, 2, torch.zeros(3000).long(), batch_size=100, seed=1
    )
    count = torch.zeros(7)
    for batch in loader:
        count += torch.bincount(batch.x, minlength=7)
    assert count[0] == 3000
    # The counts of a sample without replacement vary less than independent
    # ones, by (1 - 1/3) * 6 / 5 of their variance.
    scaled = (count[1:] - 1000) / (2 / 3 * 6 / 5) ** 0.5 + 1000
    assert chi_square_p(scaled.tolist(), [1000] * 6) > 0.001


def test_replacement_draws_some_neighbours_again():
    """Of 6, 5 draws with replacement find 6 (1 - (5 / 6)^5) on average."""
    edge_index = torch.stack([torch.arange(1, 7), torch.zeros(6).long()])
    data = Data(edge_index=edge_index, num_nodes=7)
    sizes = {}
    for replace in (False, True):
        loader = ShaDowKHopSampler(
            data,
            1,
            5,
            torch.zeros(1000).long(),
            replace,
            batch_size=1000,
            seed=0,
        )
        sizes[replace] = next(iter(loader)).batch.bincount() - 1.0
    assert (sizes[False] == 5).all()
    error = sizes[True].std() / 1000**0.5
    assert abs(sizes[True].mean() - 6 * (1 - (5 / 6) ** 5)) <= 4 * error


def loader_of(num_workers=0, **options):
    data = graphs.homogeneous(num_nodes=2000, num_edges=40_000)
    options = {'batch_size': 400, 'seed': 0, 'shuffle': True} | options
    return ShaDowKHopSampler(data, 2, 5, num_workers=num_workers, **options)


def passes(loader):
    torch.manual_seed(2)
    return [run(loader), run(loader)]


def test_a_pass_is_an_epoch():
    loader = loader_of(shuffle=False)
    first, second = run(loader), run(loader)
    assert first != second
    loader.set_epoch(1)
    assert run(loader) == second
    lasting = loader_of(1, shuffle=False, persistent_workers=True)
    assert [run(lasting), run(lasting)] == [first, second]
    assert run(loader_of(shuffle=False, seed=1)) != first


def test_a_mask_chooses_seeds():
    data = graph()
    mask = data.y % 7 == 3
    batches = list(ShaDowKHopSampler(data, 1, 2, mask, batch_size=3))
    ids = torch.cat([batch.y for batch in batches])
    assert torch.equal(ids, mask.nonzero().view(-1))


def test_compressed_graphs_are_spelled_out():
    # 1 -> 0, 2 -> 0, 0 -> 2, as rows of destinations.
    adj = torch.tensor([[0, 5, 6], [0, 0, 0], [7.0, 0, 0]]).to_sparse_csr()
    data = Data(adj_t=adj, x=torch.arange(3), num_nodes=3)
    batch = next(iter(ShaDowKHopSampler(data, 1, 5, batch_size=1)))
    ends = batch.x[batch.edge_index].t().tolist()
    weight = dict(zip(map(tuple, ends), batch.edge_weight, strict=True))
    assert weight == {(1, 0): 5, (2, 0): 6, (0, 2): 7}
    assert 'adj_t' not in batch


class Sparse:
    """The fields read of a torch-sparse tensor."""

    def __init__(self, value=None):
        self.value = value

    def coo(self):
        return torch.tensor([0, 0, 2]), torch.tensor([1, 2, 0]), self.value


@pytest.mark.parametrize('value', [None, torch.tensor([5, 6, 7])])
def test_sparse_tensors_are_spelled_out(value):
    data = Data(adj_t=Sparse(value), x=torch.arange(3), num_nodes=3)
    batch = next(iter(ShaDowKHopSampler(data, 1, 5, batch_size=1)))
    ends = sorted(batch.x[batch.edge_index].t().tolist())
    assert ends == [[0, 2], [1, 0], [2, 0]]
    if value is not None:
        assert sorted(batch.edge_weight.tolist()) == [5, 6, 7]


DATA = graph()


@pytest.mark.parametrize(
    ('args', 'options', 'error', 'text'),
    [
        ((0, 2), {}, ValueError, r"'depth' must be at least 1 \(got 0\)"),
        ((1.5, 2), {}, TypeError, r"'depth' must be an integer \(got 1.5\)"),
        ((1, -2), {}, ValueError, r"'num_neighbors' must be -1.*\(got -2\)"),
        ((1, '2'), {}, TypeError, "'num_neighbors' must hold integers"),
        (
            (1, 2, torch.tensor([50])),
            {},
            IndexError,
            r"'node_idx' must be in \[0, 50\) \(got 50\)",
        ),
        (
            (1, 2, torch.ones(3, dtype=torch.bool)),
            {},
            ValueError,
            "a mask 'node_idx' must have 50 elements",
        ),
        ((1, 2, 'ab'), {}, TypeError, "'node_idx' must be a tensor"),
        ((1, 2), {'prefetch': -1}, ValueError, "'prefetch' must not be"),
        ((1, 2), {'batch_size': None}, ValueError, "'batch_size' must be"),
        ((1, 2), {'seed': 2**70}, ValueError, "'seed' must fit in 64 bits"),
        ((1, 2), {'fanout': 2}, TypeError, 'fanout'),
    ],
)
def test_bad_input(args, options, error, text):
    with pytest.raises(error, match=text):
        ShaDowKHopSampler(DATA, *args, **options)


def test_other_graphs_are_refused():
    with pytest.raises(TypeError, match=r'must be a Data \(got Het'):
        ShaDowKHopSampler(graphs.heterogeneous(), 1, 2)
    with pytest.raises(ValueError, match="must have an 'edge_index'"):
        ShaDowKHopSampler(Data(x=torch.ones(3, 1)), 1, 2)


@pytest.mark.interop
def test_whole_neighbourhoods_are_pygs():
    from torch_geometric.loader import ShaDowKHopSampler as PyGs

    edge_index = get_random_edge_index(20, 20, 60, coalesce=True)
    data = Data(
        x=torch.arange(20),
        y=torch.arange(20),
        edge_index=edge_index,
        edge_attr=torch.arange(edge_index.shape[1]),
    )
    batches = [
        next(iter(kind(data, 2, 100, batch_size=20)))
        for kind in (ShaDowKHopSampler, PyGs)
    ]
    ours, theirs = map(contents, batches)
    assert ours == theirs
    assert set(batches[0].keys()) == set(batches[1].keys())


def contents(batch):
    """The contents of a batch, in no order."""
    root = batch.root_n_id
    tree = batch.batch
    row, col = batch.edge_index
    columns = tree[row], batch.x[row], batch.x[col], batch.edge_attr
    return (
        sorted(zip(tree.tolist(), batch.x.tolist(), strict=True)),
        sorted(zip(*(c.tolist() for c in columns), strict=True)),
        batch.x[root].tolist(),
        batch.y.tolist(),
        batch.ptr.tolist(),
    )
