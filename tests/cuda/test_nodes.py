"""Selected and distinct nodes of batches on the GPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES
from tests.cuda.test_matrix import EMPTY
from tests.cuda.test_walk import assert_same
from torch_gsample.ops import cumulate_weights
from torch_gsample.rng import make_key

#: Nodes of three batches, one of them empty.
PTR = torch.tensor([0, 130, 130, 150])
KEYS = torch.cat([make_key(seed) for seed in (4, 5, 6)])
COUNTS = [0, 1, 5, 19, 20, 21, 129, 130, 131]
WEIGHTS = ['uniform', 'positive', 'some', 'none']


def weights_of(kind, ptr):
    """Cumulated weights, or None if they are uniform."""
    size = int(ptr[-1])
    weight = torch.rand(size, generator=torch.Generator().manual_seed(1))
    weight = {
        'positive': weight + 1e-6,
        'some': weight * (torch.arange(size) % 3 > 0),
        'none': weight * 0,
    }.get(kind)
    return None if weight is None else cumulate_weights(ptr, weight)


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('kind', WEIGHTS)
def test_selected_nodes(cuda, kind, replace):
    cum_weight = weights_of(kind, PTR[:2])
    for seed, k in enumerate(COUNTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        options = {'cum_weight': cum_weight, 'replace': replace}
        options['device_of'] = EMPTY
        args = 'sample_nodes', 130, k, make_key(seed), 3
        assert_same(cuda, *args, **options)


def steep_weights(size):
    """Of all magnitudes: the heaviest are taken first."""
    weight = torch.rand(size, generator=torch.Generator().manual_seed(2))
    return cumulate_weights(torch.tensor([0, size]), weight.pow(-2).double())


@pytest.mark.parametrize('seed', range(12))
@pytest.mark.parametrize('size', [31, 32, 33, 1023, 1024, 1025, 2500])
def test_many_weighted_draws_that_depend_on_each_other(cuda, size, seed):
    """Trees of one level, two and three, up to their last positions."""
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    k = [1, size // 2, size - 1][seed % 3]
    options = {'cum_weight': steep_weights(size), 'device_of': EMPTY}
    assert_same(cuda, 'sample_nodes', size, k, make_key(seed), 3, **options)


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('size', [40, 1100])
def test_draws_that_are_on_the_bounds_of_weights(cuda, size, seed):
    """Of weights of a few units each draw is on a bound, and some are 0."""
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randint(seed % 2, 4, (size,), generator=generator)
    has_zero = torch.tensor([int((weight == 0).any())])
    cum_weight = torch.cat([weight.cumsum(0), has_zero])
    options = {'cum_weight': cum_weight}
    for k in (size // 2, size):
        assert_same(cuda, 'sample_nodes', size, k, make_key(seed), **options)


def test_a_tree_of_many_nodes(cuda):
    cuda.configure(1, 1, 32, 0)
    size = 40_000  # four levels
    options = {'cum_weight': steep_weights(size)}
    assert_same(cuda, 'sample_nodes', size, 3000, make_key(1), **options)


@pytest.mark.parametrize('batches', [1, 5, 13])
def test_batches_take_turns_with_trees(cuda, batches):
    """There are as many warps as the shape has, and less batches, or more."""
    keys = torch.cat([make_key(seed) for seed in range(batches)])
    sizes = torch.arange(batches) * 37 % 70
    ptr = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    for seed, k in enumerate([1, 20, 60]):
        cuda.configure(seed, *SHAPES[seed])
        options = {'cum_weight': steep_weights(64)}
        args = 'sample_nodes', 64, k, keys, 3
        assert_same(cuda, *args, **options)
        size = int(ptr[-1])
        options = {'ptr': ptr, 'cum_weight': weights_of('some', ptr)}
        args = 'sample_nodes', size, k, keys, 3
        assert_same(cuda, *args, **options)


@pytest.mark.parametrize('replace', [False, True])
def test_batches_of_the_same_nodes_in_one_launch(cuda, replace):
    options = {'replace': replace, 'device_of': EMPTY}
    for seed, k in enumerate(COUNTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        args = 'sample_nodes', 130, k, KEYS, 3
        assert_same(cuda, *args, **options)


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('kind', WEIGHTS)
def test_selected_nodes_of_batches(cuda, kind, replace):
    options = {'replace': replace}
    for seed, k in enumerate(COUNTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        args = 'sample_nodes', 150, k, KEYS, 3
        own = options | {'ptr': PTR, 'cum_weight': weights_of(kind, PTR)}
        assert_same(cuda, *args, **own)
        shared = weights_of(kind, torch.tensor([0, 150]))
        if shared is not None:
            assert_same(cuda, *args, **options, cum_weight=shared)


def test_uniform_nodes_that_give_way_in_chains(cuda):
    for seed, (num_nodes, k) in enumerate([(2, 1), (400, 399), (999, 700)]):
        cuda.configure(seed, 2, 96, 10)
        args = 'sample_nodes', num_nodes, k, make_key(seed), 3
        assert_same(cuda, *args, device_of=EMPTY)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('is_sorted', [False, True])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_distinct_nodes_of_batches(cuda, shape, is_sorted, dtype):
    generator = torch.Generator().manual_seed(0)
    for num_nodes, ptr in [
        (9, [0, 40, 40, 200, 300, 300]),
        (70, [0, 0, 300]),
        (3, [0]),
        (3, [0, 0]),
    ]:
        cuda.configure(num_nodes, *shape)
        id = torch.randint(num_nodes, (ptr[-1],), generator=generator)
        args = 'unique_nodes', id.to(dtype), num_nodes, is_sorted
        assert_same(cuda, *args, ptr=torch.tensor(ptr))


def test_distinct_nodes_of_batches_of_a_large_graph(cuda):
    id = torch.tensor([2**40, 3, 2**40, 2**62 - 1, 3, 3, 2**40])
    cuda.configure()
    ptr = torch.tensor([0, 4, 4, 7])
    assert_same(cuda, 'unique_nodes', id, 2**62, False, ptr)
    assert_same(cuda, 'unique_nodes', id, 2**62, True, ptr)
    for dtype in (torch.int32, torch.int64):
        some = id.to(dtype) % 1000
        assert_same(cuda, 'unique_nodes', some, 2**62, True)


@pytest.mark.sanitize
def test_nodes_under_a_sanitizer(cuda):
    cuda.configure(2, 2, 64, 30)
    ptr = torch.tensor([0, 13, 20])
    for kind in WEIGHTS:
        for replace in (False, True):
            options = {'replace': replace, 'ptr': ptr}
            options['cum_weight'] = weights_of(kind, ptr)
            args = 'sample_nodes', 20, 5, KEYS[:2], 3
            assert_same(cuda, *args, **options)
    id = torch.arange(20) % 6
    for is_sorted in (False, True):
        assert_same(cuda, 'unique_nodes', id, 6, is_sorted, ptr)


@pytest.mark.parametrize('bad', [[0, 3, 2], [1, 1, 2], [0, 1, 1], [-1, 1, 2]])
def test_pointers_of_batches_must_ascend(cuda, bad):
    ptr, keys = torch.tensor(bad), KEYS[:2]
    cum_weight = weights_of('positive', torch.tensor([0, 1, 2]))
    cuda.configure()
    for is_sorted in (False, True):
        with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to"):
            cuda.operator('unique_nodes')(
                torch.tensor([0, 1]), 2, is_sorted, ptr
            )
    for replace in (False, True):
        for cum in (None, cum_weight):
            with pytest.raises(RuntimeError, match="'ptr' must ascend from"):
                cuda.operator('sample_nodes')(
                    2, 1, keys, ptr=ptr, cum_weight=cum, replace=replace
                )


@pytest.mark.parametrize('bad', [-1, 9, 2**62])
def test_a_node_beyond_the_graph_ends_in_an_error(cuda, bad):
    id, ptr = torch.tensor([0, bad]), torch.tensor([0, 1, 2])
    cuda.configure()
    operator = cuda.operator('unique_nodes')
    for num_nodes in (9, 2**62):
        if bad < 0 or bad >= num_nodes:
            message = rf"'id' must be in \[0, {num_nodes}\) \(got {bad} at"
            with pytest.raises(RuntimeError, match=message):
                operator(id, num_nodes, ptr=ptr)


def test_a_draw_needs_a_tensor_of_its_device(emulated):
    """With none the dispatcher of torch takes the operator of the CPU."""
    with pytest.raises(RuntimeError, match="'device_of' must be given on"):
        emulated.operator('sample_nodes')(2, 2, KEYS)


def test_counts_that_do_not_fit_end_in_an_error(cuda):
    cum_weight = weights_of('positive', torch.tensor([0, 2]))
    sample = cuda.operator('sample_nodes')
    options = {'cum_weight': cum_weight}
    with pytest.raises(RuntimeError, match="'num_nodes' must not be neg"):
        sample(-1, 2, make_key(0), **options)
    with pytest.raises(RuntimeError, match=r"'k' must be in \[0, 2\^31\)"):
        sample(2, -1, make_key(0), **options)
    with pytest.raises(RuntimeError, match="'cum_weight' must have 4 elem"):
        sample(3, 1, make_key(0), **options)
    with pytest.raises(RuntimeError, match=r'less than 2\^63 for all bat'):
        cuda.operator('sample_nodes')(2**62, 2, KEYS, device_of=EMPTY)
    with pytest.raises(RuntimeError, match='are too many'):
        cuda.operator('sample_nodes')(
            2**60, 2**31 - 1, torch.cat([make_key(0)] * 2**10),
            ptr=torch.zeros(2**10 + 1, dtype=torch.int64), replace=True,
        )  # fmt: skip


@pytest.mark.parametrize('cum', [-1, 0, 2**62, -(2**63)])
def test_weights_that_are_no_sums_do_no_harm(cuda, cum):
    cum_weight = weights_of('some', PTR[:2])
    cum_weight[:130:3] = cum
    cuda.configure()
    for replace in (False, True):
        node, _ = cuda.operator('sample_nodes')(
            130, 40, make_key(0), cum_weight=cum_weight, replace=replace
        )
        assert ((node >= 0) & (node < 130)).all()


def test_no_nodes(cuda):
    cuda.configure()
    out = assert_same(
        cuda, 'unique_nodes', EMPTY, 5, ptr=torch.tensor([0, 0, 0])
    )
    assert out[2].tolist() == [0, 0, 0]
