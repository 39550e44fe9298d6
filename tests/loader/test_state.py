"""A loader continues after the last batch that its caller got."""

import io
import itertools
import time

import pytest
import torch
from torch.utils.data import BatchSampler, WeightedRandomSampler

from tests.loader.batches import graph, loader_of, run, values
from tests.loader.test_sharding import DATA, LOADERS, TYPED, steps
from tests.samplers import graphs
from tests.storage import disk
from torch_gsample import LadiesSampler
from torch_gsample.loader import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    NeighborLoader,
    WalkLoader,
)
from torch_gsample.rng import current_batch
from torch_gsample.storage import RandomReadSampler, StreamingSampler


def layer_wise(seed=3, **options):
    sampler = LadiesSampler(DATA, [8, 8], seed=seed)
    return NeighborLoader(DATA, sampler=sampler, **options)


def without_batch_size(kind):
    def make(batch_size, **options):
        steps = () if kind is not GraphSAINTRandomWalkSampler else (2,)
        return kind(DATA, 10, *steps, num_steps=12, **options)

    return make


ALL = {
    **LOADERS,
    'layer-wise': layer_wise,
    'saint node': without_batch_size(GraphSAINTNodeSampler),
    'saint edge': without_batch_size(GraphSAINTEdgeSampler),
    'saint walk': without_batch_size(GraphSAINTRandomWalkSampler),
}


