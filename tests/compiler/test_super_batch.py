"""Batches that are sampled together are those that are sampled alone."""

import pickle
import threading
from unittest import mock

import pytest
import torch

from tests.compiler.programs import EACH, PROGRAMS, graph, tensors
from tests.compiler.test_programs import assert_same
from torch_gsample import super_batch
from torch_gsample.compiler.super_batch.captured import Captured
from torch_gsample.rng import current_program, make_key, program_scope

TRAINED = {'as_gcn', 'pass'}
#: Programs with a loop that stops by their values.
NO_RULE = {'gcn_bs-distinct', 'labor-star'}
STRICT = {'strict': True}
SIZES = [5, 9, 3], [1, 7], [4], [2, 2, 2, 2], [0, 2, 3, 0]


def batches(sizes):
    """Seeds that come again in other batches."""
    return [
        (torch.arange(size) * 7 + 3 * i) % 40 for i, size in enumerate(sizes)
    ]


def together(name, size=8, **kwargs):
    torch._dynamo.reset()
    return super_batch(PROGRAMS[name], size, options=STRICT, **kwargs)


def assert_all_same(first, second):
    for a, b in zip(first, second, strict=True):
        assert_same(a, b)


def keys(count):
    return torch.cat([make_key(i, 2, i + 1) for i in range(count)])


def alone_in_scopes(program, A, seeds, key):
    out = []
    for i, batch in enumerate(seeds):
        with program_scope(key[i : i + 1]):
            program(A, batch)  # later draws have other numbers
            out.append(program(A, batch))
    return out


@pytest.mark.filterwarnings('error:super_batch')
@pytest.mark.parametrize('name', PROGRAMS)
def test_batches_are_those_of_single_runs(name):
    program, function, A = PROGRAMS[name], together(name), graph()
    for sizes in SIZES:
        if 0 in sizes and name == 'as_gcn':
            continue  # its probabilities would be 0 / 0
        seeds = batches(sizes)
        torch.manual_seed(3)
        want, after = [program(A, s) for s in seeds], torch.rand(1)
        torch.manual_seed(3)
        assert_all_same(function(A, seeds), want)
        assert torch.equal(torch.rand(1), after)
        key = keys(len(seeds))
        with program_scope(key):
            function(A, seeds)
            got = function(A, seeds)
            number = current_program()[1]
        assert_all_same(got, alone_in_scopes(program, A, seeds, key))
        with program_scope(key[:1]):
            program(A, seeds[0]), program(A, seeds[0])
            assert number == current_program()[1]
    assert_is_noted(name, function.notes)


def assert_is_noted(name, notes):
    """Batches run together, or the note says why they do not."""
    note = notes[0]
    if name in TRAINED:
        assert 'is trained between batches: one by one' in note
    elif name in NO_RULE:
        assert note.startswith('no rule for %while_loop')
    else:
        each = [f'called for each batch: {EACH[name]}'] if name in EACH else []
        assert list(notes) == ['several batches run together', *each]


def test_a_number_has_no_axis_of_batches():
    def program(A, seeds):
        S = A[:, seeds]
        return S.mul(S.values().new_ones(())).individual_sample(2)

    function, seeds = super_batch(program, 8, options=STRICT), batches([4, 3])
    torch.manual_seed(3)
    want = [program(graph(), s) for s in seeds]
    torch.manual_seed(3)
    assert_all_same(function(graph(), seeds), want)
    assert_is_noted('graphsage', function.notes)


def test_batches_run_in_one_go():
    function, A = together('graphsage'), graph()
    function(A, batches([3, 4]))
    with torch.profiler.profile() as profile:
        function(A, batches([5] * 8))
    calls = [event.name for event in profile.events()]
    assert calls.count('gsample::sample_layers') == 1  # of all layers


def test_batches_do_not_share_memory():
    function, A = together('ladies'), graph()
    first, second = function(A, batches([4, 4]))
    want = [t.clone() for t in tensors(second)]
    for tensor in tensors(first):
        tensor.zero_()
    for a, b in zip(tensors(second), want, strict=True):
        assert torch.equal(a, b)


