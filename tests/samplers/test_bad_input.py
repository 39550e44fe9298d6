"""Bad input of samplers: errors say who, what, the rule and the value."""

import pytest
import torch
from torch_geometric.data import Data, Dataset, HeteroData
from torch_geometric.sampler import NegativeSampling

from tests.samplers import graphs
from tests.samplers.graphs import RATES
from torch_gsample import KeyedSampler, NeighborSampler

DATA = graphs.homogeneous()


@pytest.mark.parametrize(
    ('options', 'error', 'text'),
    [
        (
            {'sample_direction': 'sideways'},
            ValueError,
            r"NeighborSampler: 'sample_direction' must be one of .*'sideways'",
        ),
        (
            {'temporal_strategy': 'first'},
            ValueError,
            r"NeighborSampler: 'temporal_strategy' must be one of .*'first'",
        ),
        (
            {'exclude_seed_edges': 'both'},
            ValueError,
            r"NeighborSampler: 'exclude_seed_edges' must be one of .*'both'",
        ),
        (
            {'rng_scope': 'run'},
            ValueError,
            r"NeighborSampler: 'rng_scope' must be 'batch' or 'epoch'.*'run'",
        ),
        ({'subgraph_type': 'x'}, ValueError, "'subgraph_type' must be one of"),
        (
            {'time_window': 3},
            ValueError,
            r"NeighborSampler: 'time_window' needs 'time_attr' \(got 3\)",
        ),
        (
            {'time_window': -1, 'time_attr': 'x'},
            ValueError,
            r"NeighborSampler: 'time_window' must not be negative \(got -1\)",
        ),
        (
            {'time_window': 1.5, 'time_attr': 'x'},
            TypeError,
            r"NeighborSampler: 'time_window' must be an integer \(got 1.5\)",
        ),
        (
            {'num_threads': -2},
            ValueError,
            r"NeighborSampler: 'num_threads' must not be negative \(got -2\)",
        ),
        ({'seed': 1.5}, TypeError, r"'seed' must be an integer \(got 1.5\)"),
        ({'seed': 'x'}, TypeError, r"'seed' must be an integer \(got 'x'\)"),
        ({'seed': 2**64}, ValueError, r"'seed' must fit in 64 bits"),
        (
            {'index_dtype': torch.int16},
            TypeError,
            r"'index_dtype' must be torch.int32 or torch.int64.*int16",
        ),
    ],
    ids=str,
)
def test_bad_options_are_named(options, error, text):
    with pytest.raises(error, match=text):
        NeighborSampler(DATA, [1], **options)


@pytest.mark.parametrize('data', [None, 3, torch.ones(2, 2), (DATA, 3)])
def test_rejects_data_that_is_not_a_graph(data):
    text = "NeighborSampler: 'data' must be a Data, a Het"
    with pytest.raises(ValueError, match=text):
        NeighborSampler(data, [1])


def test_the_first_graph_of_a_dataset_is_proposed():
    class One(Dataset):
        def len(self):
            return 1

    with pytest.raises(ValueError, match=r'One, whose first graph is data.0'):
        NeighborSampler(One(), [1])


@pytest.mark.parametrize(
    ('edge_index', 'error', 'text'),
    [
        ([[0, 5], [1, 1]], IndexError, r"r: 'edge_index\[0\]' of .*got 5"),
        ([[0, 1], [1, -1]], IndexError, r"r: 'edge_index\[1\]' of .*got -1"),
        (torch.ones(2, 2), TypeError, 'must be int32 or int64.*float32'),
        (
            torch.ones(2, 2).to_sparse(),
            ValueError,
            "'edge_index' of the graph must be dense",
        ),
    ],
)
def test_bad_edges_are_named(edge_index, error, text):
    data = Data(edge_index=torch.as_tensor(edge_index), num_nodes=5)
    with pytest.raises(error, match=text):
        NeighborSampler(data, [1])


@pytest.mark.parametrize(
    ('indptr', 'indices', 'error', 'text'),
    [
        ([0, 2, 1, 3], [0, 1, 2], ValueError, r"'indptr' of .* not descend"),
        ([1, 2, 3, 3], [0, 1, 2], ValueError, r'must start at 0 \(got 1\)'),
        ([0, 1, 1, 2], [0, 1, 2], ValueError, r'must end at the number of'),
        ([0, 1, 2, 3], [0, 1, 3], IndexError, r'must be in \[0, 3\).*got 3'),
        ([0, 1, 2, 3], [0, -1, 2], IndexError, r'must be in .*got -1'),
    ],
)
def test_malformed_sparse_tensors_are_refused(indptr, indices, error, text):
    adj_t = torch.sparse_csr_tensor(
        torch.tensor(indptr),
        torch.tensor(indices),
        torch.ones(3),
        size=(3, 3),
        check_invariants=False,
    )
    with pytest.raises(error, match=text):
        NeighborSampler(Data(adj_t=adj_t), [1])


@pytest.mark.parametrize('layout', ['dense', 'coo'])
def test_rejects_other_adjacencies_and_names_an_alternative(layout):
    adj = torch.eye(3) if layout == 'dense' else torch.eye(3).to_sparse()
    with pytest.raises(ValueError, match=r"'adj_t' must be .*sparse_csr"):
        NeighborSampler(Data(adj_t=adj), [1])


def test_an_unsorted_edge_index_is_not_sorted():
    with pytest.raises(ValueError, match=r"'is_sorted', edges must be sorted"):
        NeighborSampler(DATA, [1], is_sorted=True)