def saved(loader):
    """The state of a loader, from a file that holds nothing but values."""
    file = io.BytesIO()
    torch.save(loader.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def stopped(loader, epochs, batches):
    """The state after some epochs, and some batches of the next one."""
    for _ in range(epochs):
        for _ in loader:
            pass
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    state = saved(loader)
    del iterator
    return state


def resumed(loader, state):
    """The rest of the epoch, and the next one."""
    loader.load_state_dict(state)
    return steps(loader), steps(loader)


@pytest.mark.parametrize('kind', ALL)
def test_a_resumed_run_is_the_run_that_was_not_stopped(kind):
    options = {'batch_size': 5, 'seed': 3, 'shuffle': True}
    if 'saint' in kind:
        del options['shuffle']
    loader = ALL[kind](**options)
    want = steps(loader), steps(loader), steps(loader)
    for batches in (0, 2):
        state = stopped(ALL[kind](**options, prefetch=3), 1, batches)
        assert (state['epoch'], state['batch']) == (1, batches)
        again = ALL[kind](**options, prefetch=0)
        assert resumed(again, state) == (want[1][batches:], want[2])


@pytest.mark.parametrize('saved_by', [0, 2])
@pytest.mark.parametrize('resumed_by', [0, 1])
def test_workers_may_change(saved_by, resumed_by):
    options = {'shuffle': True, 'batch_size': 6}
    want = run(loader_of(**options)), run(loader_of(**options))
    persistent = {'num_workers': saved_by, 'persistent_workers': saved_by > 0}
    state = stopped(loader_of(**options, **persistent), 0, 3)
    loader = loader_of(**options, num_workers=resumed_by)
    loader.load_state_dict(state)
    assert run(loader) == want[0][3:]


def test_persistent_workers_go_on_where_a_state_says():
    options = {'shuffle': True, 'batch_size': 6}
    alone = loader_of(**options)
    want = run(alone), run(alone)
    loader = loader_of(**options, num_workers=2, persistent_workers=True)
    state = stopped(loader, 1, 4)
    run(loader)
    loader.load_state_dict(state)
    assert run(loader) == want[1][4:]


@pytest.mark.parametrize('drop_last', [False, True])
def test_processes_may_become_more_or_fewer(drop_last):
    options = {'batch_size': 5, 'shuffle': True, 'drop_last': drop_last}
    want = run(loader_of(**options))
    states = []
    for rank in range(2):
        loader = loader_of(**options, rank=rank, world_size=2)
        states.append(stopped(loader, 0, 2))
    assert states[0] == states[1]
    assert states[0]['batch'] == 4
    for size in (1, 2, 3):
        last = 12 - 8 % size if drop_last else 12
        for rank in range(size):
            loader = loader_of(**options, rank=rank, world_size=size)
            loader.load_state_dict(states[0])
            assert run(loader) == want[4 + rank : last : size]


@pytest.mark.parametrize('kind', [RandomReadSampler, StreamingSampler])
def test_graphs_on_disk(kind, tmp_path):
    data = disk.homogeneous()
    stored = disk.write(tmp_path / 'g', data)

    def make(**options):
        sampler = kind(stored, [4, 3], seed=0)
        options = {'sampler': sampler, 'batch_size': 9, 'shuffle': True}
        return NeighborLoader(data, **options)

    loader = make()
    want = steps(loader), steps(loader), steps(loader)
    state = stopped(make(), 1, 2)
    assert resumed(make(), state) == (want[1][2:], want[2])
    assert values(make()[1, 2]) == want[1][2]


@pytest.mark.parametrize('num_buckets', [1, 2])
def test_static_shapes_keep_their_buckets(num_buckets):
    options = {'static_shapes': num_buckets, 'shuffle': True, 'batch_size': 12}
    options['data'] = graph(num_nodes=600, num_edges=4000)
    loader = loader_of(**options)
    want = run(loader), run(loader)
    state = stopped(loader_of(**options), 1, 2)
    for known in (True, False):
        again = loader_of(**options)
        if known:
            again.load_state_dict(state)
            assert again.buckets == loader.buckets
            assert run(again) == want[1][2:]
        else:  # nor does it matter when they are chosen
            again.set_epoch(1)
            assert run(again) == want[1]
            assert again.buckets == loader.buckets


def test_a_state_after_the_last_batch_begins_the_next_epoch():
    loader = loader_of(batch_size=20)
    for state in [stopped(loader, 0, 3), saved(loader)]:
        assert (state['epoch'], state['batch']) == (1, 0)
    unfinished = iter(loader)
    next(unfinished)
    assert saved(loader)['batch'] == 1
    loader.set_epoch(7)
    assert saved(loader)['epoch'] == 7


def test_a_loaded_epoch_may_be_set_again():
    loader = loader_of(batch_size=20)
    state = stopped(loader, 2, 1)
    loader.load_state_dict(state)
    loader.set_epoch(2)  # as trainers do before an epoch
    assert len(run(loader)) == 2
    loader.load_state_dict(state)
    loader.set_epoch(1)
    assert len(run(loader)) == 3


def sampler_of():
    return WeightedRandomSampler(torch.arange(60) + 1.0, 50)


@pytest.mark.parametrize('as_batches', [False, True])
def test_samplers_of_indices_are_read_again(as_batches):
    def make():
        if as_batches:
            batches = BatchSampler(sampler_of(), 7, False)
            return loader_of(batch_sampler=batches, batch_size=1)
        return loader_of(sampler=sampler_of(), batch_size=7)

    loader = make()
    want = run(loader), run(loader), run(loader)
    state = stopped(make(), 1, 3)
    torch.rand(5)
    assert resumed(make(), state) == (want[1][3:], want[2])
    assert values(make()[2, 4]) == want[2][4]


def test_a_long_epoch_goes_on_at_once():
    def make():
        return WalkLoader(
            10**9, list, batch_size=10, shuffle=True, seed=1, prefetch=0
        )

    loader = make()
    next(iter(loader))  # the first call of operators
    state = {**saved(loader), 'batch': 10**6}
    seconds = []
    for _ in range(5):
        loader = make()
        start = time.perf_counter()
        loader.load_state_dict(state)
        found = next(iter(loader))
        seconds.append(time.perf_counter() - start)
        assert found == make()[0, 10**6]
    assert min(seconds) < 0.3  # 10 ms where nothing else runs


def test_without_a_seed_an_epoch_begins_again():
    loader = loader_of(seed=None, shuffle=True)
    state = stopped(loader, 1, 2)
    with pytest.warns(
        UserWarning, match="without a 'seed', the order of epoch 1"
    ):
        loader.load_state_dict(state)
    assert len(run(loader)) == len(loader)
    assert loader.epoch == 2


@pytest.mark.parametrize('kind', ALL)
@pytest.mark.parametrize('shuffle', [False, True])
def test_any_batch_by_its_number(kind, shuffle):
    options = {'batch_size': 5, 'seed': 3}
    if 'saint' not in kind:
        options['shuffle'] = shuffle
    loader = ALL[kind](**options)
    want = steps(loader), steps(loader)
    shared = {} if kind == 'layer-wise' else {'rank': 1, 'world_size': 2}
    other = ALL[kind](**options, **shared)
    for epoch, batch in [(1, 2), (0, 1)]:
        found = other[epoch, batch]
        assert steps([found])[0] == want[epoch][batch]
    assert other.epoch == 0


def test_a_batch_by_its_number_is_whole():
    seen = []

    def transform(batch):
        seen.append(current_batch())
        return batch

    options = {'num_workers': 2, 'shuffle': True, 'batch_size': 7}
    loader = loader_of(**options, transform=transform)
    want = run(loader_of(**options))
    assert values(loader[0, 8]) == want[8]  # of 4 seeds
    assert len(seen) == 1
    dropped = loader_of(**options, drop_last=True)
    with pytest.raises(IndexError, match=r'in \[0, 8\) .got 0 and 8'):
        dropped[0, 8]


@pytest.mark.parametrize(
    ('number', 'error', 'message'),
    [
        (3, TypeError, 'an index must be two integers, .epoch, batch. .got 3'),
        ((0, 1, 2), TypeError, 'an index must be two integers'),
        ((0, '1'), TypeError, "'batch' must be an integer .got '1'"),
        ((True, 1), TypeError, "'epoch' must be an integer .got True"),
        ((0, 4), IndexError, r".*'batch' must be in \[0, 4\) .got 0 and 4"),
        ((0, -1), IndexError, ".*'batch' must be in"),
        ((-1, 0), IndexError, "'epoch' must not be negative"),
    ],
)
def test_numbers_that_no_batch_has(number, error, message):
    with pytest.raises(
        error, match=f'NeighborLoader.epoch, batch.: {message}'
    ):
        loader_of()[number]


def test_no_number_leads_to_a_batch_that_torch_shuffles():
    with pytest.raises(ValueError, match="a 'seed' is required"):
        loader_of(seed=None, shuffle=True)[0, 1]


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'seed': 1}, 'same seed, here 1 .got 0'),
        ({'batch_size': 8}, 'same order.batch_size, here 8 .got 16'),
        ({'shuffle': True}, 'same order.shuffle, here True .got False'),
        ({'drop_last': True}, 'same order.drop_last, here True'),
        ({'num_neighbors': (4, 2)}, 'same arguments.fanouts, here ..4, 2'),
        ({'replace': True}, 'same arguments.replace, here True .got False'),
        (
            {'input_nodes': torch.arange(50)},
            'same order.seeds, here 50 .got 60',
        ),
        (
            {'input_nodes': torch.arange(60).flip(0)},
            "same arguments.input_data.node, here '",
        ),
        ({'data': graph(num_edges=901)}, "same graph.edges.None, here '"),
        ({'data': graph(num_nodes=61)}, 'same order.seeds, here 61 .got 60'),
    ],
)
def test_a_state_of_another_loader_is_refused(options, message):
    state = saved(loader_of())
    with pytest.raises(
        ValueError, match=f"NeighborLoader: 'state_dict' .* {message}"
    ):
        loader_of(**options).load_state_dict(state)


