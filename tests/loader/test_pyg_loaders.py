"""PyG's own loaders, and what Lightning makes of them, with our sampler."""

import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.sampler import NodeSamplerInput

from tests.loader.batches import end_workers, graph, loader_of, run, values
from torch_gsample import NeighborSampler
from torch_gsample.loader import NodeLoader

LOADERS = {
    'neighbor_loader': lambda data, sampler, **kwargs: pyg.NeighborLoader(
        data, [9], neighbor_sampler=sampler, **kwargs
    ),
    'node_loader': lambda data, sampler, **kwargs: pyg.NodeLoader(
        data, node_sampler=sampler, **kwargs
    ),
    'link_loader': lambda data, sampler, **kwargs: pyg.LinkLoader(
        data, link_sampler=sampler, neg_sampling_ratio=1.0, **kwargs
    ),
    'link_neighbor_loader': lambda data, sampler, **kwargs: (
        pyg.LinkNeighborLoader(data, [9], neighbor_sampler=sampler, **kwargs)
    ),
}


def loader_with(name, **options):
    data = graph()
    sampler = NeighborSampler(data, [4, 3], seed=0)
    return data, LOADERS[name](data, sampler, batch_size=30, **options)


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('name', LOADERS)
def test_pygs_loaders_take_the_sampler(name, num_workers):
    data, loader = loader_with(name, num_workers=num_workers)
    total = 0
    for batch in loader:
        assert torch.equal(batch.x, data.x[batch.n_id])
        ends = data.edge_index[:, batch.e_id]
        assert torch.equal(batch.n_id[batch.edge_index], ends)
        assert len(batch.num_sampled_edges) == 2  # our fan-outs, not [9]
        total += batch.input_id.numel()
    assert total == (900 if name.startswith('link') else 60)


def test_without_workers_epochs_of_pygs_loaders_are_the_samplers():
    """Nobody tells the sampler the epoch: a batch goes by its seeds."""
    _, loader = loader_with('node_loader')
    first = run(loader)
    assert run(loader) == first
    loader.node_sampler.set_epoch(1)
    assert run(loader) != first
    # The same seeds in two batches of other company draw differently.
    assert first[0]['e_id'] != first[1]['e_id']


def test_workers_of_pygs_loaders_draw_anew_in_each_epoch():
    """Their base seed comes from torch's generator; which worker is equal."""
    outs = []
    for num_workers in (1, 2, 2):
        _, loader = loader_with('node_loader', num_workers=num_workers)
        torch.manual_seed(3)
        outs.append([run(loader), run(loader)])
    assert outs[0] == outs[1] == outs[2]
    assert outs[0][0] != outs[0][1]


def test_workers_that_persist_need_set_epoch_or_our_loader():
    """Torch draws the base seed of persistent workers once."""
    _, loader = loader_with(
        'node_loader', num_workers=1, persistent_workers=True
    )
    assert run(loader) == run(loader)
    end_workers()


@pytest.fixture
def lightning(monkeypatch):
    """PyG's data modules, which work without Lightning, but for this flag.

    Where it is there, it takes seconds to import.
    """
    from torch_geometric.data.lightning import datamodule

    monkeypatch.setattr(datamodule, '_pl_is_available', True)
    return datamodule


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.filterwarnings('ignore:.*pin_memory')
def test_lightning_node_data_takes_the_sampler(lightning, num_workers):
    data = graph()
    data.train_mask = torch.arange(60) < 40
    data.val_mask = ~data.train_mask
    module = lightning.LightningNodeData(
        data,
        node_sampler=NeighborSampler(data, [4, 3], seed=0),
        batch_size=10,
        num_workers=num_workers,
        persistent_workers=False,
        eval_loader_kwargs={'num_neighbors': [-1], 'batch_size': 20},
    )
    train, val = list(module.train_dataloader()), list(module.val_dataloader())
    assert [len(train), len(val)] == [4, 1]
    for batch in train:
        assert len(batch.num_sampled_edges) == 2
        assert torch.equal(batch.x, data.x[batch.n_id])
    assert len(val[0].num_sampled_edges) == 1  # a copy with its own fan-outs
    assert val[0].input_id.tolist() == list(range(40, 60))


@pytest.mark.filterwarnings('ignore:.*pin_memory')
def test_lightning_link_data_takes_the_sampler(lightning):
    data = graph()
    module = lightning.LightningLinkData(
        data,
        input_train_edges=data.edge_index[:, :50],
        link_sampler=NeighborSampler(data, [4, 3], seed=0),
        neg_sampling='binary',
        batch_size=10,
    )
    batches = list(module.train_dataloader())
    assert len(batches) == 5
    for batch in batches:
        assert batch.edge_label.tolist() == [1.0] * 10 + [0.0] * 10


@pytest.mark.parametrize('num_workers', [0, 2])
def test_our_loader_takes_any_sampler_of_pyg(num_workers):
    """Here one that samples nothing but the seeds."""

    class SeedsOnly(NeighborSampler):
        def sample_from_nodes(self, inputs, **kwargs):
            self.num_neighbors = [0]
            return super().sample_from_nodes(inputs, **kwargs)

    sampler = SeedsOnly(graph(), [4], seed=0)
    loader = loader_of_sampler(sampler, num_workers=num_workers)
    assert all(values(b)['num_sampled_nodes'] == [20, 0] for b in loader)


def loader_of_sampler(sampler, **options):
    """Our loader, where the sampler knows its own options."""
    from torch_gsample.loader import NeighborLoader

    return NeighborLoader(graph(), sampler=sampler, batch_size=20, **options)


def test_our_sampler_draws_in_our_loader_as_in_a_loop_of_ones_own():
    from torch_gsample.rng import batch_scope

    loader = loader_of()
    expected = [batch.e_id.tolist() for batch in loader]
    sampler = loader.node_sampler
    for number, seeds in enumerate(torch.arange(60).split(16)):
        with batch_scope(epoch=0, batch=number):
            out = sampler.sample_from_nodes(loader.input_data[seeds])
        ids = sampler.edge_permutation[out.edge]
        assert ids.tolist() == expected[number]


def test_a_node_loader_joins_features_to_samples_of_others():
    """RelBench's link loader: the times of its seeds come with the batch."""
    data = graph()
    data.edge_time = torch.arange(data.num_edges)
    sampler = NeighborSampler(data, [4], time_attr='edge_time', seed=0)
    loader = NodeLoader(data, sampler)
    ids = torch.arange(3)
    seeds = NodeSamplerInput(ids, ids, torch.full((3,), 9))
    batch = loader.filter_fn(sampler.sample_from_nodes(seeds))
    assert torch.equal(batch.x, data.x[batch.n_id])
    with pytest.raises(ValueError, match="needs the seeds' times"):
        next(iter(loader))
