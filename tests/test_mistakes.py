"""Mistakes of new users get the house's message where they are made.

Each line is one call: a message must name the callable, and the argument or
the rule, whatever torch, PyG or Python would have said.
"""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToUndirected  # noqa: F401

import torch_gsample as gs
from torch_gsample import relational, spark  # noqa: F401

EDGES = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
data = Data(edge_index=EDGES, x=torch.randn(5, 2), num_nodes=5)
data.weight = torch.ones(5)
data.time = torch.arange(5)
hetero = HeteroData()
hetero['paper'].x = torch.randn(5, 2)
hetero['author'].x = torch.randn(3, 2)
hetero['author', 'writes', 'paper'].edge_index = EDGES[:, :3] % 3
hetero['paper', 'cites', 'paper'].edge_index = EDGES
A = gs.SparseSample.from_edge_index(EDGES, num_nodes=5)
seeds = torch.tensor([0, 1])
floats = torch.tensor([0.0, 1.0])
key = gs.rng.make_key(0, 0, 0)
label = EDGES[:, :2]
weighted = hetero.clone()
weighted['paper', 'cites', 'paper'].w = torch.ones(3)


def having(**attributes):
    return Data(edge_index=EDGES, num_nodes=5, **attributes)


def program(A, seeds):
    return A[:, seeds].individual_sample(2)


