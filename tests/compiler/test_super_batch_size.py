"""The number of batches in a run: the fastest within a budget."""

from unittest import mock

import pytest
import torch

from tests.compiler.programs import graph
from tests.compiler.test_programs import assert_same
from tests.compiler.test_super_batch import batches, keys, together
from torch_gsample import SparseSample, algorithms, super_batch
from torch_gsample.compiler.super_batch.captured import Captured
from torch_gsample.compiler.super_batch.size import Memory, SizeSearch
from torch_gsample.rng import program_scope


def inputs_of(function, A, seeds):
    """The captured program, and the inputs of a run of several batches."""
    found, real = [], Captured.run

    def run(captured, inputs):
        found.append((captured, inputs))
        return real(captured, inputs)

    with (
        program_scope(keys(len(seeds))),
        mock.patch.object(Captured, 'run', run),
    ):
        function(A, seeds)
    return found[-1]


def searched(seconds, budget=None, rounds=400):
    """The sizes that a search tries when runs take `seconds(size)`."""
    search, tried = SizeSearch('auto', budget), []
    for _ in range(rounds):
        size = search.take([10] * 64)
        tried.append(size)
        search.note_time(size, seconds(size))
    return search, tried


def test_the_fastest_size_is_chosen():
    # A run costs 1, and each batch a little more the more there are.
    search, _ = searched(lambda n: 1 + n + n**2 / 64)
    assert search.size == 8
    assert search.take([10] * 64) == 8
    assert search.take([10] * 3) == 3


@pytest.mark.parametrize('power', [1.0, 1.2])
def test_batches_stay_alone_where_it_does_not_pay(power):
    search, tried = searched(lambda n: n**power)
    assert search.size == 1
    assert search.is_alone
    assert set(tried[-100:]) == {1}


def test_a_small_gain_is_noise():
    search, _ = searched(lambda n: n * 0.97 if n > 1 else 1.0)
    assert search.size == 1


def test_two_batches_may_be_slower_than_one():
    search, _ = searched(lambda n: {1: 1, 2: 2.3}.get(n, n**0.8))
    assert search.size == 32


def test_a_disturbed_machine_disturbs_both():
    """Runs together and alone take turns: all get slower here."""
    clock = iter(range(1000, 10_000))
    search, _ = searched(lambda n: n * next(clock))
    assert search.size == 1
    clock = iter(range(1000, 10_000))
    search, _ = searched(lambda n: (1 + n / 4) * next(clock))
    assert search.size > 1


def test_a_disturbed_run_decides_nothing():
    """Neither one that seems too fast, nor one that seems too slow."""
    seen = iter([0.1])
    search, _ = searched(lambda n: n * (next(seen, 1) if n == 8 else 1))
    assert search.size == 1
    slow = iter([30, 1, 1, 1])
    search, _ = searched(lambda n: (1 + n / 4) * next(slow, 1))
    assert search.size == 32


def test_most_runs_alone_may_be_disturbed():
    slow = iter([1] * 8 + [2] * 24)
    search, _ = searched(lambda n: n * (next(slow, 1) if n == 1 else 1))
    assert search.size == 1


def test_a_loss_ends_a_search_early():
    search, tried = searched(lambda n: 2 * n if n > 1 else 1)
    assert search.size == 1
    assert tried.count(8) == 2


def test_runs_before_layouts_are_chosen_do_not_count():
    search = SizeSearch('auto', None)
    for counts in (False, False, True, True, True, True):
        assert search.take([10] * 64) == 8
        search.note_time(8, 4.0 if counts else 80.0, counts)
        for _ in range(8):
            assert search.take([10] * 64) == 1
            search.note_time(1, 1.0)
    assert search.take([10] * 64) == 16
    assert search.best == 8


def test_fewer_batches_than_are_tried_run_alone_until_all_are_few():
    search, taken = SizeSearch('auto', None), []
    for _ in range(9):
        search.offer(4)
        taken.append(search.take([10] * 4))
    assert taken == [1] * 7 + [4, 4]
    assert search.size == 4


def test_a_number_is_taken_as_it_is():
    search = SizeSearch(6, None)
    assert search.size == search.take([10] * 64) == 6
    assert search.take([10] * 4) == 4


def test_a_run_that_is_not_timed_takes_all_that_it_may():
    assert SizeSearch('auto', None).take([10] * 20, tries=False) == 20


def test_a_failure_halves_the_size():
    search = SizeSearch(8, None)
    search.note_failure(8)
    assert search.size == 4
    search.note_failure(1)
    assert search.is_alone


