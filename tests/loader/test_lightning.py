"""Batches of Lightning's runs, on one device and on two."""

import importlib
import warnings

import pytest
import torch
from torch_geometric.data.lightning import LightningNodeData

from tests.loader.batches import loader_of, run, values
from tests.loader.test_adj_t import homogeneous
from tests.loader.wrapped import DATA, NODES, in_two_processes
from torch_gsample import patch_pyg
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader


def lightning():
    """The Lightning package of PyG's data modules."""
    names = [c.__module__ for c in LightningNodeData.__mro__]
    own = any(name.startswith('lightning.') for name in names)
    name = 'lightning.pytorch' if own else 'pytorch_lightning'
    pytest.importorskip(name)
    return importlib.import_module(name)


def fit(loader=None, make=None, devices=1, epochs=2, path=None, stop=None):
    """The batches of a training run under Lightning."""
    pl = lightning()

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(1, 1), []

        def training_step(self, batch, index):
            self.seen.append(values(batch.clone()))
            return self.layer(torch.ones(1)).sum()

        def on_train_batch_end(self, *args):
            if len(self.seen) == stop:
                self.trainer.save_checkpoint(path)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    if make is not None:
        Model.train_dataloader = lambda self: make()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        trainer = pl.Trainer(
            accelerator='cpu',
            devices=devices,
            strategy='ddp' if devices > 1 else 'auto',
            max_epochs=epochs,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        resume = path if stop is None else None
        model = Model()
        trainer.fit(
            model, *([] if loader is None else [loader]), ckpt_path=resume
        )
    return model.seen


@pytest.mark.usefixtures('no_number_is_lost')
def test_lightning_has_the_same_batches():
    alone = loader_of(**NODES)
    want = run(alone) + run(alone)
    assert fit(loader_of(**NODES)) == want
    assert fit(make=lambda: loader_of(**NODES)) == want
    with patch_pyg():
        batches = LightningNodeData(
            DATA,
            input_train_nodes=torch.arange(60),
            num_neighbors=[4, 3],
            batch_size=6,
            seed=0,
        )
        assert fit(batches) == want


@pytest.mark.parametrize('seeds', ['nodes', 'edges', 'data module'])
def test_predictions_have_an_adj_t(seeds):
    """For predictions, Lightning creates the loader again."""
    pl, data, ids = lightning(), homogeneous(), torch.arange(20)

    class Model(pl.LightningModule):
        def predict_step(self, batch, index):
            return values(batch.adj_t.to_dense())

    options = {'num_neighbors': [4, 3], 'batch_size': 6, 'seed': 0}
    nodes = NeighborLoader(data, input_nodes=ids, **options)
    loader = nodes
    if seeds == 'edges':
        edges = torch.stack([ids, ids.flip(0)])
        loader = LinkNeighborLoader(data, edge_label_index=edges, **options)
    want = [values(batch.adj_t.to_dense()) for batch in loader]
    if seeds == 'data module':
        with patch_pyg():
            loader = LightningNodeData(
                data, input_train_nodes=ids, input_pred_nodes=ids, **options
            )
            assert predict(Model(), loader) == want
    else:
        assert predict(Model(), loader) == want


def predict(model, loader):
    """The predictions of a model under Lightning."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        trainer = lightning().Trainer(
            accelerator='cpu',
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        return trainer.predict(model, loader)


@pytest.mark.parametrize('stop', [3, 10, 14])
def test_lightning_resumes_inside_an_epoch(tmp_path, stop):
    path = tmp_path / 'some.ckpt'
    want = fit(loader_of(**NODES), path=path, stop=stop)
    assert fit(loader_of(**NODES), path=path) == want[stop:]


def _lightning(rank):
    shared = {'rank': rank, 'world_size': 2}
    return (
        fit(loader_of(**NODES, **shared), devices=2),
        fit(loader_of(**NODES), devices=2),
        fit(make=lambda: loader_of(**NODES), devices=2),
    )


def test_lightning_in_two_processes(tmp_path):
    lightning()
    alone = loader_of(**NODES)
    want = run(alone), run(alone)
    results = in_two_processes(_lightning, tmp_path)
    for rank, (shared, plain, hook) in enumerate(results):
        assert shared == want[0][rank::2] + want[1][rank::2]
        assert plain == hook
        assert len(plain) == 10
    # Lightning's sampler deals the seeds, in an order of its own.
    for epoch in range(2):
        part = slice(5 * epoch, 5 * epoch + 5)
        both = [batch for _, plain, _ in results for batch in plain[part]]
        seeds = [i for batch in both for i in batch['input_id']]
        assert sorted(seeds) == list(range(60))
