"""Batches keep their numbers, whoever builds another loader of ours.

What each wrapper hands out is compared, batch by batch, with the epochs of
the loader alone.
"""

import importlib
import os
import socket
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch.multiprocessing import spawn
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler
from torch_geometric import loader as pyg_loader
from torch_geometric.data.lightning import LightningNodeData

from tests.loader.batches import graph, loader_of, run, values
from torch_gsample import NeighborSampler, patch_pyg
from torch_gsample.loader import LinkNeighborLoader, WalkLoader
from torch_gsample.rng import current_batch

DATA = graph()
NODES = {'shuffle': True, 'batch_size': 6}
LOST = 'a batch came without its number'


def links(**options):
    return LinkNeighborLoader(
        DATA,
        [4],
        edge_label_index=DATA.edge_index[:, :40],
        neg_sampling='binary',
        **{'seed': 2, **options},
    )


MAKE = {'nodes': loader_of, 'links': links}


@pytest.fixture
def _no_number_is_lost():
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message=f'.*{LOST}')
        yield


def by_batches(loader, kind=DataLoader, **options):
    return kind(
        loader.dataset,
        batch_sampler=loader.batch_sampler,
        collate_fn=loader.collate_fn,
        **options,
    )


def by_seeds(loader, kind=DataLoader, **options):
    return kind(
        loader.dataset,
        sampler=loader.sampler,
        batch_size=loader.batch_size,
        collate_fn=loader.collate_fn,
        **options,
    )


def item_by_item(loader, **options):
    """A data set of the user, which asks ours for one index at a time."""
    source = loader.dataset
    items = SimpleNamespace(__getitem__=None)
    items = type('Items', (), {'__getitem__': lambda _, i: source[i]})()
    return DataLoader(
        items,
        sampler=loader.sampler,
        batch_size=loader.batch_size,
        collate_fn=loader.collate_fn,
        **options,
    )


def accelerated(loader, **options):
    accelerate = pytest.importorskip('accelerate')
    accelerator = accelerate.Accelerator(cpu=True)
    return accelerator.prepare(loader)


def split_by_accelerate(loader, **options):
    prepare = pytest.importorskip('accelerate.data_loader')
    return prepare.prepare_data_loader(loader, split_batches=True)


def stateful(loader, **options):
    module = pytest.importorskip('torchdata.stateful_dataloader')
    return by_batches(loader, module.StatefulDataLoader, **options)


def stateful_seeds(loader, **options):
    module = pytest.importorskip('torchdata.stateful_dataloader')
    return by_seeds(loader, module.StatefulDataLoader, **options)


def ignite(loader, **options):
    # It imports all of torch.jit, which torch deprecates.
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        distributed = pytest.importorskip('ignite.distributed')
    return distributed.auto_dataloader(
        loader.dataset,
        batch_sampler=loader.batch_sampler,
        collate_fn=loader.collate_fn,
        **options,
    )


def ray(loader, **options):
    """What `ray.train.torch.prepare_data_loader` does for one worker."""
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=loader.sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        drop_last=loader.drop_last,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        generator=loader.generator,
    )


WRAPPERS = {
    'batch_sampler': by_batches,
    'sampler': by_seeds,
    'item by item': item_by_item,
    'accelerate': accelerated,
    'accelerate split': split_by_accelerate,
    'torchdata': stateful,
    'torchdata sampler': stateful_seeds,
    'ignite': ignite,
    'ray': ray,
}


@pytest.mark.filterwarnings('ignore::FutureWarning')
@pytest.mark.usefixtures('_no_number_is_lost')
@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('shuffle', [False, True])
@pytest.mark.parametrize(
    ('kind', 'wrapper'),
    [*(('nodes', w) for w in WRAPPERS), ('links', 'batch_sampler')],
)
def test_wrapped_loaders_have_the_same_batches(
    kind, wrapper, shuffle, num_workers
):
    options = {'batch_size': 6, 'shuffle': shuffle}
    alone = MAKE[kind](**options)
    want = run(alone), run(alone), run(alone)
    inner = MAKE[kind](**options, num_workers=num_workers)
    loader = WRAPPERS[wrapper](inner, num_workers=num_workers)
    assert (run(loader), run(loader), run(loader)) == want
    inner.set_epoch(1)
    if 'accelerate' not in wrapper:  # which counts epochs itself
        assert run(loader) == want[1]


