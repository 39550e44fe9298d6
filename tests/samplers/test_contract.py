"""PyG's contract of NeighborSampler, on homogeneous and typed graphs."""

import inspect

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric import sampler as pyg
from torch_geometric.data import Data, HeteroData

from tests.samplers import graphs
from tests.samplers.graphs import EMPTY, MARKS, RATES, REV_RATES
from tests.samplers.oracle import assert_valid, by_type, edge_lists
from torch_gsample import NeighborSampler


def test_arguments_of_pyg_keep_their_order_and_defaults():
    ours = list(inspect.signature(NeighborSampler).parameters.values())
    theirs = list(inspect.signature(pyg.NeighborSampler).parameters.values())
    for own, other in zip(ours, theirs, strict=False):
        assert (own.name, own.default) == (other.name, other.default)
    rest = ours[len(theirs) :]
    assert all(p.kind == p.KEYWORD_ONLY for p in rest)
    assert all(p.default is not p.empty for p in rest)


def test_it_is_a_pyg_sampler():
    sampler = NeighborSampler(graphs.homogeneous(), [2])
    assert isinstance(sampler, pyg.BaseSampler)
    assert sampler.data_type == pyg.base.DataType.homogeneous
    assert sampler.num_nodes == 30
    assert not sampler.is_hetero
    assert not sampler.is_temporal
    sampler = NeighborSampler(graphs.heterogeneous(), [2])
    assert sampler.data_type == pyg.base.DataType.heterogeneous
    assert sampler.num_nodes == graphs.HETERO_SIZES
    assert sampler.is_hetero


def test_output_follows_the_documentation_of_pyg():
    # 1 -> 0, 2 -> 0, 3 -> 2, 0 -> 3; node 4 is alone.
    data = Data(
        edge_index=torch.tensor([[3, 1, 2, 0], [2, 0, 0, 3]]), num_nodes=5
    )
    sampler = NeighborSampler(data, [-1, -1, -1])
    out = sampler.sample_from_nodes(graphs.nodes([0, 4], input_id=[7, 8]))
    assert isinstance(out, pyg.SamplerOutput)
    assert out.node.tolist() == [0, 4, 1, 2, 3]
    assert out.row.tolist() == [2, 3, 4, 0]
    assert out.col.tolist() == [0, 0, 3, 4]
    assert sampler.edge_permutation[out.edge].tolist() == [1, 2, 0, 3]
    assert out.batch is None
    assert out.orig_row is None
    assert out.num_sampled_nodes == [2, 2, 1, 0]
    assert out.num_sampled_edges == [2, 1, 1]
    assert out.metadata[0].tolist() == [7, 8]
    assert out.metadata[1] is None
    for value in (out.node, out.row, out.col, out.edge):
        assert value.dtype == torch.int64


def test_a_typed_output_has_every_type():
    data = graphs.heterogeneous()
    sampler = NeighborSampler(data, [3, 2])
    out = sampler.sample_from_nodes(graphs.nodes([2, 0], 'item'))
    assert isinstance(out, pyg.HeteroSamplerOutput)
    assert list(out.node) == data.node_types
    assert list(out.row) == list(out.col) == list(out.edge) == data.edge_types
    assert list(out.num_sampled_edges) == data.edge_types
    assert out.node['lone'].numel() == 0
    assert out.row[EMPTY].numel() == 0
    assert out.num_sampled_nodes['lone'] == [0, 0, 0]
    assert out.num_sampled_nodes['item'][0] == 2
    # Tags are sources only: they are sampled and draw nothing.
    assert out.num_sampled_edges[MARKS][0] > 0
    assert out.num_sampled_nodes['tag'][1] > 0
    assert out.metadata == (None, None)


@settings(deadline=None, max_examples=60)
@given(
    seeds=st.lists(st.integers(0, 29), max_size=8),
    fanouts=st.lists(st.integers(-1, 6), min_size=1, max_size=3),
    replace=st.booleans(),
    disjoint=st.booleans(),
    backward=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_sample_is_valid(
    seeds, fanouts, replace, disjoint, backward, seed
):
    data = graphs.homogeneous()
    sampler = NeighborSampler(
        data,
        fanouts,
        replace=replace,
        disjoint=disjoint,
        sample_direction='backward' if backward else 'forward',
        seed=seed,
    )
    out = sampler.sample_from_nodes(
        graphs.nodes(torch.tensor(seeds, dtype=torch.long))
    )
    assert (out.batch is not None) == disjoint
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {None: seeds},
        {None: fanouts},
        replace=replace,
        backward=backward,
    )