def test_a_sampler_that_does_not_know_its_length_is_read_to_its_end():
    class Batches:
        def __iter__(self):
            yield from ([1, 2], [3], [4, 5], [6])

        def __len__(self):
            return 2

    def make():
        return loader_of(batch_sampler=Batches(), batch_size=1)

    want = run(make())
    assert len(want) == 4
    loader = make()
    iterator = iter(loader)
    first = [values(next(iterator)) for _ in range(3)]
    state = saved(loader)
    del iterator
    again = make()
    again.load_state_dict(state)
    assert [*first, *run(again)] == want


def test_a_state_of_another_kind_is_refused():
    state = LOADERS['hgt'](batch_size=5, seed=3).state_dict()
    typed = {'input_nodes': 'user', 'batch_size': 5, 'seed': 3}
    fanouts = graphs.each(TYPED, [4])
    with pytest.raises(ValueError, match="same loader, here 'NeighborLoader'"):
        NeighborLoader(TYPED, fanouts, **typed).load_state_dict(state)


@pytest.mark.parametrize(
    ('change', 'error', 'message'),
    [
        (lambda s: [1], TypeError, "a result of 'state_dict..'.*got list"),
        (lambda s: {'epoch': 1}, TypeError, r"a dictionary of .'epoch'"),
        (lambda s: {**s, 'version': 2}, ValueError, 'version 1 .got 2'),
        (lambda s: {**s, 'epoch': -1}, ValueError, "'epoch' of .* .got -1"),
        (lambda s: {**s, 'batch': 1.5}, ValueError, "'batch' of .* .got 1.5"),
    ],
)
def test_rejects_bad_states(change, error, message):
    loader = loader_of()
    with pytest.raises(error, match=f'NeighborLoader: .*{message}'):
        loader.load_state_dict(change(loader.state_dict()))


def test_reading_a_state_leaves_an_epoch_alone():
    loader = loader_of(shuffle=True)
    want = run(loader)
    loader.set_epoch(0)
    found = []
    for batch in loader:
        found.append(values(batch))
        loader.state_dict()
        loader[5, 1]
    assert found == want


def test_the_readme_holds_its_promise():
    """The same seed: the same batches, whatever was drawn before."""

    def batches():
        loader = loader_of(batch_size=2, shuffle=True, seed=12)
        torch.rand(7)
        return [values(b) for b in itertools.islice(loader, 30)]

    first = batches()
    assert len(first) == 30
    assert batches() == first
