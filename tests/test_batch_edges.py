"""The edges of a batch by hops, of which blocks are made."""

import pytest
import torch

from torch_gsample import Block, Blocks
from torch_gsample.batch_edges import BatchEdges


def test_counts_that_change_later_change_no_block():
    """Tensors made of counts are made at their first use."""
    nodes, num_edges = [1, 2, 1], [2, 1]
    edge_index = torch.tensor([[1, 2, 3], [0, 0, 1]])
    edges = {t: BatchEdges(edge_index, nodes, nodes, num_edges) for t in 'ab'}
    blocks = Blocks(edges, {'n': nodes})
    nodes[0], num_edges[0] = 7, 7
    assert blocks[0].num_src == {'n': 4}
    assert blocks[0]['a'].size == (4, 3)
    assert blocks[1]['b'].num_edges == 2


def test_a_block_of_all_edges_may_lack_sources_of_later_hops():
    edge_index = torch.tensor([[0, 1], [0, 0]])
    edges = BatchEdges(edge_index, (0, 2, 3), (1, 0, 0), (2, 0))
    block = Block(edges, 0)
    assert block.size == (2, 1)
    assert block.csc.num_rows == 2
    assert block.transposed.num_cols == 2


@pytest.mark.parametrize('by_column', [True, False])
def test_columns_made_in_inference_serve_training(by_column):
    edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    edges = BatchEdges(edge_index, (1, 1, 1), (1, 1, 1), (2, 1), by_column)
    with torch.inference_mode():
        tensors = Block(edges, 0).tensors
    assert not any(x.is_inference() for x in tensors)
