"""Batches keep their numbers, whoever builds another loader of ours.

What each wrapper hands out is compared, batch by batch, with the epochs of
the loader alone.
"""

import warnings
from types import SimpleNamespace

import pytest
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler
from torch_geometric import loader as pyg_loader

from tests.loader.batches import loader_of, run, values
from tests.loader.wrapped import DATA, LOST, NODES
from torch_gsample import NeighborSampler, patch_pyg
from torch_gsample.loader import LinkNeighborLoader, WalkLoader
from torch_gsample.rng import current_batch


def links(**options):
    return LinkNeighborLoader(
        DATA,
        [4],
        edge_label_index=DATA.edge_index[:, :40],
        neg_sampling='binary',
        **{'seed': 2, **options},
    )


MAKE = {'nodes': loader_of, 'links': links}


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
@pytest.mark.usefixtures('no_number_is_lost')
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


@pytest.mark.usefixtures('no_number_is_lost')
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


# PyG #########################################################################


@pytest.mark.parametrize('kind', ['node', 'link'])
def test_loaders_of_pyg_give_one_warning(kind):
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


@pytest.mark.usefixtures('no_number_is_lost')
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


@pytest.mark.usefixtures('no_number_is_lost')
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


@pytest.mark.parametrize('per_worker', [True, False])
def test_zipped_loaders_transform_each_batch_once(per_worker):
    """``ZipLoader`` says where features are joined, and joins them itself."""

    def count(batch):
        batch.times = batch.get('times', 0) + 1
        return batch

    loaders = [
        make(batch_size=8, transform=count) for make in (loader_of, links)
    ]
    zipped = pyg_loader.ZipLoader(loaders, per_worker, batch_size=8)
    for nodes, edges in [*zipped, zipped([0, 1])]:
        assert (nodes.times, edges.times) == (1, 1)
        assert nodes.batch_size == len(edges.edge_label) // 2
