"""`benchmark/block_layers.py` compares equal work, or fails."""

import sys
from pathlib import Path

import pytest
from torch_geometric.nn import SGConv

TOP = Path(__file__).resolve().parents[2]
MODULES = ('block_layers', 'harness')


@pytest.fixture
def block_layers(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP / 'benchmark'))
    import block_layers

    yield block_layers
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_table_is_written(block_layers, tmp_path):
    page = tmp_path / 'page.md'
    options = ['--seeds', '64', '--rounds', '1', '--layers', 'GATConv']
    block_layers.main([*options, '--markdown', str(page)])
    [row] = [x for x in page.read_text().splitlines() if 'GATConv' in x]
    fused, blocks = row.split('|')[-3].split('/')
    assert 0 < float(fused) < float(blocks)


def test_a_batch_without_blocks_is_an_error(block_layers):
    batch = block_layers.batch_of(16)
    batch.edge_index = batch.edge_index.plain
    make = block_layers.LAYERS['SAGEConv']
    expected = "'batch' must know its blocks.*got edges of type Tensor"
    with pytest.raises(ValueError, match=expected):
        block_layers.steps_of(make, batch, 16)


class OfReversedEdges(SGConv):
    """Reads out-edges, which blocks lack."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index.flip(0))


@pytest.mark.filterwarnings('ignore:fuse')
def test_a_model_on_whole_batches_is_an_error(block_layers):
    batch = block_layers.batch_of(16)
    with pytest.raises(ValueError, match='each layer must compute its block'):
        block_layers.steps_of(lambda c: OfReversedEdges(c, 128), batch, 16)
