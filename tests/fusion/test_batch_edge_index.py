"""Edges that know the blocks of their batch."""

import copy
import pickle

import pytest
import torch
from torch import Tensor

from tests.fusion.models import batches, graph, typed_graph
from torch_gsample.loader.batch_edge_index import BatchEdgeIndex


@pytest.fixture(scope='module')
def edge_index():
    return batches(graph(), count=1)[0].edge_index


COPIES = {
    'to': lambda x: x.to('cpu'),
    'to, copied': lambda x: x.to('cpu', copy=True),
    'cpu': lambda x: x.cpu(),
    'clone': lambda x: x.clone(),
    'detach': lambda x: x.detach(),
    'contiguous': lambda x: x.contiguous(),
    'copy': copy.copy,
    'deepcopy': copy.deepcopy,
    'pickle': lambda x: pickle.loads(pickle.dumps(x)),
}
DECAYS = {
    'arithmetic': lambda x: x + 1,
    'slice': lambda x: x[:, :5],
    'row': lambda x: x[0],
    'flip': lambda x: x.flip(0),
    'to int32': lambda x: x.to(torch.int32),
    'cat': lambda x: torch.cat([x, x], 1),
    'plain': lambda x: x.plain,
}


@pytest.mark.parametrize('mode', [torch.enable_grad, torch.inference_mode])
@pytest.mark.parametrize('how', COPIES)
def test_copies_know_the_blocks(how, mode, edge_index):
    with mode():
        out = COPIES[how](edge_index)
    assert out.is_known
    assert type(out) is BatchEdgeIndex
    assert torch.equal(out, edge_index)
    block = edge_index.block(0)
    assert out.block(0).size == block.size
    assert torch.equal(out.block(0).edge_index, block.edge_index)


@pytest.mark.parametrize('how', DECAYS)
def test_results_of_operators_are_plain_tensors(how, edge_index):
    assert type(DECAYS[how](edge_index)) is Tensor


def test_copies_on_a_device_share_its_blocks(edge_index):
    other = edge_index.clone()
    device = torch.device('meta')
    first, second = edge_index.to(device), other.to(device)
    assert first.batch.on(device) is second.batch.on(device)
    assert first.batch.on(device) is not edge_index.batch.on(other.device)


def test_batches_move_with_their_blocks():
    batch = batches(graph(), count=1)[0]
    assert type(batch.clone().edge_index) is BatchEdgeIndex
    assert type(batch.to('cpu').edge_index) is BatchEdgeIndex


def test_a_batch_of_inference_is_checked_for_changes():
    batch = batches(graph(), count=1)[0]
    with torch.inference_mode():
        edge_index = batch.clone().edge_index
        assert edge_index.is_known
        edge_index[0, 0] = 1
    assert not edge_index.is_known


def test_relations_share_the_blocks_of_a_batch():
    batch = batches(typed_graph(), count=1)[0]
    marks = list(batch.edge_index_dict.values())
    assert all(type(x) is BatchEdgeIndex for x in marks)
    assert len({id(x.batch) for x in marks}) == 1
    for key, x in batch.edge_index_dict.items():
        assert x.block(1) is batch.blocks.level(1)[key]


def test_levels_beyond_the_hops_are_the_whole_batch(edge_index):
    block = edge_index.block(99)
    assert block.num_edges == edge_index.shape[1]


def test_plain_edges_of_a_transform_outlive_it():
    edges = batches(graph(), count=1)[0].edge_index

    def count(x):
        return x * edges.plain.shape[1]

    for _ in range(2):
        gradient = torch.func.grad(count)(torch.tensor(1.0))
        assert gradient == edges.shape[1]
    assert edges.plain.data_ptr() == edges.data_ptr()


def test_plain_edges_are_one_tensor_until_their_memory_changes():
    edges = batches(graph(torch.float32), count=1)[0].edge_index
    plain = edges.plain
    assert type(plain) is torch.Tensor
    assert edges.plain is plain
    edges.data = plain.flip(0)
    assert edges.plain is not plain
    assert torch.equal(edges.plain, plain.flip(0))