def test_arguments_and_dtypes_are_those_of_single_runs():
    def program(A, seeds, k, scale=1.0):
        S = A[:, seeds].individual_sample(k)
        return S * scale, seeds.sum(), seeds.numel()

    function, A = super_batch(program, 4), graph(torch.float32)
    seeds = [s.int() for s in batches([3, 1, 5])]
    key = keys(3)
    with program_scope(key):
        got = function(A, seeds, 2, scale=3.0)
    for i, out in enumerate(got):
        with program_scope(key[i : i + 1]):
            want = program(A, seeds[i], 2, scale=3.0)
        assert_same(out[:2], want[:2])
        assert out[2] == want[2] == seeds[i].numel()


def test_compiled_once_whatever_sizes_come():
    function, A = together('ladies'), graph()
    function(A, batches([3, 4]))
    with torch.compiler.set_stance('fail_on_recompile'):
        for sizes in ([1], [0, 7], [9] * 6):
            function(A, batches(sizes))


def test_a_program_is_captured_once():
    captured = []
    real = Captured.__init__

    def note(self, *args):
        captured.append(self)
        real(self, *args)

    function = together('ladies')
    with mock.patch.object(Captured, '__init__', note):
        function(graph(), batches([3, 4]))
        function(graph(), batches([5]))
    assert len(captured) == 1


def test_under_forward_mode_batches_run_as_written():
    function, A, key = together('ladies'), graph(), keys(2)
    seeds = batches([5, 3])
    want = alone_in_scopes(PROGRAMS['ladies'], A, seeds, key)
    with program_scope(key), torch.autograd.forward_ad.dual_level():
        function(A, seeds)
        assert_all_same(function(A, seeds), want)


def test_draws_of_a_program_differ():
    def twice(A, seeds):
        part = A[:, seeds]
        return part.individual_sample(2), part.individual_sample(2)

    function, A = super_batch(twice, 4), graph()
    torch.manual_seed(1)
    seeds = [torch.arange(20), torch.arange(20)]
    (a, b), (c, d) = function(A, seeds)
    assert function.notes == ('several batches run together',)
    edges = [x.edge_id for x in (a, b, c, d)]
    for i, x in enumerate(edges):
        assert not any(torch.equal(x, y) for y in edges[i + 1 :])


def test_values_of_a_graph_that_changes_in_place_are_computed_again():
    A = graph()
    B = A.with_value(A.values().clone())
    program, function, key = PROGRAMS['fastgcn'], together('fastgcn'), keys(2)
    seeds = batches([9, 9])
    for _ in range(2):
        with program_scope(key):
            got = function(B, seeds)
        want = []
        for i, batch in enumerate(seeds):
            with program_scope(key[i : i + 1]):
                want.append(program(B, batch))
        assert_all_same(got, want)
        B.value[::2] *= 50


def test_threads_run_one_super_batch():
    function, A = together('ladies'), graph()
    seeds, got, errors = batches([5, 3, 8]), {}, []

    def key_of(i):
        return torch.cat([make_key(i, 0, b) for b in range(3)])

    def work(i):
        try:
            with program_scope(key_of(i)):
                got[i] = function(A, seeds)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[i]) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for i in range(6):
        for b, out in enumerate(got[i]):
            with program_scope(make_key(i, 0, b)):
                assert_same(out, PROGRAMS['ladies'](graph(), seeds[b]))


def first_layer(A, seeds):
    return A[:, seeds].individual_sample(2)


def test_super_batches_pickle():
    function, A, key = super_batch(first_layer, 4), graph(), keys(2)
    seeds = batches([3, 4])
    with program_scope(key):
        want = function(A, seeds)
    again = pickle.loads(pickle.dumps(function))
    with program_scope(key):
        assert_all_same(again(A, seeds), want)


# What does not run together.