@settings(deadline=None, max_examples=60)
@given(
    node_type=st.sampled_from(['user', 'item', 'tag', 'lone']),
    seeds=st.lists(st.integers(0, 2), max_size=4),
    fanouts=st.lists(
        st.lists(st.integers(-1, 4), min_size=2, max_size=2),
        min_size=5,
        max_size=5,
    ),
    replace=st.booleans(),
    disjoint=st.booleans(),
    backward=st.booleans(),
)
def test_any_typed_sample_is_valid(
    node_type, seeds, fanouts, replace, disjoint, backward
):
    data = graphs.heterogeneous()
    fanouts = dict(zip(data.edge_types, fanouts, strict=True))
    sampler = NeighborSampler(
        data,
        fanouts,
        replace=replace,
        disjoint=disjoint,
        sample_direction='backward' if backward else 'forward',
        seed=1,
    )
    out = sampler.sample_from_nodes(
        graphs.nodes(torch.tensor(seeds, dtype=torch.long), node_type)
    )
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {node_type: seeds},
        fanouts,
        replace=replace,
        backward=backward,
    )


def test_a_graph_without_edges_gives_its_seeds():
    sampler = NeighborSampler(Data(num_nodes=5), [])
    out = sampler.sample_from_nodes(graphs.nodes([4, 2]))
    assert out.node.tolist() == [4, 2]
    assert out.num_sampled_nodes == [2]
    assert out.num_sampled_edges == []


def test_no_seeds_give_empty_samples():
    none = graphs.nodes(torch.empty(0, dtype=torch.long))
    empty = torch.empty(2, 0, dtype=torch.long)
    for data in (
        graphs.homogeneous(),
        Data(edge_index=empty, num_nodes=0),
        Data(edge_index=empty, num_nodes=3),
    ):
        out = NeighborSampler(data, [2, 2]).sample_from_nodes(none)
        assert out.node.numel() == out.row.numel() == out.edge.numel() == 0
        assert out.num_sampled_nodes == [0, 0, 0]
        assert out.num_sampled_edges == [0, 0]


def test_a_graph_without_edge_types_gives_its_seeds():
    data = HeteroData(paper={'num_nodes': 4})
    sampler = NeighborSampler(data, [])
    assert sampler.is_hetero
    out = sampler.sample_from_nodes(graphs.nodes([3, 1], 'paper'))
    assert out.node['paper'].tolist() == [3, 1]
    assert out.row == {}


def test_fan_out_zero_draws_nothing_and_goes_on():
    data = graphs.heterogeneous()
    fanouts = graphs.each(data, [2, 2]) | {RATES: [0, 2]}
    sampler = NeighborSampler(data, fanouts)
    out = sampler.sample_from_nodes(graphs.nodes([1, 2, 3], 'item'))
    assert out.num_sampled_edges[RATES][0] == 0
    assert out.num_sampled_edges[MARKS][0] > 0


def test_trees_do_not_share_nodes():
    # Every node is drawn by both seeds; each tree has its own copy.
    data = Data(edge_index=torch.tensor([[2, 2, 3], [0, 1, 2]]), num_nodes=4)
    sampler = NeighborSampler(data, [-1, -1], disjoint=True)
    out = sampler.sample_from_nodes(graphs.nodes([0, 1]))
    assert out.node.tolist() == [0, 1, 2, 2, 3, 3]
    assert out.batch.tolist() == [0, 1, 0, 1, 0, 1]
    sampler.disjoint = False
    assert sampler.sample_from_nodes(graphs.nodes([0, 1])).node.numel() == 4


def test_typed_trees_are_numbered_by_seed():
    data = graphs.heterogeneous()
    sampler = NeighborSampler(data, [2, 2], disjoint=True)
    out = sampler.sample_from_nodes(graphs.nodes([5, 1, 5], 'item'))
    fields = by_type(out)
    assert fields['batch']['item'][:3] == [0, 1, 2]
    for t, ids in fields['node'].items():
        assert len(fields['batch'][t]) == len(ids)
    row, col = out.row[REV_RATES], out.col[REV_RATES]
    assert torch.equal(out.batch['item'][row], out.batch['user'][col])


def test_unknown_arguments_of_pygs_calls_are_ignored():
    sampler = NeighborSampler(graphs.homogeneous(), [1])
    sampler.sample_from_nodes(graphs.nodes([1]), some_future_option=1)
    sampler.sample_from_edges(graphs.links([(1, 2)]), some_future_option=1)


def test_repr_has_fan_outs_and_seed():
    sampler = NeighborSampler(graphs.homogeneous(), [1, 2], seed=3)
    assert repr(sampler) == 'NeighborSampler([1, 2], seed=3)'


def test_metadata_holds_ids_and_times_of_the_seeds():
    data = graphs.homogeneous(time=torch.arange(30))
    sampler = NeighborSampler(data, [2], time_attr='time')
    inputs = graphs.nodes([3, 9], time=[20, 25], input_id=[1, 0])
    out = sampler.sample_from_nodes(inputs)
    assert [m.tolist() for m in out.metadata] == [[1, 0], [20, 25]]
