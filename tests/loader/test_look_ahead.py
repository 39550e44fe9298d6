"""Batches that are sampled several in one run are those of single runs."""

import pytest
import torch
from torch_geometric.sampler import NodeSamplerInput

from tests.fresh import FORKS
from tests.loader.batches import run, values
from tests.samplers import graphs, programs
from torch_gsample import (
    FastGCNSampler,
    LaborSampler,
    LadiesSampler,
    PinSAGESampler,
    ProgramSampler,
    SaintSampler,
    ShaDowSampler,
    algorithms,
)
from torch_gsample.compiler.super_batch.run import SuperBatch
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.loader.look_ahead import Group, grouped, one_by_one
from torch_gsample.samplers.program import run as program_run

DATA = graphs.homogeneous(
    num_nodes=60, num_edges=900, weight=torch.arange(1.0, 901.0)
)
TYPED = graphs.heterogeneous()


@pytest.fixture(autouse=True)
def _forget_compilations():
    yield
    torch._dynamo.reset()


def sage(**options):
    return ProgramSampler(
        DATA,
        programs.sage_again,
        [4, 3],
        seed=0,
        weight_attr='weight',
        **options,
    )


SAMPLERS = {
    'sage': sage,
    'layer_wise': lambda **options: ProgramSampler(
        DATA, programs.layer_wise, [8, 8], seed=0, **options
    ),
    'ladies': lambda **options: LadiesSampler(
        DATA, [8, 8], seed=0, normalization='row', **options
    ),
    'fastgcn': lambda **options: FastGCNSampler(
        DATA, [8, 8], seed=0, weight_attr='weight', **options
    ),
    'labor': lambda **options: LaborSampler(DATA, [3, 3], seed=0, **options),
    'pinsage': lambda **options: PinSAGESampler(DATA, [3], seed=0, **options),
    'saint': lambda **options: SaintSampler(
        DATA, 2, sample_coverage=2, batch_size=7, seed=0, **options
    ),
    'shadow': lambda **options: ShaDowSampler(DATA, [2, 2], seed=0, **options),
}


def loader_of(sampler, **options):
    options = {'batch_size': 7, 'shuffle': True} | options
    return NeighborLoader(DATA, sampler=sampler, **options)


def links_of(sampler, **options):
    return LinkNeighborLoader(
        DATA,
        sampler=sampler,
        neg_sampling={'mode': 'triplet', 'amount': 2},
        batch_size=200,
        **options,
    )


def together(size, **options):
    return {'compile': True, 'options': {'super_batch': size, **options}}


def passes(loader):
    torch.manual_seed(2)
    return [run(loader), run(loader)]


@pytest.fixture
def sizes(monkeypatch):
    """How many batches each run has that has several."""
    seen, real = [], SuperBatch.run_all

    def run_all(self, batches):
        seen.append(len(batches))
        return real(self, batches)

    monkeypatch.setattr(SuperBatch, 'run_all', run_all)
    return seen


@pytest.mark.parametrize('name', SAMPLERS)
def test_batches_are_those_of_single_runs(name, sizes):
    expected = passes(loader_of(SAMPLERS[name](compile=False)))
    loader = loader_of(SAMPLERS[name](**together(4)))
    assert passes(loader) == expected
    assert sizes == [3, 4, 4, 4]  # of nine; the first one compiles alone


@pytest.mark.parametrize(('size', 'prefetch'), [(2, 0), (32, 2), (3, 1)])
def test_any_number_together_gives_the_same(size, prefetch, sizes):
    expected = passes(loader_of(sage()))
    loader = loader_of(sage(**together(size)), prefetch=prefetch)
    assert passes(loader) == expected
    assert max(sizes) == min(size, 9)


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'persistent_workers': True},
        {'shuffle': False},
        {'filter_per_worker': True},
        {'prefetch': 0},
    ],
    ids=str,
)
def test_workers_look_ahead(options):
    expected = passes(loader_of(sage(), num_workers=2, **options))
    loader = loader_of(sage(**together(3)), num_workers=2, **options)
    assert passes(loader) == expected


