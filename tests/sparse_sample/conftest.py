"""Fixtures of the tests of matrices."""

import sys
from types import SimpleNamespace

import pytest
import torch

from tests.sparse_sample.cases import case


@pytest.fixture(autouse=True, scope='package')
def _one_thread():
    """Small matrices wait for threads longer than they take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def c(request):
    return case(*request.param)


class FakeBlock(SimpleNamespace):
    """A stand-in for DGL that records the writes to a block or graph."""

    def __init__(self, edges, num_src_nodes=None, num_dst_nodes=None):
        super().__init__(
            edges=edges,
            sizes=(num_src_nodes, num_dst_nodes),
            srcdata={},
            dstdata={},
            edata={},
        )


@pytest.fixture
def fake_dgl(monkeypatch):
    dgl = SimpleNamespace(
        NID='nid',
        EID='eid',
        create_block=FakeBlock,
        graph=lambda edges, num_nodes: FakeBlock(edges, num_nodes),
    )
    monkeypatch.setitem(sys.modules, 'dgl', dgl)
