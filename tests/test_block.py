"""Blocks: layers on them compute what layers on the whole batch do."""

import copy
import gc
import pickle
import weakref

import pytest
import torch
from torch_geometric import nn as pyg_nn
from torch_geometric.data import Data
from torch_geometric.transforms import AddSelfLoops, ToUndirected

from tests.samplers import graphs
from torch_gsample import Block, Blocks, LadiesSampler, SparseSample
from torch_gsample.batch_edges import BatchEdges
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.loader.blocks import add_blocks
from torch_gsample.vertex import nn
from torch_gsample.vertex.kernels import graph_cache

FANOUTS = [4, 3, 2]


def graph(num_nodes=300, num_edges=2400):
    """With loops and parallel edges."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=generator)
    loops = torch.arange(0, num_nodes, 7).repeat(2, 1)
    edge_index = torch.cat([edge_index, loops, edge_index[:, :50]], 1)
    size = edge_index.shape[1]
    return Data(
        x=torch.randn(num_nodes, 6, generator=generator).double(),
        edge_index=edge_index,
        weight=torch.rand(size, generator=generator).double(),
        relation=torch.randint(3, (size,), generator=generator),
    )


def batch_of(loader=NeighborLoader, **options):
    options = {'batch_size': 16, 'seed': 0} | options
    return next(iter(loader(graph(), FANOUTS, **options)))


BATCHES = {
    'plain': {},
    'disjoint': {'disjoint': True},
    'replace': {'replace': True},
    'padded': {'static_shapes': True},
    'worker': {'num_workers': 1},
    'links': {'loader': LinkNeighborLoader, 'neg_sampling_ratio': 1.0},
}
LAYERS = {
    'sage': lambda m: m.SAGEConv(6, 6),
    'sage max': lambda m: m.SAGEConv(6, 6, aggr='max'),
    'gcn': lambda m: m.GCNConv(6, 6),
    'gcn no loops': lambda m: m.GCNConv(6, 6, add_self_loops=False),
    'gcn improved': lambda m: m.GCNConv(6, 6, improved=True),
    'gcn plain': lambda m: m.GCNConv(6, 6, normalize=False),
    'gat': lambda m: m.GATConv(6, 3, heads=2),
    'gat no loops': lambda m: m.GATConv(6, 3, heads=2, add_self_loops=False),
    'gat edges': lambda m: m.GATConv(6, 3, heads=2, edge_dim=1),
    'gatv2': lambda m: m.GATv2Conv(6, 3, heads=2),
    'gatv2 shared': lambda m: m.GATv2Conv(6, 3, heads=2, share_weights=True),
    'gin': lambda m: m.GINConv(torch.nn.Linear(6, 6)),
    'rgcn': lambda m: m.RGCNConv(6, 6, 3),
}


def extra(name, batch):
    """The further arguments of a layer."""
    if name == 'rgcn':
        return [batch.relation]
    weighted = {'gcn no loops', 'gcn improved', 'gat edges'}
    return [batch.weight] if name in weighted else []


def layers_of(name, module):
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(LAYERS[name](module) for _ in FANOUTS)
    return layers.double()


def step(layers, x, call, num_seeds):
    """Outputs of seeds, and gradients of features and parameters."""
    x = x.clone().requires_grad_()
    out = x
    for i, layer in enumerate(layers):
        out = call(i, layer, out).relu()
    out = out[:num_seeds]
    out.square().sum().backward()
    grads = [p.grad for p in layers.parameters() if p.grad is not None]
    return [out.detach(), x.grad, *grads]


@pytest.mark.parametrize('case', BATCHES)
@pytest.mark.parametrize('name', LAYERS)
def test_fused_layers_equal_pyg_on_the_batch(name, case):
    batch = batch_of(**BATCHES[case])
    seeds, more = batch.num_sampled_nodes[0], extra(name, batch)
    if 'real' in str(batch.keys()):
        seeds = batch.num_real_nodes[0]
    want = step(
        layers_of(name, pyg_nn),
        batch.x,
        lambda _, layer, x: layer(x, batch.edge_index, *more),
        seeds,
    )
    got = step(
        layers_of(name, nn),
        batch.x,
        lambda i, layer, x: layer(x, batch.blocks[i], *more),
        seeds,
    )
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('case', BATCHES)
def test_layers_of_pyg_take_a_block_as_a_pair(case):
    batch = batch_of(**BATCHES[case])
    layers = layers_of('sage', pyg_nn)
    seeds = 4

    def on_block(i, layer, x):
        block = batch.blocks[i]
        return layer(block.pair(x), block.edge_index, size=block.size)

    want = step(layers, batch.x, lambda _, f, x: f(x, batch.edge_index), seeds)
    layers.zero_grad()
    got = step(layers, batch.x, on_block, seeds)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('module', [nn, pyg_nn])
def test_typed_batches_have_a_block_for_each_relation(module):
    data = ToUndirected()(graphs.heterogeneous())
    for store in data.node_stores:
        store.x = torch.randn(store.num_nodes, 5).double()
    loader = NeighborLoader(
        data, FANOUTS, batch_size=8, input_nodes='item', seed=0
    )
    batch = next(iter(loader))

    def convs(module):
        torch.manual_seed(0)
        return torch.nn.ModuleList(
            pyg_nn.HeteroConv(
                {t: module.SAGEConv((5, 5), 5) for t in data.edge_types}
            ).double()
            for _ in FANOUTS
        )

    want = batch.x_dict
    for conv in convs(pyg_nn):
        want = conv(want, batch.edge_index_dict)
    got = batch.x_dict
    for conv, block in zip(convs(module), batch.blocks, strict=True):
        if module is nn:
            got = conv(got, block)
        else:
            got = conv(block.pairs(got), block.edge_index_dict)
        assert all(len(x) == block.num_dst[t] for t, x in got.items())
    seeds = batch['item'].batch_size
    torch.testing.assert_close(got['item'][:seeds], want['item'][:seeds])


def test_a_block_reads_and_computes_as_little_as_it_can():
    batch = batch_of()
    nodes = torch.tensor(batch.num_sampled_nodes).cumsum(0)
    edges = torch.tensor(batch.num_sampled_edges).cumsum(0)
    sizes = [(b.num_src, b.num_dst, b.num_edges) for b in batch.blocks]
    want = [(nodes[k + 1], nodes[k], edges[k]) for k in (2, 1, 0)]
    assert sizes == [tuple(map(int, size)) for size in want]
    for block in batch.blocks:
        row, col = block.edge_index
        assert int(row.max()) < block.num_src
        assert int(col.max()) < block.num_dst
        kept = batch.edge_index[1] < block.num_dst  # all in-edges
        assert torch.equal(batch.edge_index[:, kept], block.edge_index)
        csc = block.csc
        assert csc.indptr.dtype == csc.indices.dtype == torch.int32
        assert torch.equal(csc.indices.long(), row)
        assert torch.equal(csc.col(torch.int64), col)
        back = block.transposed
        assert torch.equal(csc.indices[back.edge_id.long()], back.col())


def test_models_may_have_more_or_fewer_layers_than_hops():
    batch = batch_of()
    for count in (1, 2, 3, 5):
        layers = torch.nn.ModuleList(
            nn.GCNConv(6, 6).double() for _ in range(count)
        )
        want = got = batch.x
        for layer, block in zip(layers, batch.blocks.of(count), strict=True):
            want, got = layer(want, batch.edge_index), layer(got, block)
        torch.testing.assert_close(got[:16], want[:16])


def test_blocks_are_moved_copied_and_pickled():
    for options in ({}, BATCHES['padded']):
        batch = batch_of(**options)
        blocks = batch.blocks.prepare()
        others = [
            pickle.loads(pickle.dumps(batch)),
            copy.deepcopy(batch),
            batch.clone(),
            batch.to('cpu'),
            batch.cpu(),
        ]
        for other in others:
            assert isinstance(other.blocks, Blocks)
            assert other.blocks == blocks
            for mine, theirs in zip(blocks, other.blocks, strict=True):
                for name in ('csc', 'transposed'):
                    one, two = getattr(mine, name), getattr(theirs, name)
                    assert torch.equal(one.indptr, two.indptr)
                    assert torch.equal(one.indices, two.indices)
        if not options:
            moved = batch.to('meta').blocks
            assert moved.edges[None].csc.indices.is_meta
            assert moved[1].transposed.indices.is_meta
    assert blocks != batch_of(seed=1).blocks
    assert blocks != 'Blocks(3)'


def test_caches_of_blocks_are_freed_with_them():
    gc.collect()
    before = len(graph_cache._cache._known)
    sample = SparseSample.from_edge_index(graph().edge_index, num_nodes=300)
    batch = batch_of()
    nn.SAGEConv(6, 6).double()(torch.rand(300, 6).double(), sample)
    nn.GATConv(6, 6).double()(batch.x, batch.blocks[0])
    assert len(graph_cache._cache._known) > before
    edges = weakref.ref(batch.blocks.edges[None])
    del batch, sample
    gc.collect()
    assert edges() is None
    assert len(graph_cache._cache._known) == before


def test_a_layer_in_lower_precision_takes_a_block():
    batch = batch_of()
    layer = nn.GCNConv(6, 6)
    x, block = batch.x.float(), batch.blocks[0]
    want = layer(x, batch.edge_index)[: block.num_dst]
    with torch.autocast('cpu', torch.bfloat16):
        got = layer(x, block)
    torch.testing.assert_close(got.float(), want, rtol=0.05, atol=0.05)


@pytest.mark.parametrize('options', [{}, {'static_shapes': True}])
@pytest.mark.parametrize('steps', [1, 2, 5])
def test_propagation_takes_the_block_of_its_last_step(options, steps):
    batch = batch_of(**options)
    layer = nn.APPNP(steps, 0.2)
    for weight in (None, batch.weight):
        want = layer(batch.x, batch.edge_index, weight)
        for block in batch.blocks:
            rows = batch.blocks.level(block.level + steps - 1).num_src
            got = layer(batch.x[:rows], block, weight)
            torch.testing.assert_close(got, want[: block.num_dst])


# Which batches have blocks ###################################################


def test_a_batch_that_is_not_hop_by_hop_has_no_blocks():
    data = graph()
    for options in (
        {'subgraph_type': 'bidirectional'},
        {'transform': AddSelfLoops()},
        {'transform': AddSelfLoops(), 'num_workers': 1},
        {'transform': AddSelfLoops(), 'prefetch': 0},
        {'transform_sampler_output': shuffled},
    ):
        assert 'blocks' not in batch_of(**options), options
    sampler = LadiesSampler(data, [8, 8], seed=0)
    loader = NeighborLoader(data, sampler=sampler, batch_size=16)
    assert 'blocks' not in next(iter(loader))


def test_an_induced_subgraph_has_a_block_of_all_nodes_and_one_of_seeds():
    """Edges of seeds come from any node: only the last layer has fewer."""
    batch = batch_of(subgraph_type='induced')
    count, few = batch.num_nodes, int((batch.edge_index[1] < 16).sum())
    assert [b.size for b in batch.blocks] == [(count, count), (count, 16)]
    assert [b.num_edges for b in batch.blocks] == [batch.num_edges, few]
    other = batch.clone()
    del other.blocks
    other.edge_index = batch.edge_index.flip(1)  # not by column
    add_blocks(other, is_known=False)
    assert 'blocks' not in other


def shuffled(out):
    out.row, out.col = out.row.flip(0), out.col.flip(0)
    return out


def test_transforms_that_leave_edges_alone_keep_blocks():
    def transform(batch):
        batch.x = batch.x * 2
        return batch

    for options in ({}, {'num_workers': 1}, {'prefetch': 0}):
        assert 'blocks' in batch_of(transform=transform, **options)
    assert 'blocks' in batch_of(transform=lambda batch: batch.to('cpu'))


def test_batches_of_pyg_are_looked_at():
    batch = batch_of()
    del batch.blocks
    add_blocks(batch, is_known=False)
    assert batch.blocks == batch_of().blocks
    row, col = batch.edge_index
    first = batch.num_sampled_edges[0]
    for edge_index in (
        batch.edge_index.flip(1),  # not by column
        torch.stack([row.flip(0), col]),  # reads nodes of later hops
        torch.stack([row, col.roll(first)]),
        batch.edge_index[:, 1:],
    ):
        other = batch.clone()
        del other.blocks
        other.edge_index = edge_index
        add_blocks(other, is_known=False)
        assert 'blocks' not in other


def test_an_early_column_must_have_all_its_edges():
    # The edge of the second hop goes to a node of the first.
    batch = Data(
        edge_index=torch.tensor([[1, 2], [0, 0]]),
        num_nodes=3,
        num_sampled_nodes=[1, 1, 1],
        num_sampled_edges=[1, 1],
    )
    add_blocks(batch, is_known=False)
    assert 'blocks' not in batch


# Errors ######################################################################


def test_blocks_in_another_order_are_an_error():
    batch = batch_of()
    layer = nn.SAGEConv(6, 6).double()
    out = layer(batch.x, batch.blocks[1])
    with pytest.raises(ValueError, match=r"'x' must have a row for each of"):
        layer(out, batch.blocks[0])
    x = batch.x
    with pytest.raises(ValueError, match='destinations of the block'):
        layer((x, x[:1]), batch.blocks[0])


def test_errors_of_blocks_name_the_rule():
    blocks = batch_of().blocks
    with pytest.raises(IndexError, match=r'\[-3, 3\) for .*got 3'):
        blocks[3]
    with pytest.raises(IndexError, match=r'got -4'):
        blocks[-4]
    assert blocks[-1] is blocks[2]
    with pytest.raises(ValueError, match=r"'num_layers' must be positive"):
        blocks.of(0)
    with pytest.raises(ValueError, match=r'each of the .* edges of the batch'):
        blocks[1].in_degree(torch.ones(3))
    with pytest.raises(TypeError, match=r"APPNP: 'edge_index' must be that"):
        nn.APPNP(2, 0.1, dropout=0.5)(batch_of().x, blocks[0])
    with pytest.raises(ValueError, match=r"'x' must have a row for each of"):
        nn.APPNP(2, 0.1)(batch_of().x[:50], blocks[2])
    assert repr(blocks) == 'Blocks(3)'
    assert isinstance(blocks[0], Block)
    assert repr(blocks[2]).startswith('Block(num_src=')
    assert isinstance(blocks.edges[None], BatchEdges)