def test_a_budget_bounds_the_seeds_of_a_run():
    search = SizeSearch(8, 1000)
    assert search.take([10] * 8) == 1  # nothing is known yet
    assert search.wants_memory([10])
    search.note_memory([10], 180)  # 18 bytes a seed
    assert not search.wants_memory([10])
    assert search.take([10] * 8) == 4  # 40 seeds, four times as many as known
    search.note_memory([10] * 4, 720)
    assert search.take([10] * 8) == 5  # 50 seeds, and a tenth more
    assert search.take([30, 30, 1]) == 1
    assert search.take([1] * 8) == 8
    assert search.take([100, 1]) == 1  # one batch always runs
    search.note_memory([10] * 5, 1500)  # more than it seemed
    assert search.take([10] * 8) == 3


def test_a_search_ends_at_the_budget():
    search = SizeSearch('auto', 100)
    search.note_memory([10], 100)
    assert search.is_alone


def test_batches_on_disk_are_as_many_as_the_memory_allows():
    search = SizeSearch('auto', 8000)
    search.read_disk()
    sizes, taken = [10] * 64, []
    for _ in range(60):
        size = search.take(sizes[: search.best if search.is_decided else 8])
        taken.append(size)
        if search.wants_memory(sizes[:size]):
            search.note_memory(sizes[:size], 180 * size)  # 18 bytes a seed
        else:
            search.note_time(size, 1 + size / 4)
    assert search.is_decided
    assert taken.count(8) == 3  # one for the memory, two for the time
    assert (
        max(taken) == search.best == search.size == 40
    )  # 8000 / (1.1 * 18 * 10)


def test_a_graph_on_disk_has_a_budget():
    search = SizeSearch('auto', None)
    search.read_disk()
    assert search.wants_memory([10])
    search.note_memory([10], 1 << 40)
    assert search.is_alone
    chosen = SizeSearch(6, None)
    chosen.read_disk()
    assert not chosen.wants_memory([10])


def test_bytes_are_counted_while_tensors_live():
    with Memory() as memory:
        a = torch.zeros(1000)
        b = a + 1
        del a
        c = b[10:] * 1.0
        c.view(-1)
    assert b.numel() == 1000
    assert memory.peak == 8000
    assert memory.now == 4000 + c.numel() * 4


def test_budgets_are_obeyed():
    A, seeds = graph(), batches([8] * 8)
    function = together('ladies', 8)
    for _ in range(8):  # until its layouts are chosen
        function(A, seeds)
    captured, inputs = inputs_of(function, A, seeds)
    with program_scope(keys(8)), Memory() as memory:
        captured.run(inputs)
    budget = memory.peak // 2
    bounded = together('ladies', 8, memory_budget=budget)
    peaks = []
    note = bounded.search.note_memory

    def look(sizes, peak):
        peaks.append(peak)
        note(sizes, peak)

    bounded.search.note_memory = look
    with program_scope(keys(8)):
        got = bounded(A, seeds)
    with program_scope(keys(8)):
        want = function(A, seeds)
    for a, b in zip(got, want, strict=True):
        assert_same(a, b)
    assert len(peaks) >= 2
    assert max(peaks) <= budget
    assert 1 < bounded.search.take([8] * 8) < 8


def test_sizes_are_searched_in_runs_of_any_length():
    A, function = graph(), together('graphsage', 'auto')
    for length in [1, 3, 16, 7] * 6:
        seeds, key = batches([4] * length), keys(length)
        with program_scope(key):
            got = function(A, seeds)
        assert len(got) == length
    assert 1 <= function.size <= 32


def test_memory_that_is_missing_is_no_end(monkeypatch):
    A, function, seeds = graph(), together('graphsage', 8), batches([4] * 4)
    captured, _ = inputs_of(function, A, seeds)

    def together_fails(*_):
        raise MemoryError('no memory')

    captured.together = together_fails
    torch.manual_seed(5)
    with pytest.warns(UserWarning, match='4 batches run one by one.*no memor'):
        got = function(A, seeds)
    assert function.size == 2
    torch.manual_seed(5)
    alone = together('graphsage', 1)
    for a, b in zip(got, alone(A, seeds), strict=True):
        assert_same(a, b)


def test_layouts_of_graphs_do_not_matter():
    A = graph()
    B = SparseSample.from_csr(*A.to_csr(), num_cols=40)
    function = super_batch(
        lambda A, s: algorithms.ladies(A, s, [6]), 4, options={'strict': True}
    )
    key = keys(2)
    with program_scope(key):
        got = function(B, batches([5, 2]))
    for i, batch in enumerate(batches([5, 2])):
        with program_scope(key[i : i + 1]):
            assert_same(got[i], algorithms.ladies(B, batch, [6]))
