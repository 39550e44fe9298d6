"""Programs that return a subgraph for each seed, in loaders of all kinds."""

import pytest
import torch
from torch_geometric.loader import LinkLoader, NodeLoader

from tests.loader.batches import run
from tests.samplers import graphs, programs
from torch_gsample import ProgramSampler, ShaDowSampler
from torch_gsample.algorithms import Subgraphs, shadow
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader

DATA = graphs.homogeneous(num_nodes=60, num_edges=300)


def sampler_of(data=DATA, **options):
    options = {'seed': 0} | options
    return ProgramSampler(data, shadow, [3, 2], disjoint=True, **options)


def assert_disjoint(node, batch, row, col, edge, seeds, data=DATA):
    """Seeds first, and all edges of the graph inside of each subgraph."""
    assert node[: len(seeds)].tolist() == list(seeds)
    assert batch[: len(seeds)].tolist() == list(range(len(seeds)))
    expected, found = [], []
    edges = data.edge_index.t().tolist()
    for i in range(len(seeds)):
        own = node[batch == i].tolist()
        assert len(set(own)) == len(own)
        for e, (u, v) in enumerate(edges):
            if u in own and v in own:
                expected.append((i, u, v, e))
    assert torch.equal(batch[row], batch[col])
    for r, c, e in zip(row, col, edge, strict=True):
        ends = int(node[r]), int(node[c])
        found.append((int(batch[r]), *ends, int(e)))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize('seeds', [[5], [5, 9, 30], [5, 9, 5, 5], [0], []])
def test_a_disjoint_sample_has_a_subgraph_for_each_seed(seeds):
    sampler = sampler_of()
    inputs = graphs.nodes(torch.tensor(seeds, dtype=torch.long))
    out = sampler.sample_from_nodes(inputs)
    assert_disjoint(out.node, out.batch, out.row, out.col, out.edge, seeds)
    assert sampler.disjoint
    assert out.num_sampled_edges is None
    assert out.num_sampled_nodes == [
        len(seeds),
        out.node.numel() - len(seeds),
    ]


def test_a_duplicate_has_a_subgraph_of_its_own():
    out = sampler_of().sample_from_nodes(graphs.nodes([5] * 20))
    parts = {tuple(out.node[out.batch == i].tolist()) for i in range(20)}
    assert len(parts) > 1


@pytest.mark.parametrize('kind', [NeighborLoader, NodeLoader])
def test_node_loaders_take_it(kind):
    name = 'sampler' if kind is NeighborLoader else 'node_sampler'
    loader = kind(DATA, **{name: sampler_of()}, batch_size=16)
    for batch in loader:
        assert_disjoint(
            batch.n_id,
            batch.batch,
            *batch.edge_index,
            batch.e_id,
            batch.input_id.tolist(),
        )
        assert torch.equal(batch.x.view(-1), batch.n_id)
        assert torch.equal(batch.edge_attr, batch.e_id)


NEGATIVES = [None, ('binary', 1.5), ('triplet', 2)]


@pytest.mark.parametrize('kind', [LinkNeighborLoader, LinkLoader])
@pytest.mark.parametrize('mode', NEGATIVES)
def test_each_end_of_a_link_has_a_subgraph(kind, mode):
    name = 'sampler' if kind is LinkNeighborLoader else 'link_sampler'
    loader = kind(
        DATA,
        **{name: sampler_of()},
        neg_sampling=mode and {'mode': mode[0], 'amount': mode[1]},
        batch_size=20,
    )
    batch = next(iter(loader))
    pairs = DATA.edge_index[:, :20]
    if mode is not None and mode[0] == 'triplet':
        index = torch.stack([batch.src_index, batch.dst_pos_index])
        negative = batch.dst_neg_index.t().reshape(-1)
        roots = torch.cat([index.view(-1), negative])
        num_links = torch.arange(20).repeat(4)
    else:
        index = batch.edge_label_index
        roots, size = index.view(-1), index.shape[1]
        num_links = (torch.arange(size) % 20).repeat(2)
    assert torch.equal(batch.n_id[index[:, :20]], pairs)
    assert torch.equal(roots, torch.arange(roots.numel()))  # none is shared
    assert torch.equal(batch.batch[roots], num_links)
    assert torch.equal(batch.edge_attr, batch.e_id)
    row, col = batch.edge_index
    assert torch.equal(batch.batch[row], batch.batch[col])