def test_workers_that_persist_end_with_their_loader():
    loader = loader_of(
        sage(**together(3)), num_workers=1, persistent_workers=True
    )
    list(loader)
    workers = loader._iterator._workers
    del loader
    assert [worker.exitcode for worker in workers] == [0]


def test_workers_that_are_spawned_look_ahead():
    expected = passes(loader_of(sage()))[0]
    loader = loader_of(
        sage(share_memory=True, **together(3)),
        num_workers=1,
        multiprocessing_context=FORKS,
    )
    torch.manual_seed(2)
    assert run(loader) == expected


@pytest.mark.parametrize(
    ('name', 'num_workers'), [('sage', 2), ('ladies', 0), ('shadow', 0)]
)
def test_links_are_sampled_together(name, num_workers, sizes):
    expected = passes(links_of(SAMPLERS[name](exclude_seed_edges=True)))
    sampler = SAMPLERS[name](exclude_seed_edges=True, **together(4))
    assert passes(links_of(sampler, num_workers=num_workers)) == expected
    if num_workers == 0:
        assert 4 in sizes


def test_a_batch_of_a_group_is_that_of_its_number():
    """Whoever is in the group with it."""
    sampler = sage(**together(8))
    loader = loader_of(sampler, shuffle=False)
    list(loader)
    indices = [list(range(7 * i, 7 * i + 7)) for i in range(5)]
    for i, batch in enumerate(loader_of(sage(), shuffle=False)):
        if i == 3:
            expected = values(batch)
    inputs = [
        NodeSamplerInput(torch.tensor(ids), torch.tensor(ids))
        for ids in indices
    ]
    for others in ([3], [3, 0], [1, 3, 2], [3, 3, 4, 0]):
        outs = sampler.sample_batches(
            [inputs[i] for i in others], [(0, i) for i in others]
        )
        got = outs[others.index(3)]
        assert got.node.tolist() == expected['n_id']
        weight = got.attributes.edge[None]['edge_weight']
        assert weight.tolist() == expected['edge_weight']


# What fails, and what stays alone ############################################


class Failing(ProgramSampler):
    """Fails at the batch with one of the nodes."""

    def _check_seeds(self, node_type, name, seeds):
        if 30 in seeds.tolist():
            raise RuntimeError('out of ink')


@pytest.mark.parametrize(('num_workers', 'prefetch'), [(0, 0), (0, 2), (2, 2)])
def test_batches_before_one_that_fails_arrive(num_workers, prefetch):
    sampler = Failing(DATA, programs.sage_again, [4, 3], seed=0, **together(3))
    loader = loader_of(
        sampler, shuffle=False, num_workers=num_workers, prefetch=prefetch
    )
    got, expected = [], run(loader_of(sage(), shuffle=False))

    def read():
        for batch in loader:
            got.append(batch.n_id.tolist())

    with pytest.raises(RuntimeError, match='out of ink'):
        read()
    assert got == [batch['n_id'] for batch in expected[:4]]


def test_batches_that_fail_only_together_are_sampled_with_a_warning(
    monkeypatch,
):
    def fails(*_):
        raise RuntimeError('out of paper')

    expected = passes(loader_of(sage()))
    sampler = sage(**together(3))
    monkeypatch.setattr(sampler, 'sample_batches', fails)
    with pytest.warns(UserWarning, match='together failed: out of paper'):
        assert passes(loader_of(sampler)) == expected


def test_programs_of_a_module_stay_alone(sizes):
    """A step may change them between two batches."""
    model = algorithms.GCNBS(900)

    def program(A, seeds, fanouts):
        return model(A, seeds, fanouts)

    def make(**options):
        return ProgramSampler(DATA, program, [4, 3], seed=0, **options)

    expected = passes(loader_of(make()))
    for size in ('auto', 4):
        sampler = make(**together(size))
        assert passes(loader_of(sampler)) == expected
        assert sampler.look_ahead == 1


def test_typed_programs_stay_alone():
    sampler = ProgramSampler(
        TYPED,
        programs.typed_with_number,
        graphs.each(TYPED, [3, 2]),
        seed=0,
        **together(4),
    )
    loader = NeighborLoader(
        TYPED, sampler=sampler, input_nodes='item', batch_size=4
    )
    assert len(list(loader)) == len(loader)
    assert sampler.look_ahead == 1


