"""hetero_neighbor_sample_padded against its reference."""

import pytest
import torch

from tests.ops import test_hetero_neighbor_sample as hetero
from tests.ops.cases import OPTIONS
from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import INDEX_DTYPES, to_dtypes

SEEDS = [torch.tensor(seeds, dtype=torch.int64) for seeds in hetero.SEEDS]
NONE = torch.tensor([], dtype=torch.int64)


@pytest.mark.parametrize('options', OPTIONS)
def test_samples_equal_the_reference(options):
    for call, fanouts in enumerate(hetero.FANOUTS):
        graphs = hetero.some_graphs()
        graphs = [to_dtypes(g, INDEX_DTYPES[call % 3]) for g in graphs]
        args = graphs, SEEDS, fanouts, make_key(call, 1, 7)
        small = hetero.sample(*args, **OPTIONS[options])
        edges = [row.numel() + r % 4 for r, row in enumerate(small.row)]
        before, given = hetero.operator_arguments(
            *args[:3], **OPTIONS[options], return_edge_id=call != 2
        )
        out = assert_equals_reference(
            'hetero_neighbor_sample_padded', *before, args[3], edges, **given
        )
        front = ops.hetero_neighbor_sample_padded(
            *[before[0], before[1], hetero.RELATIONS, hetero.NUM_NODES],
            *[SEEDS, fanouts],
            key=args[3],
            max_edges=edges,
            **hetero.arguments(graphs, SEEDS, **OPTIONS[options]),
            return_edge_id=call != 2,
        )
        assert_equal_tensors(front.check(), out)
        for node, want in zip(front.node, small.node, strict=True):
            assert torch.equal(node[: len(want)], want)
            assert (node[len(want) :] == -1).all()


def test_graphs_without_relations_or_types():
    for sizes, seeds in (([], []), ([9, 3], [SEEDS[1] * 0, NONE])):
        out = ops.hetero_neighbor_sample_padded(
            *[[], [], [], sizes, seeds, []], key=make_key(0), max_edges=[]
        )
        assert out.row == out.edge == []
        assert_equal_tensors(out.node, seeds)
        assert out.num_nodes.tolist() == [[len(s)] for s in seeds]
        assert out.num_edges.shape == (0, 0)


@pytest.mark.parametrize(
    ('disjoint', 'sizes'), [(False, [3, 1, 2]), (True, [10, 3, 2])]
)
def test_there_are_places_for_all_nodes_that_edges_may_meet(disjoint, sizes):
    """The second type has no node, but a place for an edge at fault."""
    none = torch.zeros(3, dtype=torch.int64), NONE
    out = ops.hetero_neighbor_sample_padded(
        *[[none[0]] * 3, [none[1]] * 3, [(0, 0), (1, 0), (0, 0)], [2, 0, 9]],
        *[[torch.tensor([1]), NONE, torch.tensor([8, 7])], [[1, 1]] * 3],
        key=make_key(0),
        max_edges=[5, 3, 4],
        disjoint=disjoint,
    )
    assert [len(node) for node in out.node] == sizes
    assert [len(batch) for batch in out.batch] == [n * disjoint for n in sizes]
    assert [len(row) for row in out.row] == [5, 3, 4]


def padded(fault, max_edges=(2, 0)):
    """A sample of the CPU, with the fault of a GPU."""
    graph = torch.tensor([0, 1]), torch.tensor([0])
    out = ops.hetero_neighbor_sample_padded(
        *[[graph[0]] * 2, [graph[1]] * 2, [(0, 0), (0, 1)], [1, 1]],
        *[[torch.tensor([0]), NONE], [[1], [1]]],
        key=make_key(0),
        max_edges=max_edges,
    )
    return out._replace(fault=torch.tensor(fault))


def test_faults_of_a_gpu_are_errors_when_they_are_asked_for():
    assert padded([0, 0, 0, 0]).check().num_edges.tolist() == [[1], [0]]
    with pytest.raises(
        IndexError, match=r'graph \(got 7 at position 2 of node type 1\)'
    ):
        padded([1, 2, 7, 1]).check()
    for fault, message in (
        ([2, 3, 0, 1], "'indptr' must ascend .* column 3 of relation 1"),
        ([3, 4, 0, 0], "'indices' must be nodes .* edge 4 of relation 0"),
        ([4, 1, 9, 1], "than 'max_edges' .at least 9 of relation 1"),
    ):
        with pytest.raises(RuntimeError, match=message):
            padded(fault).check()


def test_each_relation_has_its_own_limit():
    with pytest.raises(RuntimeError, match=r'= 0 .*least 1\) of relation 0'):
        padded([0, 0, 0, 0], max_edges=(0, 9))
