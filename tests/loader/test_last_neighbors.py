"""The last neighbours before a time, compared with loops and with PyG's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import TransformerConv
from torch_geometric.nn.models.tgn import (
    IdentityMessage,
    LastAggregator,
    TGNMemory,
)
from torch_geometric.nn.models.tgn import LastNeighborLoader as PyGLoader

from torch_gsample import Graph, last_neighbors, patch_pyg
from torch_gsample.loader import LastNeighborLoader

NODES, ITEMS = 40, 30


def events(count=900, seed=0, nodes=NODES):
    """Users and items, as in PyG's example: few events a node and batch."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(ITEMS, (count,), generator=generator)
    dst = torch.randint(ITEMS, nodes, (count,), generator=generator)
    return src, dst


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 9),
    k=st.integers(0, 4),
    inclusive=st.sampled_from(['both', 'left', 'right', 'neither']),
    window=st.none() | st.integers(2, 6),
)
def test_padded_neighbours_are_those_of_a_loop(seed, k, inclusive, window):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(9, (2, 50), generator=generator)
    time = torch.randint(12, (50,), generator=generator)
    graph = Graph.from_edge_index(edge_index, 9).with_times({None: time})
    nodes, times = torch.arange(9).repeat(2), torch.arange(18) % 14
    out = last_neighbors(
        graph, nodes, times, k, time_inclusive=inclusive, time_window=window
    )
    for i, (node, bound) in enumerate(zip(nodes, times, strict=True)):
        seen = []
        for e in range(50):
            t = time[e]
            early = t < bound or (t == bound and inclusive in 'both right')
            late = window is None or (
                t > bound - window
                or (t == bound - window and inclusive in 'both left')
            )
            if edge_index[1, e] == node and early and late:
                seen.append(e)
        seen.sort(key=lambda e: (int(time[e]), e))
        seen = seen[::-1][:k]
        rest = [-1] * (k - len(seen))
        assert out.edge[i].tolist() == seen + rest
        assert out.mask[i].tolist() == [j < len(seen) for j in range(k)]
        neighbors = [int(edge_index[0, e]) for e in seen]
        assert out.neighbor[i].tolist() == neighbors + rest
        assert out.time[i][: len(seen)].tolist() == [time[e] for e in seen]
        assert not out.time[i][len(seen) :].any()


def test_neighbours_of_one_of_several_relations():
    edge_types = ('a', 'to', 'b'), ('b', 'to', 'a')
    one = Graph.from_edge_index(torch.tensor([[0, 1], [1, 1]]), 2)
    two = Graph.from_edge_index(torch.tensor([[0], [0]]), 2)
    graph = Graph(
        ('a', 'b'), edge_types, (2, 2), (*one.columns, *two.columns)
    ).with_times({edge_types[0]: torch.tensor([4, 3])})
    node, time = torch.tensor([1]), torch.tensor([4])
    out = last_neighbors(graph, node, time, 3, edge_type=edge_types[0])
    assert out.neighbor.tolist() == [[1, -1, -1]]
    with pytest.raises(ValueError, match="'graph' must have times"):
        last_neighbors(graph, node, time, 3, edge_type=edge_types[1])


@pytest.mark.parametrize('few', [4096, 30])
def test_each_call_is_that_of_pyg(monkeypatch, few):
    """Two epochs, with columns that grow and that are there already."""
    monkeypatch.setattr('torch_gsample.loader.last_neighbors._FEW', few)
    src, dst = events()
    theirs, ours = PyGLoader(NODES, 7), LastNeighborLoader(NODES, 7)
    for _ in range(2):
        theirs.reset_state()
        ours.reset_state()
        for first in range(0, 900, 20):
            batch = [end[first : first + 20] for end in (src, dst)]
            n_id = torch.cat(batch).unique()
            want, got = theirs(n_id), ours(n_id)
            assert all(map(torch.equal, want, got)), first
            for loader in (theirs, ours):
                loader.insert(*batch)
            assert ours.cur_e_id == theirs.cur_e_id
            assert torch.equal(ours.e_id, theirs.e_id)
            there = theirs.e_id >= 0
            assert torch.equal(ours.neighbors[there], theirs.neighbors[there])


def test_batches_need_no_order():
    src, dst = events()
    static = LastNeighborLoader.from_events(src, dst, NODES, 5)
    replayed, want = LastNeighborLoader(NODES, 5), {}
    n_id = torch.arange(0, NODES, 3)
    for first in range(0, 900, 100):
        want[first] = replayed(n_id)
        replayed.insert(src[first : first + 100], dst[first : first + 100])
    for first in (500, 0, 800, 100):
        got = static.before(n_id, first)
        assert all(map(torch.equal, got, want[first]))
    assert static.cur_e_id == 0