def test_uncompiled_programs_are_not_grouped(sizes):
    list(loader_of(sage()))
    list(loader_of(sage(**together(1))))
    assert sizes == []


def test_a_budget_bounds_a_run():
    expected = passes(loader_of(sage()))
    sampler = sage(**together(4, memory_budget=20_000))
    assert passes(loader_of(sampler)) == expected


@pytest.mark.parametrize('options', [{'super_batch': 0}, {'colour': 'red'}])
def test_wrong_options_are_errors(options):
    with pytest.raises(ValueError, match='gsample: '):
        sage(options=options)


# The size ####################################################################


def searched(sampler, monkeypatch, factor, **options):
    """A loader with simulated times: runs of several batches take `factor`."""
    monkeypatch.setattr(program_run, '_LEAST', 0.0)
    monkeypatch.setattr(program_run, '_SHARE', 1e6)
    monkeypatch.setattr(program_run, '_SHORT', 1)
    search = sampler._runner._several.search
    note = search.note_time

    def note_time(size, seconds, counts=True):
        note(size, size if size == 1 else factor(size) * size, True)

    monkeypatch.setattr(search, 'note_time', note_time)
    return loader_of(sampler, **options)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_the_fastest_size_is_taken(num_workers, monkeypatch):
    expected = passes(loader_of(sage()))
    sampler = sage(**together('auto'))
    loader = searched(
        sampler,
        monkeypatch,
        lambda n: 0.5 if n == 16 else 0.8,
        num_workers=num_workers,
    )
    assert passes(loader) == expected
    assert sampler.look_ahead == 16


def test_where_it_does_not_pay_batches_stay_alone(monkeypatch, sizes):
    expected = passes(loader_of(sage()))
    sampler = sage(**together('auto'))
    assert passes(searched(sampler, monkeypatch, lambda n: 0.99)) == expected
    assert sampler.look_ahead == 1
    assert sizes == []


def test_batches_look_ahead_by_default_where_it_was_measured_to_pay():
    assert sage(compile=True)._runner._several is None
    assert SAMPLERS['fastgcn'](compile=True)._runner._several is None
    several = SAMPLERS['ladies'](compile=True)._runner._several
    assert not several.search.is_decided
    one = SAMPLERS['ladies'](compile=True, options={'super_batch': 1})
    assert one._runner._several is None


def test_a_short_pass_is_not_worth_a_search():
    sampler = sage(**together('auto'))
    list(loader_of(sampler))
    assert not sampler._runner._several.search.is_decided
    assert sampler.look_ahead == 1


def test_a_search_draws_nothing_of_torch(monkeypatch):
    loader = searched(sage(**together('auto')), monkeypatch, lambda n: 0.5)
    torch.manual_seed(5)
    run(loader_of(sage()))
    expected = torch.rand(1)
    torch.manual_seed(5)
    run(loader)
    assert torch.equal(torch.rand(1), expected)


def test_recompilation_keeps_the_found_size(monkeypatch):
    sampler = sage(**together('auto'))
    list(searched(sampler, monkeypatch, lambda n: 4 / n))
    assert sampler.look_ahead == 32
    sampler.fanouts = [2]
    assert sampler.look_ahead == 32


# Groups ######################################################################


def test_groups_end_with_the_pass():
    items = list(range(7))
    found = list(grouped(items, lambda: 3))
    assert found == [[0, 1, 2], [3, 4, 5], 6]
    assert list(one_by_one(found)) == items
    assert list(grouped(items, lambda: 1)) == items
    assert list(grouped([], lambda: 3)) == []


def test_all_workers_get_some_of_the_last_batches():
    found = list(grouped(range(10), lambda: 4, total=10, num_workers=2))
    assert [len(g) if isinstance(g, Group) else 1 for g in found] == [
        *(4, 3, 2, 1)
    ]


def test_sizes_may_change_between_groups():
    wanted = iter([1, 2, 4])
    found = list(grouped(range(7), lambda: next(wanted, 1)))
    assert found == [0, [1, 2], [3, 4, 5, 6]]