def test_seed_edges_can_be_excluded():
    for reverse in (True, 'reverse'):
        loader = LinkNeighborLoader(
            DATA,
            sampler=sampler_of(exclude_seed_edges=reverse),
            batch_size=30,
        )
        plain = LinkNeighborLoader(DATA, sampler=sampler_of(), batch_size=30)
        dropped = 0
        for batch, other in zip(loader, plain, strict=True):
            dropped += other.num_edges - batch.num_edges
            seeds = DATA.edge_index[:, batch.input_id].t().tolist()
            ends = batch.n_id[batch.edge_index].t().tolist()
            tree = batch.batch[batch.edge_index[1]].tolist()
            for (u, v), link in zip(ends, tree, strict=True):
                assert [u, v] != seeds[link]
                assert reverse is True or [v, u] != seeds[link]
        assert dropped > 0


def with_number(A, seeds, fanouts):
    return shadow(A, seeds, fanouts), {'number': torch.arange(60.0)}


def test_values_and_node_attributes_arrive():
    data = DATA.clone()
    data.weight = torch.arange(1.0, 301.0)
    sampler = ProgramSampler(
        data, with_number, [3, 2], disjoint=True, weight_attr='weight', seed=0
    )
    batch = next(iter(NeighborLoader(data, sampler=sampler, batch_size=8)))
    assert torch.equal(batch.edge_weight, batch.weight)
    assert torch.equal(batch.number, batch.n_id.float())


def loader_of(num_workers=0):
    data = graphs.homogeneous(num_nodes=3000, num_edges=60_000)
    sampler = ShaDowSampler(data, [4, 4], seed=3, share_memory=True)
    return NeighborLoader(
        data, sampler=sampler, batch_size=700, num_workers=num_workers
    )


def test_workers_and_threads_change_no_batch():
    outs = []
    for num_workers, num_threads in ((0, 1), (0, 2), (1, 1), (2, 1)):
        torch.set_num_threads(num_threads)
        loader = loader_of(num_workers)
        outs.append([run(loader), run(loader)])
    assert all(out == outs[0] for out in outs)
    assert outs[0][0] != outs[0][1]


def changed(**fields):
    """A program that returns something wrong."""

    def program(A, seeds):
        good = shadow(A, seeds, [3])
        return good._replace(
            **{key: change(good) for key, change in fields.items()}
        )

    return program


@pytest.mark.parametrize(
    ('program', 'text'),
    [
        (changed(batch=lambda s: s.batch[1:]), r"'batch' as int64 \["),
        (changed(batch=lambda s: s.batch.int()), r"'batch' as int64 .*int32"),
        (changed(batch=lambda s: s.batch + 2), r"'batch' in \[0, 2\)"),
        (changed(root=lambda s: s.root - 1), r"'root' in \[0, "),
        (changed(root=lambda s: s.root.flip(0)), 'the seeds in their order'),
        (changed(batch=lambda s: s.batch * 0), 'each seed in its own one'),
        (
            lambda A, seeds: Subgraphs(
                A[seeds, seeds], torch.arange(2), torch.arange(2)
            ),
            'no edge between two of them',
        ),
        (
            lambda A, seeds: Subgraphs(
                A[seeds.flip(0), seeds], torch.arange(2), torch.arange(2)
            ),
            'the same nodes as rows and columns',
        ),
    ],
)
def test_wrong_subgraphs_are_refused(program, text):
    u, v = DATA.edge_index[:, 0].tolist()
    sampler = ProgramSampler(DATA, program, disjoint=True)
    with pytest.raises(ValueError, match=f'ProgramSampler: .* {text}'):
        sampler.sample_from_nodes(graphs.nodes([u, v]))


@pytest.mark.parametrize(
    ('program', 'disjoint'), [(shadow, False), (programs.sage, True)]
)
def test_disjoint_must_match_the_returned_type(program, disjoint):
    sampler = ProgramSampler(DATA, program, [2], disjoint=disjoint)
    with pytest.raises(TypeError, match="Subgraphs if and only if 'disjoint"):
        sampler.sample_from_nodes(graphs.nodes([3]))


def test_typed_graphs_are_not_disjoint():
    with pytest.raises(ValueError, match="'data' must have one type"):
        ProgramSampler(graphs.heterogeneous(), shadow, disjoint=True)
