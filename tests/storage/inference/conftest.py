"""A graph on disk, and tiles that are small."""

import pytest

from tests.storage.inference.models import EDGES, NODES, WIDTH
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.inference import budget, tiles


@pytest.fixture(scope='session')
def graph(tmp_path_factory):
    """Hubs fill several chunks."""
    path = tmp_path_factory.mktemp('graph') / 'graph'
    return ChunkedGraph.write(
        path, EDGES, num_nodes=NODES, chunk_bytes=400, alignment=512
    )


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small tiles: the graph has many."""
    monkeypatch.setattr(tiles, 'TILE', 16)
    monkeypatch.setattr(tiles, 'MESSAGES', 100 * 4 * WIDTH)
    # A budget of few KB has rows read chunk by chunk.
    monkeypatch.setattr(budget, '_RESIDENT', 0.1)
    monkeypatch.setattr(budget, '_COMMIT', 4000)
