"""neighbor_sample_padded against its reference, and what it finds at fault."""

import pytest
import torch

from tests.ops.cases import OPTIONS, arguments, some_seeds
from tests.ops.compare import assert_equals_reference
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import small_graph


@pytest.mark.parametrize('options', OPTIONS)
def test_samples_equal_the_reference(options):
    for name in ('random', 'empty'):
        graph = small_graph(name)
        seeds = some_seeds(graph)
        given, _ = arguments(graph, seeds, **OPTIONS[options])
        for fanouts, max_edges in (([], 0), ([3, 2], 40), ([0], 7)):
            assert_equals_reference(
                'neighbor_sample_padded',
                graph.indptr,
                graph.indices,
                seeds,
                fanouts,
                operator=ops.neighbor_sample_padded,
                key=make_key(1),
                max_edges=max_edges,
                return_edge_id=max_edges != 7,
                **given,
            )


def padded(fault, **options):
    """A sample of the CPU, with the fault of a GPU."""
    out = ops.neighbor_sample_padded(
        torch.tensor([0, 1]),
        torch.tensor([0]),
        torch.tensor([0]),
        [1],
        key=make_key(0),
        max_edges=2,
    )
    return out._replace(fault=torch.tensor(fault))


def test_faults_of_a_gpu_are_errors_when_they_are_asked_for():
    assert padded([0, 0, 0]).check().num_edges.tolist() == [1]
    with pytest.raises(IndexError, match=r'graph \(got 7 at position 2\)'):
        padded([1, 2, 7]).check()
    for fault, message in (
        ([2, 3, 0], "'indptr' must ascend .* column 3"),
        ([3, 4, 0], "'indices' must be nodes .* edge 4"),
        ([4, 1, 9], "more edges than 'max_edges' .at least 9"),
    ):
        with pytest.raises(RuntimeError, match=message):
            padded(fault).check()
