"""Batches of links of ProgramSampler: their keys and excluded edges."""

import pytest
import torch
from torch_geometric.data import Data

from tests.samplers import graphs, programs
from tests.samplers.graphs import EMPTY, FOLLOWS, RATES, REV_RATES
from tests.samplers.oracle import assert_consistent, edge_lists
from torch_gsample import ProgramSampler
from torch_gsample.loader import LinkNeighborLoader


def test_links_draw_by_their_sources_destinations_and_times():
    """Where no loader numbers batches."""
    data = graphs.homogeneous(num_edges=900)
    sampler = ProgramSampler(data, programs.sage, [4], seed=0)

    def drawn(src, dst, time=None):
        time = None if time is None else [time]
        out = sampler.sample_from_edges(graphs.links([(src, dst)], time=time))
        return tuple(out.edge[out.node[out.col] == 9].tolist())

    assert drawn(9, 3) == drawn(9, 3)
    assert len({drawn(9, v) for v in range(3, 8)}) > 1
    assert len({drawn(u, 9) for u in range(3, 8)}) > 1
    assert len({drawn(9, 3, time) for time in range(5)}) > 1


#: Edges there and back: 0 - 1 - 2 - 3, with the edge 1 -> 2 twice.
PATH = torch.tensor([[0, 1, 1, 2, 2, 3, 1], [1, 0, 2, 1, 3, 2, 2]])


@pytest.mark.parametrize(
    ('exclude', 'gone'),
    [(False, []), (True, [2, 5, 6]), ('reverse', [2, 3, 4, 5, 6])],
)
def test_excluded_seed_edges_are_those_of_the_batch_alone(exclude, gone):
    """Of 1 -> 2 and 3 -> 2, with repeated nodes as seeds."""
    data = Data(edge_index=PATH, num_nodes=4)
    data.weight = torch.arange(1.0, 8.0)
    sampler = ProgramSampler(
        data,
        programs.sage,
        [-1, -1],
        weight_attr='weight',
        exclude_seed_edges=exclude,
    )
    out = sampler.sample_from_edges(graphs.links([(1, 2), (3, 2), (1, 2)]))
    assert_consistent(sampler, out, edge_lists(data))
    assert sorted(out.edge.tolist()) == sorted({*range(7)} - {*gone})
    weight = out.attributes.edge[None]['edge_weight']
    assert torch.equal(weight, data.weight[out.edge])
    assert sum(out.num_sampled_edges) == out.edge.numel()
    _, ends, *_ = out.metadata
    assert out.node[ends].tolist() == [[1, 3, 1], [2, 2, 2]]


def test_excluded_typed_edges_take_their_own_values_along():
    data = graphs.heterogeneous()
    for i, edge_type in enumerate((RATES, REV_RATES, FOLLOWS)):
        size = data[edge_type].num_edges
        data[edge_type].weight = torch.arange(size) + 1000.0 * i
    sampler = ProgramSampler(
        data,
        programs.typed_sage,
        graphs.each(data, [-1]),
        weight_attr='weight',
        exclude_seed_edges=True,
    )
    loader = LinkNeighborLoader(
        data, sampler=sampler, edge_label_index=RATES, batch_size=20
    )
    left = 0
    for batch in loader:
        for edge_type in (RATES, REV_RATES, FOLLOWS):
            store = batch[edge_type]
            assert torch.equal(store.edge_weight, store.weight)
        assert 'edge_weight' not in batch[EMPTY]
        assert not torch.isin(batch[RATES].e_id, batch[RATES].input_id).any()
        left += batch[RATES].num_edges
    assert left > 0


def test_typed_node_attributes_arrive_in_their_types():
    def program(A, seeds):
        users, items = torch.arange(12.0), torch.arange(15.0) + 100
        layers = [{t: m[:, seeds[t[2]]] for t, m in A.items()}]
        return layers, {'user': {'p': users}, 'item': {'p': items}}

    data = graphs.heterogeneous()
    loader = LinkNeighborLoader(
        data,
        sampler=ProgramSampler(data, program),
        edge_label_index=RATES,
        batch_size=20,
    )
    for batch in loader:
        assert torch.equal(batch['user'].p, batch['user'].n_id.float())
        assert torch.equal(batch['item'].p, batch['item'].n_id + 100.0)
