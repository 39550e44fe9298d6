"""Inputs that are unusual but right."""

import pytest
import torch

from tests.ops.cases import OPTIONS, arguments, sample_checked
from tests.ops.compare import assert_equal_tensors, lists
from tests.ops.neighbors import sample_one
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import small_graph

NONE = torch.tensor([], dtype=torch.int64)


def strided(tensor):
    """The same numbers, every other one of a longer tensor."""
    out = torch.stack([tensor, tensor], dim=1)[:, 0]
    assert tensor.numel() < 2 or not out.is_contiguous()
    return out


def with_strides(given):
    return {
        name: strided(value) if isinstance(value, torch.Tensor) else value
        for name, value in given.items()
    }


@pytest.mark.parametrize('options', OPTIONS)
def test_strided_tensors_give_the_same_sample(options):
    graph, seeds = small_graph('random'), torch.tensor([5, 0, 39])
    given, _ = arguments(graph, seeds, **OPTIONS[options])
    key = make_key(1, 2, 3)
    want = sample_one(
        graph.indptr, graph.indices, seeds, [3, 2], key=key, **given
    )
    out = sample_one(
        strided(graph.indptr),
        strided(graph.indices),
        strided(seeds),
        (3, 2),
        key=key.repeat(1, 2)[:, ::1][:, :3],
        **with_strides(given),
    )
    assert_equal_tensors(out, want)


def test_strided_tensors_give_the_same_results():
    graph = small_graph('random')
    indptr, indices, nodes = graph.indptr, graph.indices, torch.arange(9)
    for function, args in (
        (ops.coo_to_csc, (indices, graph.col(), 40, 40)),
        (ops.cumulate_weights, (indptr, torch.rand(400))),
        (ops.induce_subgraph, (indptr, indices, 40, nodes, nodes)),
        (
            ops.induce_subgraph,
            (indptr, indices, 40, nodes, nodes, nodes % 2, nodes % 2),
        ),
        (ops.configuration_model, (indptr, 5)),
    ):
        others = [strided(a) if torch.is_tensor(a) else a for a in args]
        assert lists(function(*others)) == lists(function(*args))
    ops.formats.check_csc(strided(indptr), strided(indices), 40)


def test_narrow_tensors_give_the_same_sample():
    graph, seeds = small_graph('random'), torch.tensor([5, 0, 39])
    given, _ = arguments(graph, seeds, temporal=True)
    args = (graph.indptr, graph.indices)
    want = sample_one(*args, seeds, [4], key=make_key(0), **given)
    given['edge_time'] = given['edge_time'].int()
    given['seed_time'] = given['seed_time'].int()
    out = sample_one(*args, seeds.int(), [4], key=make_key(0), **given)
    assert_equal_tensors(out, want)
    # Pointers are widened where indices are wide.
    out = sample_one(
        graph.indptr.int(), graph.indices, seeds, [4], key=make_key(0), **given
    )
    assert_equal_tensors(out, want)


def test_arguments_are_left_as_they_were():
    graph, seeds = small_graph('random'), torch.tensor([5, 0, 39])
    given, _ = arguments(graph, seeds, weighted=True, temporal=True)
    tensors = [graph.indptr, graph.indices, seeds, *given.values()]
    tensors = [t for t in tensors if isinstance(t, torch.Tensor)]
    before = [t.clone() for t in tensors]
    sample_one(*tensors[:3], [3, 3], key=make_key(0), **given)
    assert_equal_tensors(tensors, before)


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('fanouts', [[], [0], [3, 2], [-1]])
def test_no_seeds_give_an_empty_sample(options, fanouts):
    for name in ('empty', 'isolated', 'random'):
        out = sample_checked(
            small_graph(name), NONE, fanouts, make_key(0), **OPTIONS[options]
        )
        assert out.node.numel() == out.row.numel() == 0
        assert out.num_nodes.tolist() == [0] * (len(fanouts) + 1)
        assert out.num_edges.tolist() == [0] * len(fanouts)


@pytest.mark.parametrize('options', OPTIONS)
def test_a_fan_out_of_zero_ends_the_walk(options):
    graph, seeds = small_graph('random'), torch.tensor([1, 2])
    out = sample_checked(
        graph, seeds, [2, 0, 2], make_key(0), **OPTIONS[options]
    )
    assert out.num_edges.tolist()[1:] == [0, 0]
    assert out.num_nodes.tolist()[2:] == [0, 0]


def test_windows_reach_to_the_ends_of_time():
    graph, least = small_graph('star'), -(2**63)
    time = torch.arange(9) * 10 - 40
    time[0] = least
    for seed_time, window, want in (
        (least, 0, [0]),
        (least, 2**63 - 1, [0]),
        (-1, 2**63 - 1, [0, 1, 2, 3]),
        (-2, 2**63 - 1, [0, 1, 2, 3]),
        (0, 2**63 - 1, [1, 2, 3, 4]),
        (2**63 - 1, 2**63 - 1, [4, 5, 6, 7, 8]),
        (20, 0, [6]),
        (25, 4, []),
        (25, 5, [6]),
    ):
        out = sample_one(
            graph.indptr,
            graph.indices,
            torch.tensor([0]),
            [-1],
            key=make_key(0),
            edge_time=time,
            seed_time=torch.tensor([seed_time]),
            time_window=window,
            disjoint=True,
        )
        assert out.edge.tolist() == want, (seed_time, window)


def test_columns_may_have_fewer_rows_than_nodes():
    # A graph without edges of its last nodes.
    out = sample_one(
        torch.tensor([0, 1, 1, 1]),
        torch.tensor([2]),
        torch.tensor([0, 1]),
        [3, 3],
        key=make_key(0),
    )
    assert out.node.tolist() == [0, 1, 2]


def test_seeds_of_any_64_bits_make_a_key():
    graph = small_graph('hub')
    samples = set()
    for seed in (0, -1, 1, 2**63 - 1, -(2**63), 2**64 - 2):
        out = sample_checked(graph, torch.tensor([0]), [4], make_key(seed))
        samples.add(tuple(out.edge.tolist()))
    assert len(samples) == 6
