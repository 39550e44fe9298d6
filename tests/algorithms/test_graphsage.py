import torch

from tests.algorithms.graphs import assert_mean, features, runs, skewed_graph
from torch_gsample.algorithms import graphsage

SEEDS = torch.tensor([0, 3, 17, 30])


def test_layers_sample_neighbours_of_all_visited_nodes():
    A = skewed_graph()
    first, second = graphsage(A, SEEDS, [2, 3])
    assert first.col_ids.tolist() == SEEDS.tolist()
    met = set(SEEDS.tolist()) | set(first.edges()[0].tolist())
    assert set(second.col_ids.tolist()) == met
    assert torch.equal(
        second.degree(dim=0), A.degree(dim=0)[second.col_ids].clamp(max=3)
    )
    assert second.edge_id.unique().numel() == second.num_edges


def test_mean_of_a_sampled_column_is_unbiased():
    A = skewed_graph().with_value(None)
    x = features(A.num_rows)

    def mean():
        [S] = graphsage(A, SEEDS, [3])
        return S.div(S.sum(dim=0), dim=0).T @ x

    full = A.div(A.sum(dim=0), dim=0)[:, SEEDS].T @ x
    assert_mean(runs(mean, 1000), full)