@pytest.mark.usefixtures('_no_number_is_lost')
def test_persistent_workers_of_a_wrapper():
    alone = loader_of(**NODES)
    want = run(alone), run(alone)
    options = {'num_workers': 2, 'persistent_workers': True}
    loader = by_batches(loader_of(**NODES), **options)
    assert (run(loader), run(loader)) == want


@pytest.mark.parametrize('wrapper', ['torchdata', 'torchdata sampler'])
@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('stop', [0, 4])
def test_torchdata_resumes_inside_an_epoch(wrapper, num_workers, stop):
    alone = loader_of(**NODES)
    want = run(alone), run(alone), run(alone)
    loader = WRAPPERS[wrapper](loader_of(**NODES), num_workers=num_workers)
    run(loader)
    iterator = iter(loader)
    first = [values(next(iterator)) for _ in range(stop)]
    state = loader.state_dict()
    del iterator
    loader = WRAPPERS[wrapper](loader_of(**NODES), num_workers=num_workers)
    loader.load_state_dict(state)
    assert [*first, *run(loader)] == want[1]
    assert run(loader) == want[2]


def test_batches_of_another_size_begin_in_the_middle():
    """A state of the seeds, where a wrapper makes smaller batches."""

    def make():
        loader = loader_of(**NODES)
        module = pytest.importorskip('torchdata.stateful_dataloader')
        return module.StatefulDataLoader(
            loader.dataset,
            sampler=loader.sampler,
            batch_size=4,
            collate_fn=loader.collate_fn,
        )

    want = run(make())
    iterator = iter(loader := make())
    first = [values(next(iterator)) for _ in range(5)]  # 20 seeds: 3.3 of 6
    again = make()
    again.load_state_dict(loader.state_dict())
    assert [*first, *run(again)] == want


def test_accelerate_skips_batches():
    prepare = pytest.importorskip('accelerate.data_loader')
    loader = prepare.prepare_data_loader(loader_of(**NODES))
    skipped = prepare.skip_first_batches(loader, 3)
    assert run(skipped) == run(loader_of(**NODES))[3:]


def test_accelerate_dispatches_only_tensors():
    """The first process would cut batches in pieces: graphs have none."""
    prepare = pytest.importorskip('accelerate.data_loader')
    loader = prepare.prepare_data_loader(
        loader_of(**NODES), put_on_device=True, dispatch_batches=True
    )
    with pytest.raises(TypeError, match='batch size of tensors but got'):
        next(iter(loader))


# PyG #########################################################################


@pytest.mark.parametrize('kind', ['node', 'link'])
def test_under_pygs_own_loaders_one_warning_says_what_is_lost(kind):
    sampler = NeighborSampler(DATA, [4, 3], seed=0)
    if kind == 'node':
        loader = pyg_loader.NodeLoader(DATA, sampler, batch_size=20)
    else:
        loader = pyg_loader.LinkLoader(
            DATA,
            sampler,
            edge_label_index=DATA.edge_index[:, :40],
            batch_size=20,
        )
    with pytest.warns(UserWarning, match=f'NeighborSampler: {LOST}') as seen:
        first, second = [run(loader) for _ in range(2)]
    assert first == second  # as it says
    assert len([w for w in seen if LOST in str(w.message)]) == 1
    sampler.set_epoch(1)
    assert run(loader) != first


@pytest.mark.usefixtures('_no_number_is_lost')
def test_patched_loaders_of_pyg_keep_numbers():
    want = run(loader_of(**NODES))
    with patch_pyg():
        sampler = NeighborSampler(DATA, [4, 3], seed=0)
        nodes = pyg_loader.NodeLoader(DATA, sampler, **NODES)
        assert run(nodes) == want
        edges = {'edge_label_index': DATA.edge_index[:, :40], 'batch_size': 6}
        loader = pyg_loader.LinkLoader(
            DATA,
            NeighborSampler(DATA, [4], seed=2),
            neg_sampling='binary',
            **edges,
        )
        assert run(loader) == run(links(batch_size=6))
        third = pyg_loader.NeighborLoader(DATA, [4, 3], seed=0, **NODES)
        assert run(by_batches(third)) == want


@pytest.mark.parametrize('make', [loader_of, lambda: WalkLoader(60, list)])
def test_indices_without_a_number_are_warned_of_once(make):
    loader = make()
    with pytest.warns(UserWarning, match=LOST) as seen:
        _ = [loader.collate_fn([1, 2]) for _ in range(3)]
    assert len([w for w in seen if LOST in str(w.message)]) == 1


