import pytest
import torch

from tests.algorithms.graphs import features, skewed_graph
from torch_gsample.algorithms import kgcn

ITEMS = torch.tensor([0, 3, 3])
A = skewed_graph()
USER, RELATION = features(3, 4), features(5, 4)
TYPE = torch.arange(A.num_edges) % 5


@pytest.mark.parametrize('fanouts', [[4, 3], [50, 20]])
def test_receptive_fields_have_a_fixed_size_and_are_trees(fanouts):
    layers = kgcn(A, ITEMS, fanouts, USER, RELATION, TYPE)
    for S, k in zip(layers, fanouts, strict=True):
        assert (S.degree(dim=0) == k).all()
    assert torch.equal(layers[1].col_ids, layers[0].edges()[0])


def test_weights_are_the_softmax_of_the_users_interest_in_relations():
    layers = kgcn(A, ITEMS, [4, 3], USER, RELATION, TYPE)
    user = USER
    for S in layers:
        col = S.coo()[1]
        for v in range(S.num_cols):
            edges = S.edge_id[col == v]
            score = RELATION[TYPE[edges]] @ user[v]
            torch.testing.assert_close(S.values()[col == v], score.softmax(0))
        user = user[col]


def test_users_of_one_item_share_neighbours_not_weights():
    [S] = kgcn(A, ITEMS, [4], USER, RELATION, TYPE)
    edges = S.edge_id.view(3, 4)
    assert torch.equal(edges[1], edges[2])
    values = S.values().view(3, 4)
    assert not torch.allclose(values[1], values[2])