MISTAKES = """
# fan-outs
NeighborLoader(data)
NeighborLoader(data, 10)
NeighborLoader(data, [])
NeighborLoader(data, [0.5])
NeighborLoader(data, ['10'])
NeighborLoader(data, [-2])
NeighborLoader(data, [None])
NeighborLoader(data, '10,5')
NeighborLoader(data, [[2]])
NeighborLoader(data, torch.tensor([2.5]))
NeighborLoader(data, {'to': [2]})
NeighborLoader(hetero, {('paper', 'cites'): [2]}, input_nodes='paper')
NeighborLoader(hetero, {('paper', 'to', 'paper'): [2]}, input_nodes='paper')
NeighborLoader(data, [True])
NeighborLoader(data, fanouts=[2])
NeighborLoader(hetero, {('author', 'writes', 'paper'): [2]}, \
input_nodes='paper')
NeighborLoader(hetero, {('author', 'writes', 'paper'): [2], \
('paper', 'cites', 'paper'): [2, 2]}, input_nodes='paper')
# graphs
NeighborLoader(None, [2])
NeighborLoader([data], [2])
NeighborLoader([data, data], [2])
NeighborLoader(Data(), [2])
NeighborLoader(data, [2], is_sorted=True)
NeighborLoader(EDGES, [2])
NeighborLoader('data.pt', [2])
NeighborLoader(Data(x=torch.ones(3, 1)), [2])
NeighborLoader(Data(edge_index=EDGES.float(), num_nodes=5), [2])
NeighborLoader(Data(edge_index=EDGES[0], num_nodes=5), [2])
NeighborLoader(Data(edge_index=EDGES.t(), num_nodes=5), [2])
NeighborLoader(Data(edge_index=EDGES, num_nodes=3), [2])
NeighborLoader(Data(edge_index=-EDGES, num_nodes=5), [2])
NeighborLoader(HeteroData(), [2], input_nodes='paper')
NeighborLoader(Data(edge_index=EDGES.tolist(), num_nodes=5), [2])
# seeds
NeighborLoader(data, [2], input_nodes='paper')
NeighborLoader(data, [2], input_nodes=torch.tensor([0, 9]))
NeighborLoader(data, [2], input_nodes=torch.tensor([-1]))
NeighborLoader(data, [2], input_nodes=floats)
NeighborLoader(data, [2], input_nodes=torch.ones(4, dtype=torch.bool))
NeighborLoader(data, [2], input_nodes=torch.zeros(2, 2, dtype=torch.long))
NeighborLoader(data, [2], input_nodes=[0, 9])
NeighborLoader(data, [2], input_nodes=3.5)
NeighborLoader(hetero, [2])
NeighborLoader(hetero, [2], input_nodes='venue')
NeighborLoader(hetero, [2], input_nodes=seeds)
NeighborLoader(hetero, [2], input_nodes=('venue', seeds))
NeighborLoader(hetero, [2], input_nodes=('author', torch.tensor([4])))
NeighborLoader(hetero, [2], input_nodes=('author', seeds, seeds))
NeighborLoader(data, [2], input_time=torch.tensor([0.5]), time_attr='time')
NeighborLoader(data, [2], input_time=seeds)
NeighborLoader(data, [2], input_time=seeds[:1], time_attr='time')
# batches
NeighborLoader(data, [2], batch_size=0)
NeighborLoader(data, [2], batch_size=-1)
NeighborLoader(data, [2], batch_size=2.0)
NeighborLoader(data, [2], batch_size='2')
NeighborLoader(data, [2], batch_size=None)
NeighborLoader(data, [2], shuffle='yes')
NeighborLoader(data, [2], drop_last='no')
NeighborLoader(data, [2], batch_siz=2)
NeighborLoader(data, [2], num_worker=2)
NeighborLoader(data, num_neighbours=[2])
NeighborLoader(data, [2], num_workers=-1)
NeighborLoader(data, [2], num_workers=1.5)
NeighborLoader(data, [2], prefetch=-1)
NeighborLoader(data, [2], prefetch='2')
NeighborLoader(data, [2], seed='12')
NeighborLoader(data, [2], seed=1.5)
NeighborLoader(data, [2], seed=True)
NeighborLoader(data, [2], seed=2**70)
NeighborLoader(data, [2], rank=1)
NeighborLoader(data, [2], rank=2, world_size=2, seed=0)
NeighborLoader(data, [2], rank=0, world_size=0, seed=0)
NeighborLoader(data, [2], rank=0, world_size=2)
NeighborLoader(data, [2], device='gpu')
NeighborLoader(data, [2], device=3.5)
NeighborLoader(data, [2], transform='normalize')
NeighborLoader(data, [2], transform=ToUndirected)
next(iter(NeighborLoader(data, [2], transform=print, prefetch=0)))
NeighborLoader(data, [2]).set_epoch('2')
NeighborLoader(data, [2], rng_scope='batches')
NeighborLoader(data, [2], static_shapes='yes')
NeighborLoader(data, [2], progress=2)
NeighborLoader(data, [2], filter_per_worker='no')
# options
NeighborLoader(data, [2], replace='no')
NeighborLoader(data, [2], disjoint=1.5)
NeighborLoader(data, [2], subgraph_type='all')
NeighborLoader(data, [2], subgraph_type=3)
NeighborLoader(data, [2], weight_attr='wait')
NeighborLoader(data, [2], weight_attr=data.weight)
NeighborLoader(having(w=-torch.ones(5)), [2], weight_attr='w')
NeighborLoader(having(w=torch.ones(5) / 0), [2], weight_attr='w')
NeighborLoader(having(w=torch.ones(4)), [2], weight_attr='w')
NeighborLoader(data, [2], time_attr='date')
NeighborLoader(having(t=torch.rand(5)), [2], time_attr='t')
NeighborLoader(data, [2], temporal_strategy='first', time_attr='time')
NeighborLoader(data, [2], is_sorted='yes')
NeighborLoader(data, [2], share_memory='yes')
NeighborLoader(data, [2], neighbor_sampler=data)
NeighborLoader(data, [2], sampler=data)
# links
LinkNeighborLoader(data, [2], edge_label_index=label.float())
LinkNeighborLoader(data, [2], edge_label_index=label[0])
LinkNeighborLoader(data, [2], edge_label_index=label + 9)
LinkNeighborLoader(data, [2], edge_label_index=label, edge_label=torch.ones(3))
LinkNeighborLoader(data, [2], neg_sampling='all')
LinkNeighborLoader(data, [2], neg_sampling=3)
LinkNeighborLoader(data, [2], neg_sampling={'mode': 'triple'})
LinkNeighborLoader(data, [2], neg_sampling={'mode': 'binary', 'number': 2})
LinkNeighborLoader(data, [2], neg_sampling='triplet', neg_sampling_ratio=2.0)
LinkNeighborLoader(data, [2], edge_label_index=label, \
neg_sampling='triplet', edge_label=torch.ones(2))
LinkNeighborLoader(data, [2], neg_sampling_ratio=-1.0)
LinkNeighborLoader(data, [2], neg_sampling_ratio='2')
LinkNeighborLoader(hetero, [2])
LinkNeighborLoader(hetero, [2], edge_label_index=('paper', 'author'))
LinkNeighborLoader(hetero, [2], edge_label_index=('a', 'b', 'c'))
LinkNeighborLoader(data, [2], edge_label_time=seeds)
gs.NegativeSampling('binary', amount=-1)
gs.NegativeSampling('ternary')
# other loaders
HGTLoader(data, [2], 'paper')
HGTLoader(hetero, 2, 'paper')
ShaDowKHopSampler(data, 0, 5)
ShaDowKHopSampler(data, 2, -5)
ShaDowKHopSampler(data, 'two', 5)
GraphSAINTRandomWalkSampler(data, 2, 0)
GraphSAINTRandomWalkSampler(data, 0, 2)
GraphSAINTRandomWalkSampler(data, 2, 2, num_steps=0)
NodeLoader(data, None)
NodeLoader(data, 'neighbor')
NodeLoader(data, gs.NeighborSampler)
# samplers
gs.NeighborSampler(data)
gs.NeighborSampler(data, [2], fanouts=[3])
gs.NeighborSampler(data, [2]).sample_from_nodes(seeds)
gs.LadiesSampler(data, [2]).sample_from_nodes([0, 1])
gs.LadiesSampler(data, [0])
gs.LadiesSampler(data, [8], normalization='columns')
gs.LaborSampler(data, 'ten')
gs.SaintSampler(data, 0)
gs.ProgramSampler(data, [2], 'ladies')
gs.ProgramSampler(data, None, [2])
gs.ProgramSampler(data, lambda A, seeds: A[:, seeds], [2])
gs.ProgramSampler(data, lambda A: A)
gs.PinSAGESampler(data, [2], num_walks=0)
gs.ShaDowSampler(data, [2], p=3)
# graphs, matrices, operators
gs.as_graph(3)
gs.SparseSample.from_edge_index(EDGES.float())
gs.SparseSample.from_edge_index(data)
gs.SparseSample.from_edge_index(EDGES, 5)
gs.SparseSample.from_edge_index(EDGES, num_nodes=2)
gs.SparseSample.from_edge_index(EDGES, value=torch.ones(3))
A[:, floats]
A[:, torch.tensor([7])]
A[:, seeds].individual_sample(2.5)
A.sum(dim=3)
ops.random_walk(A.csc.indptr, A.csc.indices, floats, 3, key=key)
ops.random_walk(A.csc.indptr, A.csc.indices, seeds, -1, key=key)
ops.sample_neighbors(A, seeds, [2], key)
ops.gather_rows(data.x, floats)
gs.compile(3)
gs.compile(gs.LadiesSampler)
gs.compile(gs.LadiesSampler(data, [2]))
gs.fuse(3)
gs.explain(None)
gs.explain(data)
gs.quantize_rows([1, 2])
"""
FURTHER = """
# loaders
NeighborLoader(data, np.array([2.5]))
NeighborLoader([2], data)
NeighborLoader(data.x, EDGES, [2])
NeighborLoader(data, [2], batch_size=True)
NeighborLoader(data, [2], batch_size=float('nan'))
NeighborLoader(data, [2], input_nodes=np.array([0, 9]))
NeighborLoader(data, [2], input_nodes='train_mask')
NeighborLoader(data, [2], input_nodes={'paper': seeds})
NeighborLoader(data, [2], device='cuda:0')
NeighborLoader(data, [2], prefetch_factor=0, num_workers=1)
NeighborLoader(data, [2], prefetch_factor=1.5, num_workers=1)
NeighborLoader(data, [2], generator=3, shuffle=True)
NeighborLoader(data, [2], persistent_workers=True)
NeighborLoader(data, [2], timeout=-1)
NeighborLoader(data, [2], batch_sampler=[[0, 1]], batch_size=3)
NeighborLoader(data, [3], sampler=gs.NeighborSampler(data, [2]))
NeighborLoader(Data(edge_index=EDGES, num_nodes=5.0), [2])
NeighborLoader(Data(edge_index=EDGES.bool(), num_nodes=5), [2])
NeighborLoader(data, [2], time_attr=data.time)
NeighborLoader(data, [2], time_attr=3)
NeighborLoader(having(w=[1.0] * 5), [2], weight_attr='w')
NeighborLoader(having(w=torch.ones(5, 2)), [2], weight_attr='w')
NeighborLoader(weighted, [2], input_nodes='paper', weight_attr='w')
NeighborLoader(having(t=[0, 1, 2, 3, 4]), [2], time_attr='t')
NeighborLoader(having(t=torch.zeros(5, 2).long()), [2], time_attr='t')
NeighborLoader(data, [2]).load_state_dict({})
LinkNeighborLoader(data, [2], edge_label_index=[[0], [1]])
LinkNeighborLoader(data, [2], edge_label_index=label, edge_label=[1, 0])
LinkNeighborLoader(data, [2], edge_label_index=label, timeout=-1)
gs.NegativeSampling('triplet', amount=1.5)
gs.NegativeSampling('binary', src_weight=[1, 2])
BatchShape(3, 4)
LastNeighborLoader(5, 2)(floats)
# samplers, graphs and programs
gs.NeighborSampler(data, [2], num_threads=True)
gs.NeighborSampler(data, [2], time_window=True, time_attr='time')
gs.NeighborSampler(data, [2], graph_placement='disk')
gs.Graph.from_edge_index(EDGES, num_nodes='5')
gs.Graph.from_edge_index(EDGES, num_nodes=2.5)
gs.Graph.from_edge_index(EDGES).with_weights(torch.ones(5))
gs.Graph.from_edge_index(EDGES).with_times(torch.arange(5))
gs.compile(program)(data, seeds)
gs.load_program(None)
gs.nn.Node2Vec(data, 8, 5, 2)
gs.nn.Node2Vec(EDGES, 8, 5, 2, p='x')
gs.datasets.power_law(10, 'x', 3)
gs.datasets.rmat(3.5, 4)
gs.graph_sampling.graph_properties(EDGES)
gs.graph_sampling.sample_quality(data, None)
# tables and Spark
relational.from_tables({'a': 3})
relational.TableFolder(None)
relational.EntityTask('a', [0], seeds)
relational.EntityTask('a', seeds, floats)
relational.EntityTask('a', seeds, seeds[:1])
relational.EntityTask('a', seeds, seeds, torch.ones(5))
relational.LinkTask('a', seeds, seeds, seeds)
relational.LinkTask(('a', 'b'), seeds, seeds[:1], seeds)
relational.LinkTask(('a', 'b'), seeds, seeds, seeds, num_negatives=-1)
spark.random_edge(data, EDGES, 0.5)
spark.neighbor_sample(EDGES, seeds, [2])
spark.SampledParquetLoader(None)
"""
#: Names for the lines.
NAMES = {
    **{name: getattr(gs.loader, name) for name in gs.loader.__all__},
    **globals(),
    'ops': gs.ops,
}
FIRST, LAST = (
    [line for line in text.splitlines() if line and not line.startswith('#')]
    for text in (MISTAKES, FURTHER)
)


