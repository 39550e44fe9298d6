"""Loaders of several processes: together they are the loader of one."""

from itertools import chain

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    SubsetRandomSampler,
)
from torch_geometric.sampler import NeighborSampler as PyGNeighborSampler

from tests.loader.batches import graph, loader_of, run, values
from tests.samplers import graphs
from tests.storage import disk
from torch_gsample import NeighborSampler
from torch_gsample.loader import (
    GraphSAINTNodeSampler,
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
    ShaDowKHopSampler,
)
from torch_gsample.loader.epochs import Epochs, OrderedBatches
from torch_gsample.loader.numbering import NumberedBatches
from torch_gsample.loader.sharding import Shard
from torch_gsample.nn import Node2Vec
from torch_gsample.storage import RandomReadSampler, StreamingSampler

DATA, TYPED = graph(), graphs.heterogeneous()
EDGES = DATA.edge_index[:, :70]


def links(data, **options):
    return LinkNeighborLoader(data, neg_sampling='binary', **options)


def walks(seed, **options):
    return Node2Vec(DATA.edge_index, 4, 4, 2, seed=seed).loader(**options)


#: Each takes the arguments of its loader.
LOADERS = {
    'nodes': lambda **k: NeighborLoader(DATA, [4, 3], **k),
    'typed nodes': lambda **k: NeighborLoader(
        TYPED, graphs.each(TYPED, [4, 3]), input_nodes='item', **k
    ),
    'links': lambda **k: links(
        DATA, num_neighbors=[4], edge_label_index=EDGES, **k
    ),
    'typed links': lambda **k: links(
        TYPED,
        num_neighbors=graphs.each(TYPED, [4]),
        edge_label_index=(graphs.RATES, TYPED[graphs.RATES].edge_index),
        **k,
    ),
    'hgt': lambda **k: HGTLoader(TYPED, [4], 'user', **k),
    'shadow': lambda **k: ShaDowKHopSampler(DATA, 2, 3, **k),
    'walks': walks,
}


def steps(loader):
    """The batches of a pass; a batch of walks is a pair of tensors."""
    return [
        [v.tolist() for v in b] if isinstance(b, tuple) else values(b)
        for b in loader
    ]


def shares(make, world_size, **options):
    """The passes of each process, and that of one process."""
    passes = []
    for rank in range(world_size):
        torch.manual_seed(rank)  # models draw otherwise in each process
        loader = make(rank=rank, world_size=world_size, **options)
        torch.rand(rank)
        passes.append((len(loader), steps(loader), steps(loader)))
    return passes, make(rank=0, world_size=1, **options)


@pytest.mark.parametrize('shuffle', [False, True])
@pytest.mark.parametrize(
    ('kind', 'world_size'), [('nodes', 3), *((kind, 2) for kind in LOADERS)]
)
def test_all_shares_are_the_pass_of_one_process(kind, world_size, shuffle):
    options = {'batch_size': 5, 'seed': 3, 'shuffle': shuffle}
    passes, alone = shares(LOADERS[kind], world_size, **options)
    for epoch in (1, 2):
        want = steps(alone)
        assert len(want) == len(alone)
        for rank, share in enumerate(passes):
            assert share[epoch] == want[rank::world_size]
            assert share[0] == len(share[epoch])
    if not shuffle:  # nor does the argument change anything
        plain = LOADERS[kind](**options)
        plain.set_epoch(1)
        assert steps(plain) == want


def test_each_epoch_has_another_order_and_seeds_once():
    passes, _ = shares(LOADERS['nodes'], 2, batch_size=7, seed=3, shuffle=True)
    epochs = []
    for epoch in (1, 2):
        ids = [b['input_id'] for share in passes for b in share[epoch]]
        epochs.append(list(chain(*ids)))
        assert sorted(epochs[-1]) == list(range(60))
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize('size', [60, 55, 50, 45])
def test_with_drop_last_all_processes_have_as_many_batches(size):
    options = {'batch_size': 10, 'seed': 3, 'drop_last': True}
    options['input_nodes'] = torch.arange(size)
    passes, alone = shares(LOADERS['nodes'], 2, **options)
    full = size // 10 // 2 * 2
    want = steps(alone)[:full]
    for rank, share in enumerate(passes):
        assert share[0] == full // 2
        assert share[1] == want[rank::2]


def test_more_processes_than_batches():
    passes, alone = shares(LOADERS['nodes'], 3, batch_size=40, seed=3)
    assert [share[0] for share in passes] == [1, 1, 0]
    assert [b for share in passes for b in share[1]] == steps(alone)
    passes, _ = shares(
        LOADERS['nodes'], 3, batch_size=40, seed=3, drop_last=True
    )
    assert [share[1] for share in passes] == [[], [], []]


def test_workers_keep_the_numbers():
    options = {'batch_size': 5, 'shuffle': True, 'rank': 1, 'world_size': 2}
    alone = loader_of(**options)
    want = run(alone), run(alone)
    loader = loader_of(num_workers=2, persistent_workers=True, **options)
    assert (run(loader), run(loader)) == want


def test_steps_of_graph_saint_are_shared():
    def make(**options):
        return GraphSAINTNodeSampler(DATA, 20, num_steps=5, **options)

    passes, alone = shares(make, 2, seed=3)
    want = steps(alone)
    assert [share[0] for share in passes] == [3, 2]
    assert [share[1] for share in passes] == [want[0::2], want[1::2]]


