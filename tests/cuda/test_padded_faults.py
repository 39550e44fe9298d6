"""Padded samples of the (emulated) GPU that end in a fault."""

import pytest
import torch

from tests.cuda.graphs import SHAPES
from tests.ops import typed as types
from tests.ops.neighbors import NONE, operator_arguments
from torch_gsample.ops import Sample
from torch_gsample.rng import make_key

ON_CPU = torch.ops.gsample.sample_neighbors


def faulty(cuda, seeds=(0, 1), indptr=(0, 2, 4), indices=(0, 1, 1, 0)):
    """Two relations into type 0; the argument is the second one."""
    cuda.configure()
    good = torch.tensor([0, 1, 2]), torch.tensor([1, 2])
    graph = [*good, torch.tensor(indptr), torch.tensor(indices)]
    out = cuda.operator('sample_neighbors')(
        *[graph, [1, 0, 0, 0], [2, 3]],
        *[[torch.tensor(seeds), torch.tensor([2])], [-1] * 4],
        make_key(2, 1, 3),
        max_edges=[3, 9],
    )
    return checked(Sample(*out, 2, 2, None))


def checked(out):
    """A sample, empty after a fault."""
    if int(out.counts[-4]) != 0:
        assert {*out.row.tolist(), *out.col.tolist()} <= {-1}
        assert {*out.edge.tolist(), *out.node.tolist()} <= {-1}
        assert int(out.counts[:-4].sum()) == 0
    return out


@pytest.mark.sanitize
def test_faults_are_noted_and_the_sample_is_empty(cuda):
    faulty(cuda).check()
    with pytest.raises(IndexError, match='2 at position 1 of node type 0'):
        faulty(cuda, seeds=(0, 2)).check()
    with pytest.raises(RuntimeError, match=r"'indptr' must .* relation 1"):
        faulty(cuda, indptr=(0, 5, 4)).check()
    with pytest.raises(RuntimeError, match=r"'indices' must .* relation 1"):
        faulty(cuda, indices=(0, 1, 1, 2)).check()


@pytest.mark.sanitize
def test_an_edge_from_a_type_without_nodes_has_a_slot(cuda):
    cuda.configure()
    graph = [torch.tensor([0, 1]), torch.tensor([0])]
    out = cuda.operator('sample_neighbors')(
        *[graph, [1, 0], [1, 0], [torch.tensor([0]), NONE], [1]],
        make_key(2),
        max_edges=[9],
    )
    with pytest.raises(RuntimeError, match='edge 0 of relation 0'):
        checked(Sample(*out, 2, 1, None)).check()
    assert len(out[2]) == 2  # the seed, and the slot


@pytest.mark.sanitize
@pytest.mark.parametrize('relation', [0, 1, 2, 3, 5])
def test_a_relation_takes_no_room_of_others(cuda, relation):
    """One edge is too many, whatever the others have left."""
    cuda.configure(relation, *SHAPES[relation % len(SHAPES)])
    seeds = types.some_seeds()
    graph, _, _ = types.graph_and_options(types.some_graphs(), seeds)
    args = operator_arguments(graph, seeds, [2, 3] * 6, make_key(2, 1, 3))
    counts = ON_CPU(*args)[5][len(seeds) * 3 :]
    edges = counts.view(6, 2).sum(1).tolist()
    for more in (0, 50):
        room = [n + more for n in edges]
        room[relation] = edges[relation] - 1
        out = cuda.operator('sample_neighbors')(*args[:-1], room)
        said = f'at least {edges[relation]} of relation {relation}'
        with pytest.raises(RuntimeError, match=said):
            checked(Sample(*out, len(seeds), 6, None)).check()
