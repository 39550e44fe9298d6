"""Models see the same graph in padded batches, and are compiled less often."""

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounter
from torch_geometric.data import HeteroData
from torch_geometric.nn import GATConv, GCNConv, HeteroConv, SAGEConv
from torch_geometric.utils import trim_to_layer

from tests.samplers import graphs
from torch_gsample.loader import NeighborLoader


class LoopedGCNConv(GCNConv):
    """Adds self-loops itself: that of PyG breaks the graph of a compiler."""

    def __init__(self, *args):
        super().__init__(*args, add_self_loops=False)

    def forward(self, x, edge_index):
        loops = torch.arange(x.shape[0]).expand(2, -1)
        return super().forward(x, torch.cat([edge_index, loops], 1))


CONVS = {
    'sage': SAGEConv,
    'gcn': GCNConv,
    'gat': GATConv,
    'looped gcn': LoopedGCNConv,
}


class Model(torch.nn.Module):
    """Two layers, trimmed hop by hop, and what stands for a dictionary."""

    def __init__(self, make_conv):
        super().__init__()
        self.convs = torch.nn.ModuleList(make_conv() for _ in range(2))

    def forward(self, x, edge_index, nodes, edges):
        for layer, conv in enumerate(self.convs):
            x, edge_index, _ = trim_to_layer(
                layer, nodes, edges, x, edge_index
            )
            x = conv(x, edge_index)
            if isinstance(x, dict):
                x = {t: value.relu() for t, value in x.items()}
            else:
                x = x.relu()
        return x


def arguments(batch):
    if not isinstance(batch, HeteroData):
        return (
            batch.x,
            batch.edge_index,
            batch.num_sampled_nodes,
            batch.num_sampled_edges,
        )
    return (
        batch.x_dict,
        batch.edge_index_dict,
        batch.num_sampled_nodes_dict,
        batch.num_sampled_edges_dict,
    )


def loss_and_gradients(model, batch, node_type=None):
    """The loss of the seeds, and the gradients of all parameters."""
    model.zero_grad()
    out, store = model(*arguments(batch)), batch
    if node_type is not None:
        out, store = out[node_type], batch[node_type]
    size = store.batch_size
    loss = F.cross_entropy(out[:size], store.y[:size])
    loss.backward()
    return loss, [p.grad for p in model.parameters()]


def assert_same_losses(model, plain, padded, node_type=None):
    compared = 0
    for batch, other in zip(plain, padded, strict=True):
        loss, gradients = loss_and_gradients(model, batch, node_type)
        same, others = loss_and_gradients(model, other, node_type)
        torch.testing.assert_close(loss, same, atol=1e-6, rtol=1e-6)
        for a, b in zip(gradients, others, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
            compared += 1
    assert compared > 4


def homogeneous():
    data = graphs.homogeneous(num_nodes=90, num_edges=500)
    data.x = torch.rand(90, 6, generator=torch.Generator().manual_seed(0))
    data.y = torch.arange(90) % 4
    return data


def loaders(data, num_neighbors, num_buckets=2, **options):
    return [
        NeighborLoader(
            data, num_neighbors, seed=0, static_shapes=static, **options
        )
        for static in (False, num_buckets)
    ]


@pytest.mark.parametrize('name', CONVS)
@pytest.mark.parametrize('disjoint', [False, True])
def test_losses_and_gradients_are_those_without_padding(name, disjoint):
    torch.manual_seed(0)
    channels = iter([(6, 8), (8, 4)])
    model = Model(lambda: CONVS[name](*next(channels)))
    plain, padded = loaders(
        homogeneous(), [4, 3], batch_size=24, disjoint=disjoint
    )
    assert_same_losses(model, plain, padded)


def hetero():
    data = graphs.heterogeneous()
    del data[graphs.EMPTY], data['lone']
    generator = torch.Generator().manual_seed(0)
    for store in data.node_stores:
        store.x = torch.rand(store.num_nodes, 6, generator=generator)
        store.y = torch.arange(store.num_nodes) % 4
    return data


@pytest.mark.parametrize('name', ['sage', 'gat'])
def test_losses_of_types_are_those_without_padding(name):
    torch.manual_seed(0)
    data = hetero()
    channels = iter([(6, 8), (8, 4)])
    more = {'gat': dict(add_self_loops=False), 'sage': {}}[name]

    def make_conv():
        width, out = next(channels)
        convs = {
            t: CONVS[name]((width, width), out, **more)
            for t in data.edge_types
        }
        return HeteroConv(convs)

    # No edge leads to tags: their features end with the first layer.
    del data[graphs.MARKS], data['tag']
    model = Model(make_conv)
    plain, padded = loaders(
        data,
        graphs.each(data, [3, 2]),
        input_nodes='item',
        batch_size=4,
    )
    assert_same_losses(model, plain, padded, 'item')


def count_compiles(model, batches):
    """How many graphs Dynamo makes of a model."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter, dynamic=False)
    for batch in batches:
        compiled(*arguments(batch))
    torch._dynamo.reset()
    return counter.frame_count


@pytest.mark.parametrize('name', ['sage', 'looped gcn'])
def test_a_model_is_compiled_once_for_each_bucket(name):
    channels = iter([(6, 8), (8, 4)])
    model = Model(lambda: CONVS[name](*next(channels))).eval()
    plain, padded = loaders(homogeneous(), [4, 3], 4, batch_size=12)
    compiles = count_compiles(model, padded)
    used = [b for b in padded.stats()['buckets'] if b['batches']]
    assert 1 < compiles == len(used) <= 4
    assert count_compiles(model, plain) > compiles