def test_the_last_events_of_a_large_batch_are_kept():
    """PyG's loader keeps events of one role here, not the last ones."""
    src, dst = torch.tensor([0, 0, 1, 2, 0]), torch.tensor([1, 2, 0, 0, 3])
    loader = LastNeighborLoader(4, 2)
    loader.insert(src, dst)
    _, _, e_id = loader(torch.tensor([0]))
    assert e_id.tolist() == [4, 3]


def test_other_events_replace_those_of_the_log():
    src, dst = events(60)
    loader = LastNeighborLoader.from_events(src, dst, NODES, 4)
    loader.insert(src[:20], dst[:20])
    loader.insert(src[40:], dst[40:])
    joined = [torch.cat([end[:20], end[40:]]) for end in (src, dst)]
    want = LastNeighborLoader.from_events(*joined, NODES, 4)
    n_id = torch.arange(NODES)
    assert all(map(torch.equal, loader(n_id), want.before(n_id, 40)))
    with pytest.raises(IndexError, match=r"'event' must be in \[0, 40\]"):
        loader.before(n_id, 41)


def test_other_events_of_an_epoch_are_seen():
    loader, n_id = LastNeighborLoader(4, 2), torch.arange(4)
    for dst in (1, 2):
        loader.reset_state()
        loader.insert(torch.tensor([0]), torch.tensor([dst]))
        nodes, ends, _ = loader(n_id)
        assert nodes[ends].tolist() == [[dst, 0], [0, dst]]


def test_it_is_in_the_place_of_pygs():
    with patch_pyg():
        from torch_geometric.nn.models.tgn import LastNeighborLoader as Patched
    assert Patched is LastNeighborLoader


def tgn_losses(loader):
    """Two epochs of PyG's example `tgn.py`, with its parts, on toy events."""
    torch.manual_seed(3)
    src, dst = events(240)
    t, msg = torch.arange(240), torch.randn(240, 4)
    memory = TGNMemory(
        NODES, 4, 8, 8, IdentityMessage(4, 8, 8), LastAggregator()
    )
    conv = TransformerConv(8, 4, heads=2, edge_dim=12)
    out, losses = torch.nn.Linear(16, 1), []
    parameters = [p for part in (memory, conv, out) for p in part.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    assoc = torch.empty(NODES, dtype=torch.long)
    for _ in range(2):
        memory.reset_state()
        loader.reset_state()
        for i in range(0, 240, 20):
            optimizer.zero_grad()
            s, d = src[i : i + 20], dst[i : i + 20]
            negative = (d + i) % ITEMS
            n_id, edge_index, e_id = loader(
                torch.cat([s, d, negative]).unique()
            )
            assoc[n_id] = torch.arange(len(n_id))
            z, last_update = memory(n_id)
            rel_t = last_update[edge_index[0]] - t[e_id]
            encoded = memory.time_enc(rel_t.to(z.dtype))
            z = conv(z, edge_index, torch.cat([encoded, msg[e_id]], 1))
            scores = [
                out(torch.cat([z[assoc[s]], z[assoc[end]]], 1))
                for end in (d, negative)
            ]
            loss = -(scores[0] - scores[1]).sigmoid().log().mean()
            memory.update_state(s, d, t[i : i + 20], msg[i : i + 20])
            loader.insert(s, d)
            loss.backward()
            optimizer.step()
            memory.detach()
            losses.append(loss.item())
    return losses


def test_pygs_tgn_trains_alike_on_it():
    theirs = tgn_losses(PyGLoader(NODES, 9))
    assert tgn_losses(LastNeighborLoader(NODES, 9)) == theirs
    static = LastNeighborLoader.from_events(*events(240), NODES, 9)
    assert tgn_losses(static) == theirs
    assert theirs[-1] != theirs[0]


def test_wrong_arguments_are_named():
    loader = LastNeighborLoader(3, 2)
    for error, call, match in (
        (TypeError, lambda: LastNeighborLoader(2.5, 1), "'num_nodes' must be"),
        (ValueError, lambda: LastNeighborLoader(2, -1), "'size' must not be"),
        (
            ValueError,
            lambda: loader.insert(
                torch.zeros(2).long(), torch.zeros(3).long()
            ),
            'must be vectors of one length',
        ),
        (
            TypeError,
            lambda: loader.insert(torch.zeros(2), torch.zeros(2).long()),
            "'src' must hold integers",
        ),
        (
            IndexError,
            lambda: loader.insert(torch.tensor([0]), torch.tensor([3])),
            r"'dst' must be in \[0, 3\) \(got 3 to 3\)",
        ),
        (IndexError, lambda: loader(torch.tensor([7])), 'must be in'),
    ):
        with pytest.raises(error, match=match):
            call()
    assert loader.cur_e_id == 0