def test_stores_that_claim_to_be_sorted_are_checked():
    features, graph = graphs.as_stores(DATA)
    row, col = DATA.edge_index
    graph.store.clear()
    graph.put_edge_index(
        (row, col), edge_type=None, layout='coo', is_sorted=True, size=(30, 30)
    )
    with pytest.raises(ValueError, match=r"'is_sorted', edges must be sorted"):
        NeighborSampler((features, graph), [1])


@pytest.mark.parametrize('temporal', [False, True])
@pytest.mark.parametrize('seed', [-1, 30, 2**40])
def test_seeds_outside_the_graph_are_named(seed, temporal):
    data = graphs.homogeneous(time=torch.arange(30))
    sampler = NeighborSampler(
        data, [1], time_attr='time' if temporal else None
    )
    text = rf"'seeds' must be in \[0, 30\) \(got {seed}( at position 1)?\)"
    with pytest.raises(IndexError, match=text):
        sampler.sample_from_nodes(graphs.nodes([3, seed]))


@pytest.mark.parametrize('mode', [None, 'binary', 'triplet'])
@pytest.mark.parametrize('true_negatives', [False, True])
@pytest.mark.parametrize('pair', [(-1, 0), (0, 30), (30, 0), (0, -1)])
def test_seed_edges_outside_the_graph_are_named(pair, true_negatives, mode):
    sampler = NeighborSampler(DATA, [1], true_negatives=true_negatives)
    sampling = None if mode is None else NegativeSampling(mode)
    with pytest.raises(IndexError, match=r"'edge_label_index' must be in .*"):
        sampler.sample_from_edges(graphs.links([pair]), sampling)


@pytest.mark.parametrize(
    ('seeds', 'error', 'text'),
    [
        (torch.ones(2), TypeError, "'seeds' must be int32 or int64"),
        (torch.ones(2, dtype=torch.bool), TypeError, "'seeds' must be int32"),
        (torch.ones(1, 2).long(), ValueError, "'seeds' must be a vector"),
        (torch.tensor(2), ValueError, "'seeds' must be a vector"),
    ],
)
def test_seeds_that_are_no_ids_are_named(seeds, error, text):
    with pytest.raises(error, match=text):
        NeighborSampler(DATA, [1]).sample_from_nodes(graphs.nodes(seeds))


@pytest.mark.parametrize(
    ('data', 'node_type'),
    [(DATA, 'paper'), (graphs.heterogeneous(), None)],
    ids=['homogeneous', 'typed'],
)
def test_unknown_node_types_are_named(data, node_type):
    sampler = NeighborSampler(data, [1])
    with pytest.raises(ValueError, match=rf'no node type {node_type!r} .*has'):
        sampler.sample_from_nodes(graphs.nodes([1], node_type))


def test_unknown_ends_of_seed_edges_are_named():
    sampler = NeighborSampler(graphs.heterogeneous(), [1])
    for edge_type in (('user', 'to', 'x'), ('x', 'to', 'item')):
        inputs = graphs.links([(1, 1)], edge_type)
        with pytest.raises(ValueError, match=r"no node type 'x'"):
            sampler.sample_from_edges(inputs, NegativeSampling('binary'))


@pytest.mark.parametrize('count', [1, 3])
def test_seed_times_of_a_wrong_length_are_named(count):
    data = graphs.homogeneous(time=torch.arange(30))
    sampler = NeighborSampler(data, [1], time_attr='time')
    inputs = graphs.nodes([4, 5], time=[9] * count)
    with pytest.raises(
        ValueError, match=rf"'seed_time' must have 2 .*{count}"
    ):
        sampler.sample_from_nodes(inputs)


def test_node_types_that_are_missing_are_named():
    data = graphs.heterogeneous()
    del data['tag']
    with pytest.raises(ValueError, match=r"nodes of type 'tag', which"):
        NeighborSampler(data, [1])


@pytest.mark.filterwarnings('ignore:Unable to accurately infer')
def test_unknown_sizes_are_named():
    data = HeteroData()
    data['a', 'to', 'b'].edge_index = torch.tensor([[0], [0]])
    data['b'].x = torch.ones(1)
    data['a'].some = 'text'
    with pytest.raises(ValueError, match=r"number of nodes of 'a' is unknown"):
        NeighborSampler(data, [1])


@pytest.mark.parametrize('epoch', [-1, 2**32])
def test_epochs_outside_their_range_are_named(epoch):
    with pytest.raises(ValueError, match=rf"'epoch' must be in .*got {epoch}"):
        NeighborSampler(DATA, [1]).set_epoch(epoch)


def test_a_sampler_of_ones_own_is_named_in_errors():
    class Mine(KeyedSampler):
        def sample_from_nodes(self, inputs, **kwargs):
            raise NotImplementedError

        def sample_from_edges(self, inputs, neg_sampling=None):
            raise NotImplementedError

    assert Mine(seed=3).batch_key().tolist()[0][0] == 3
    with pytest.raises(ValueError, match=r"Mine: 'rng_scope' must be"):
        Mine(rng_scope='x')


def test_weights_and_times_need_edges_of_their_own_type():
    data = graphs.heterogeneous()
    data[RATES].weight = torch.ones(60)
    with pytest.raises(ValueError, match="'w' is not an edge-level attribute"):
        NeighborSampler(data, [1], weight_attr='w')