def test_programs_that_cannot_be_captured_run_one_by_one():
    def program(A, seeds):
        if int(seeds.sum()) % 2:
            return A[:, seeds].individual_sample(1)
        return A[:, seeds].individual_sample(3)

    torch._dynamo.reset()
    function, A = super_batch(program, 4), graph()
    seeds = batches([3, 4, 5])
    torch.manual_seed(2)
    want = [program(A, s) for s in seeds]
    torch.manual_seed(2)
    with pytest.warns(UserWarning, match='run one by one: it cannot be'):
        got = function(A, seeds)
    assert_all_same(got, want)
    key = keys(3)
    with program_scope(key):
        function(A, seeds)
        got = function(A, seeds)
    assert_all_same(got, alone_in_scopes(program, A, seeds, key))


def test_a_random_operator_of_torch_has_no_rule():
    def program(A, seeds):
        return A[:, seeds].individual_sample(2), torch.rand(3)

    function, A = super_batch(program, 4), graph()
    torch.manual_seed(4)
    want = [program(A, s) for s in batches([3, 4])]
    torch.manual_seed(4)
    assert_all_same(function(A, batches([3, 4])), want)
    assert 'rand' in function.notes[0]


def test_other_graphs_and_arguments_run_one_by_one():
    function, A = super_batch(first_layer, 4), graph()
    B, seeds, key = A.with_value(A.values() * 2), batches([3, 4]), keys(2)
    with program_scope(key):
        got = function.run([(A, seeds[0]), (B, seeds[1])])
    for i, C in enumerate((A, B)):
        with program_scope(key[i : i + 1]):
            assert_same(got[i], first_layer(C, seeds[i]))


def test_failing_super_batches_run_one_by_one():
    def program(A, seeds):  # integers that are too far apart to be numbered
        return A[:, seeds].individual_sample(2), (
            seeds % 2 * -(2**63)
        ).unique()

    function, A, seeds = super_batch(program, 4), graph(), batches([3, 4])
    assert set((torch.cat(seeds) % 2).tolist()) == {0, 1}
    torch.manual_seed(4)
    want = [program(A, s) for s in seeds]
    torch.manual_seed(4)
    with pytest.warns(UserWarning, match='2 batches run one by one because'):
        got = function(A, seeds)
    assert_all_same(got, want)


def test_seeds_outside_the_graph_fail_as_alone():
    function, A = together('graphsage'), graph()
    function(A, batches([3, 4]))
    with pytest.raises(
        IndexError, match=r"'seeds' must be in \[0, 40\) \(got"
    ):
        function(A, [torch.tensor([1]), torch.tensor([40])])


def test_no_batch_gives_nothing():
    assert together('ladies')(graph(), []) == []


def test_seeds_must_be_tensors():
    with pytest.raises(TypeError, match="'seeds' must be a list of tensors"):
        together('ladies')(graph(), [[1, 2]])


def test_the_key_of_a_scope_needs_a_row_for_each_batch():
    function = together('ladies')
    for sizes in ([3, 4], [3, 4, 5, 6]):
        with (
            program_scope(keys(3)),
            pytest.raises(ValueError, match=r'a row for each of \d batches'),
        ):
            function(graph(), batches(sizes))


@pytest.mark.parametrize(
    ('error', 'kwargs', 'message'),
    [
        (ValueError, {'size': 0}, "'super_batch' must be positive (got 0)"),
        (TypeError, {'size': 'all'}, "'super_batch' must be an integer (got"),
        (TypeError, {'size': 2.0}, "'super_batch' must be an integer (got"),
        (TypeError, {'size': True}, "'super_batch' must be an integer (got"),
        (ValueError, {'memory_budget': -1}, "'memory_budget' must be positiv"),
        (TypeError, {'memory_budget': '1G'}, "'memory_budget' must be an int"),
    ],
)
def test_errors_name_the_argument(error, kwargs, message):
    with pytest.raises(error) as caught:
        super_batch(first_layer, **kwargs)
    assert message in str(caught.value)


def test_options_of_the_backend_are_known():
    options = {'super_batch': 'auto', 'memory_budget': 10**9}
    fast = torch.compile(first_layer, backend='gsample', options=options)
    torch._dynamo.reset()
    A, key = graph(), make_key(3)
    with program_scope(key):
        got = fast(A, torch.arange(4))
    with program_scope(key):
        assert_same(got, first_layer(A, torch.arange(4)))