@pytest.mark.usefixtures('_no_number_is_lost')
def test_a_number_comes_from_a_list_or_from_its_indices():
    loader = WalkLoader(20, lambda nodes: current_batch(), batch_size=4)
    loader.set_epoch(3)
    batches = list(loader.batch_sampler)
    parts = [b[1:3] for b in batches], [b + [1, 2] for b in batches]
    for part in parts:
        assert [loader.collate_fn(b)[1] for b in part] == [0, 1, 2, 3, 4]
        assert [loader.collate_fn(b)[0] for b in part] == [3] * 5
    seeds = list(loader.sampler)
    assert [loader.collate_fn(seeds[i : i + 2]) for i in (0, 2, 6)] == [
        (4, 0),
        (4, 0),
        (4, 1),
    ]


# Lightning ###################################################################


def lightning():
    """The package whose data modules PyG knows."""
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


@pytest.mark.usefixtures('_no_number_is_lost')
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


@pytest.mark.parametrize('stop', [3, 10, 14])
def test_lightning_resumes_inside_an_epoch(tmp_path, stop):
    path = tmp_path / 'some.ckpt'
    want = fit(loader_of(**NODES), path=path, stop=stop)
    assert fit(loader_of(**NODES), path=path) == want[stop:]


# Two processes ###############################################################


def _in_two_processes(job, tmp_path):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    spawn(_process, args=(job, port, tmp_path), nprocs=2)
    return [
        torch.load(tmp_path / f'{rank}.pt', weights_only=False)
        for rank in range(2)
    ]


def _process(rank, job, port, tmp_path):
    torch.set_num_threads(1)
    names = {'RANK': rank, 'LOCAL_RANK': rank, 'GROUP_RANK': 0}
    sizes = {'WORLD_SIZE': 2, 'LOCAL_WORLD_SIZE': 2, 'MASTER_PORT': port}
    others = {'MASTER_ADDR': '127.0.0.1', 'TORCHELASTIC_RUN_ID': 1}
    for name, value in {**names, **sizes, **others}.items():
        os.environ[name] = str(value)
    torch.save(job(rank), tmp_path / f'{rank}.pt')
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _accelerate(rank):
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader

    torch.manual_seed(rank)
    accelerator = Accelerator(cpu=True)
    out = []
    for num_workers in (0, 2):
        loader = accelerator.prepare(
            loader_of(**NODES, num_workers=num_workers)
        )
        out.append([run(loader), run(loader)])
    halves = prepare_data_loader(
        loader_of(**NODES), None, 2, rank, split_batches=True
    )
    uneven = prepare_data_loader(
        loader_of(shuffle=True, batch_size=7), None, 2, rank
    )
    return out, run(halves), run(uneven)


def test_accelerate_in_two_processes(tmp_path):
    pytest.importorskip('accelerate')
    alone = loader_of(**NODES)
    want = run(alone), run(alone)
    results = _in_two_processes(_accelerate, tmp_path)
    for rank, (out, _, _) in enumerate(results):
        for epochs in out:
            assert epochs == [w[rank::2] for w in want]
    # Halves of a batch draw under its number.
    numbers = loader_of(**NODES)
    for i, batch in enumerate(numbers.batch_sampler):
        for rank, (_, halves, _) in enumerate(results):
            half = numbers.collate_fn(batch[3 * rank : 3 * rank + 3])
            assert values(half) == halves[i]
    # 9 batches, of which the last has 4 seeds: accelerate fills up.
    last = loader_of(shuffle=True, batch_size=7)
    want = run(last)
    for rank, (_, _, uneven) in enumerate(results):
        assert len(uneven) == 5
        assert uneven[:4] == want[rank:8:2]
    assert results[0][2][4]['input_id'][:4] == want[8]['input_id']


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
    results = _in_two_processes(_lightning, tmp_path)
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


def test_shares_of_torchs_sampler_in_a_wrapper():
    want = []
    for rank in range(2):
        sampler = DistributedSampler(range(60), num_replicas=2, rank=rank)
        batches = BatchSampler(sampler, 6, False)
        inner = loader_of(batch_sampler=batches, batch_size=1)
        numbers = [batch.number for batch in inner.batch_sampler]
        assert numbers == [(0, rank + 2 * i) for i in range(5)]
        inner.set_epoch(0)
        want.append(run(inner))
        inner.set_epoch(0)
        assert run(by_batches(inner)) == want[-1]
    assert sorted(i for w in want for b in w for i in b['input_id']) == list(
        range(60)
    )
