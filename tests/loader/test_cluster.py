"""``ClusterData`` cuts few edges, and has those of the data."""

import sys
from itertools import permutations

import pytest
import torch
from torch_geometric import loader as pyg_loader
from torch_geometric.data import Data

from torch_gsample import patch_pyg
from torch_gsample.loader import ClusterData


def cliques(parts=4, size=8):
    """Cliques in a ring, their nodes mixed; directed edges and loops."""
    edges = [
        (part * size + a, part * size + b)
        for part in range(parts)
        for a, b in permutations(range(size), 2)
    ]
    edges += [(p * size, (p + 1) % parts * size) for p in range(parts)]
    edges += [(node, node) for node in range(0, parts * size, 3)]
    perm = torch.randperm(
        parts * size, generator=torch.Generator().manual_seed(1)
    )
    clique = torch.empty(parts * size, dtype=torch.int64)
    clique[perm] = torch.arange(parts * size) // size
    return Data(
        edge_index=perm[torch.tensor(edges).T],
        clique=clique,
        n_id=torch.arange(parts * size),
        e_id=torch.arange(len(edges)),
        num_nodes=parts * size,
    )


@pytest.mark.parametrize('recursive', [False, True])
def test_each_clique_is_a_part(recursive):
    data = cliques()
    parts = list(ClusterData(data, 4, recursive, log=False))
    assert sorted(int(part.clique.unique()) for part in parts) == [0, 1, 2, 3]
    for part in parts:
        ends = part.n_id[part.edge_index]
        assert torch.equal(ends, data.edge_index[:, part.e_id])
    # The ring is cut.
    assert sum(part.num_edges for part in parts) == data.num_edges - 4
    assert torch.cat([part.n_id for part in parts]).unique().numel() == 32


@pytest.mark.parametrize('parts', [1, 3, 20])
def test_nodes_without_edges_are_in_a_part(parts):
    data = Data(edge_index=torch.tensor([[0, 1], [0, 0]]), x=torch.arange(5))
    found = ClusterData(data, parts, log=False)
    assert len(found) == parts
    assert torch.cat([p.x for p in found]).sort().values.tolist() == [
        *range(5)
    ]
    none = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    assert sum(p.num_nodes for p in ClusterData(none, parts, log=False)) == 0


def test_pygs_loader_takes_it(tmp_path):
    with patch_pyg():
        data = pyg_loader.ClusterData(
            cliques(), 4, save_dir=str(tmp_path), log=False
        )
    assert type(data) is ClusterData
    again = ClusterData(cliques(), 4, save_dir=str(tmp_path), log=False)
    for own in (data, again):
        batches = list(pyg_loader.ClusterLoader(own, batch_size=4))
        assert [batch.num_edges for batch in batches] == [cliques().num_edges]


@pytest.mark.parametrize(
    ('args', 'error', 'message'),
    [
        ((cliques(), 0), ValueError, "'num_parts' must be positive (got 0)"),
        ((cliques(), 2.0), TypeError, "'num_parts' must be an integer"),
        ((Data(num_nodes=3), 2), ValueError, "must have an 'edge_index'"),
    ],
)
def test_bad_input(args, error, message):
    with pytest.raises(error) as info:
        ClusterData(*args)
    assert str(info.value).startswith('ClusterData: ')
    assert message in str(info.value)


def test_without_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pymetis', None)
    with pytest.raises(ImportError, match=r'torch_gsample\[cluster\]'):
        ClusterData(cliques(), 2, log=False)