@pytest.mark.parametrize('line', FIRST + LAST)
def test_a_mistake_is_named_where_it_is_made(line):
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        eval(line, NAMES)
    message = str(caught.value)
    assert re.match(r'[\w.]+: ', message), message
    assert re.search(r"'\w+'|the \w+", message), message


@pytest.mark.parametrize(
    ('given', 'meant'),
    [
        ('fanouts', 'num_neighbors'),
        ('nids', 'input_nodes'),
        ('probs', 'weight_attr'),
        ('random_state', 'seed'),
    ],
)
def test_names_of_other_libraries_are_translated(given, meant):
    with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
        gs.loader.NeighborLoader(data, **{given: 1})


@pytest.mark.parametrize('prefetch', [0, 2])
def test_a_batch_size_may_be_of_numpy(prefetch):
    size = np.int64(2)
    options = {'batch_size': size, 'seed': 0, 'prefetch': prefetch}
    loader = gs.loader.NeighborLoader(data, [2], **options)
    assert [batch.batch_size for batch in loader] == [2, 2, 1]


def test_a_mask_of_integers_is_noticed():
    mask = torch.tensor([0, 1, 1, 0, 1])
    with pytest.warns(UserWarning, match=r'0 or 1 for each .*mask\.bool'):
        gs.loader.NeighborLoader(data, [2], input_nodes=mask)


def test_there_are_as_many_as_are_promised():
    assert len({*FIRST}) >= 131
    assert len({*LAST}) >= 40