def test_groups_are_of_the_batches_of_a_process():
    epochs = Epochs('test', None, Shard(1, 2))
    epochs.batches = OrderedBatches(20, 2, False, None)
    epochs.set_epoch(4)
    numbered = NumberedBatches(epochs, lambda: 3)
    groups = [list(group) for group in numbered]
    assert groups == [[[2, 3], [6, 7], [10, 11]], [[14, 15], [18, 19]]]
    numbers = [index.number for group in groups for index in group]
    assert numbers == [(4, batch) for batch in (1, 3, 5, 7, 9)]


@pytest.mark.parametrize('kind', [RandomReadSampler, StreamingSampler])
def test_graphs_on_disk(kind, tmp_path):
    data = disk.homogeneous()
    stored = disk.write(tmp_path / 'g', data)

    def make(**options):
        sampler = kind(stored, [4, 3], seed=0)
        return NeighborLoader(data, sampler=sampler, batch_size=9, **options)

    passes, alone = shares(make, 2, shuffle=True)
    want = steps(alone)
    assert [share[1] for share in passes] == [want[0::2], want[1::2]]


def test_samplers_of_indices_draw_alike_in_all_processes():
    def make(**options):
        chosen = SubsetRandomSampler(range(40))
        return loader_of(sampler=chosen, batch_size=6, **options)

    passes, alone = shares(make, 2)
    want = steps(alone)
    assert [share[1] for share in passes] == [want[0::2], want[1::2]]
    own = {
        'batch_sampler': BatchSampler(range(60), 7, True),
        'batch_size': 1,
    }
    passes, alone = shares(loader_of, 2, **own)
    want = steps(alone)
    assert [share[1] for share in passes] == [want[0:8:2], want[1:8:2]]


def test_the_order_leaves_the_default_generator_as_it_was():
    loader = loader_of(shuffle=True, rank=0, world_size=2, prefetch=0)
    torch.manual_seed(4)
    torch.empty((), dtype=torch.int64).random_()  # torch's loader does
    want = torch.rand(3)
    torch.manual_seed(4)
    batches = iter(loader)
    next(batches)
    assert torch.equal(torch.rand(3), want)


@pytest.mark.parametrize('as_batches', [False, True])
def test_a_distributed_sampler_shares_seeds_but_no_batch_number(as_batches):
    def make(rank, nodes):
        sampler = DistributedSampler(nodes, num_replicas=2, rank=rank)
        options = {'sampler': sampler, 'batch_size': 8}
        if as_batches:
            batches = BatchSampler(sampler, 8, False)
            options = {'batch_sampler': batches, 'batch_size': 1}
        return loader_of(**options)

    first, second = (make(rank, range(60)) for rank in range(2))
    batches = run(first), run(second)
    ids = [i for share in batches for b in share for i in b['input_id']]
    assert sorted(ids) == list(range(60))
    order = [b for pair in zip(*batches, strict=True) for b in pair]
    given = [b['input_id'] for b in order]
    alone = loader_of(batch_sampler=given, batch_size=1)
    assert run(alone) == order


def test_samplers_without_a_seed_are_shared_in_one_order():
    sampler = PyGNeighborSampler.__new__(PyGNeighborSampler)
    loaders = [
        NeighborLoader(
            DATA, sampler=sampler, shuffle=True, rank=rank, world_size=2
        )
        for rank in range(2)
    ]
    orders = [[n for _, n in enumerate(x._index_sampler)] for x in loaders]
    assert sorted(chain(*orders[0], *orders[1])) == list(range(60))


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        ({'rank': 1}, ValueError, 'given together .got 1 and None'),
        ({'world_size': 2}, ValueError, 'given together .got None and 2'),
        (
            {'rank': '1', 'world_size': 2},
            TypeError,
            "'rank' must be an integer .got '1'",
        ),
        (
            {'rank': 0, 'world_size': True},
            TypeError,
            "'world_size' must be an integer .got True",
        ),
        (
            {'rank': 0, 'world_size': 0},
            ValueError,
            "'world_size' must be positive .got 0",
        ),
        (
            {'rank': 2, 'world_size': 2},
            ValueError,
            r"'rank' must be in \[0, 2\) .got 2",
        ),
        (
            {'rank': 0, 'world_size': 2, 'seed': None},
            ValueError,
            "'seed' is required with 'world_size'",
        ),
        (
            {
                'rank': 0,
                'world_size': 2,
                'sampler': DistributedSampler(range(9), 2, 0),
            },
            ValueError,
            'with a DistributedSampler',
        ),
    ],
)
def test_rejects_bad_sharding_options(options, error, message):
    with pytest.raises(error, match=f'NeighborLoader: .*{message}'):
        loader_of(**options)


@pytest.mark.parametrize('kind', LOADERS)
def test_every_loader_needs_a_seed(kind):
    with pytest.raises(ValueError, match="'seed' is required"):
        LOADERS[kind](rank=0, world_size=2, seed=None)


def test_a_sampler_needs_a_seed_of_its_own():
    sampler = NeighborSampler(DATA, [2])
    with pytest.raises(ValueError, match="'seed' is required"):
        NeighborLoader(DATA, sampler=sampler, rank=0, world_size=2)
