import threading

import pytest
import torch

from tests import reference
from tests.ops.compare import assert_equals_reference, lists
from torch_gsample import ops
from torch_gsample.ops import matrix
from torch_gsample.rng import current_program, make_key, program_scope

WEIGHTS = {
    'uniform': None,
    'zeros': lambda n: torch.arange(n) % 3,
    'all zero': lambda n: torch.zeros(n),
    'skewed': lambda n: 0.9 ** torch.arange(n),
}


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('weights', WEIGHTS)
@pytest.mark.parametrize('n', [0, 1, 2, 10, 64, 65, 300])
def test_nodes_equal_the_reference(n, weights, replace):
    # Beyond 64 picks, too: the law stays that of
    # select_weighted_without_replacement().
    cum = None
    if WEIGHTS[weights]:
        indptr, weight = torch.tensor([0, n]), WEIGHTS[weights](n).double()
        cum = ops.cumulate_weights(indptr, weight)
    for call_id, k in enumerate((0, 1, 2, 63, 64, 65, n, n + 1, 299)):
        out = assert_equals_reference(
            'sample_nodes',
            n,
            k,
            operator=ops.sample_nodes,
            key=make_key(n, 1, 2),
            call_id=call_id,
            cum_weight=cum,
            replace=replace,
        )
        assert out.dtype == torch.int64
        assert out.is_contiguous()
        if not replace:
            assert len(set(out.tolist())) == len(out)


def test_as_many_nodes_as_have_a_weight_are_sampled():
    indptr, weight = torch.tensor([0, 9]), torch.arange(9) % 3 * 1.0
    cum = ops.cumulate_weights(indptr, weight)
    for k, want in ((5, 5), (6, 6), (7, 6), (9, 6), (20, 6)):
        out = ops.sample_nodes(9, k, key=make_key(0), cum_weight=cum)
        assert len(out) == want
        assert (out % 3 > 0).all()


IDS = torch.tensor([0, 1, 7, 7, -1, 2**32, 2**63 - 1, -(2**63), 0])


def test_numbers_equal_the_reference():
    for key, call_id in ((make_key(0), 0), (make_key(5, 2, -1), 65_535)):
        out = assert_equals_reference(
            'random_uniform',
            IDS,
            operator=ops.random_uniform,
            key=key,
            call_id=call_id,
        )
        assert out.dtype == torch.float64
        assert len(set(out.tolist())) == 7
        assert out[0] == out[8]
        assert out[2] == out[3]
    assert ops.random_uniform(IDS[:0], key=make_key(0)).shape == (0,)


def test_blocks_of_numbers_equal_the_reference():
    for size in (1, 255, 256, 257, 1000):
        assert_equals_reference(
            'random_uniform',
            torch.arange(size) * 3,
            operator=ops.random_uniform,
            key=make_key(7, 1, 2),
        )


@pytest.mark.parametrize('n', [1, 2, 3, 31, 64, 1000])
def test_many_draws_of_few_or_many_weights_equal_the_reference(n):
    """They are searched in groups of 32 and a rest."""
    weight = (torch.arange(n) * 5 % 7).float() / 3
    weight[n // 2] = 1
    cum = ops.cumulate_weights(torch.tensor([0, n]), weight)
    column = ops.cumulate_weights(torch.tensor([0, 0, n]), weight)
    for k in (31, 32, 33, 65, 100):
        drawn = assert_equals_reference(
            'sample_nodes',
            n,
            k,
            operator=ops.sample_nodes,
            key=make_key(k),
            cum_weight=cum,
            replace=True,
        )
        assert (weight[drawn] > 0).all()
        _, edge = assert_equals_reference(
            'sample_columns',
            torch.tensor([0, 0, n]),
            k,
            operator=ops.sample_columns,
            key=make_key(k),
            cum_weight=column,
            replace=True,
        )
        assert (weight[edge] > 0).all()


def test_threads_change_no_number():
    ids, before, outs = torch.arange(50_000), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            outs.append(ops.random_uniform(ids.int(), key=make_key(9)))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])
    alone = [
        ops.random_uniform(ids[i : i + 1], key=make_key(9)) for i in IDS[:3]
    ]
    assert torch.equal(torch.cat(alone), outs[0][IDS[:3]])


def test_keys_follow_the_seed_of_torch():
    def draw(seed):
        torch.manual_seed(seed)
        return [lists(ops.next_key()) for _ in range(5)]

    assert draw(1) == draw(1)
    assert not {str(key) for key in draw(1)} & {str(key) for key in draw(2)}
    assert len({str(key) for key in draw(1)}) == 5


def test_keys_equal_draws_of_torch():
    before = torch.get_rng_state()
    key = ops.next_key()
    torch.set_rng_state(before)
    assert lists(key) == reference.next_key([0])


def test_keys_of_several_threads_differ():
    keys = []

    def draw():
        for _ in range(5_000):
            keys.append(int(ops.next_key()[0, 0]))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 20_000


def test_keys_keep_no_memory():
    before = matrix._key_state._use_count()
    for _ in range(20):
        ops.next_key()
    assert matrix._key_state._use_count() == before


def test_programs_number_their_draws():
    key = make_key(12)
    with program_scope(key):
        assert [current_program()[1] for _ in range(3)] == [0, 1, 2]
        with program_scope(make_key(13)):
            inner, call_id = current_program()
            assert (lists(inner), call_id) == ([[13, 0, 0]], 0)
        assert current_program() == (key, 3)
    first, second = current_program(), current_program()
    assert first[1] == second[1] == 0
    assert not torch.equal(first[0], second[0])
