"""ProgramSampler in loaders: ours, PyG's, of nodes and of links."""

import pytest
import torch
from torch_geometric.loader import LinkLoader, NodeLoader

from tests.fresh import FORKS
from tests.loader.batches import run
from tests.samplers import graphs, programs
from tests.samplers.graphs import FOLLOWS, RATES
from torch_gsample import ProgramSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader


def weighted():
    """Weights and attributes name edges."""
    return graphs.homogeneous(
        num_nodes=60, num_edges=900, weight=torch.arange(1.0, 901.0)
    )


def sampler_of(data, program=programs.layer_wise, **options):
    options = {'weight_attr': 'weight', 'seed': 0} | options
    return ProgramSampler(data, program, [8, 8], **options)


def node_loader(**options):
    data = weighted()
    return NeighborLoader(
        data,
        sampler=sampler_of(data, share_memory=True),
        batch_size=16,
        shuffle=True,
        **options,
    )


def typed_loader(**options):
    data = graphs.heterogeneous()
    data[RATES].weight = torch.arange(60.0)
    sampler = ProgramSampler(
        data,
        programs.typed_with_number,
        graphs.each(data, [3, 2]),
        weight_attr='weight',
        seed=0,
    )
    return NeighborLoader(
        data, sampler=sampler, input_nodes='item', batch_size=4, **options
    )


def link_loader(**options):
    data = weighted()
    return LinkNeighborLoader(
        data,
        sampler=sampler_of(data, exclude_seed_edges=True),
        neg_sampling={'mode': 'triplet', 'amount': 2},
        batch_size=200,
        **options,
    )


MAKERS = [node_loader, typed_loader, link_loader]


@pytest.mark.parametrize('make', MAKERS)
def test_batches_are_the_same_for_any_number_of_workers(make):
    outs = []
    for num_workers in (0, 2, 4):
        torch.manual_seed(2)
        loader = make(num_workers=num_workers)
        outs.append([run(loader), run(loader)])
    assert outs[0] == outs[1] == outs[2]
    assert outs[0][0] != outs[0][1]


@pytest.mark.parametrize('make', MAKERS)
def test_workers_that_filter_change_no_batch(make):
    torch.manual_seed(2)
    expected = run(make())
    torch.manual_seed(2)
    assert run(make(num_workers=2, filter_per_worker=True)) == expected


def test_workers_that_are_spawned_change_no_batch():
    torch.manual_seed(2)
    expected = run(node_loader())
    torch.manual_seed(2)
    loader = node_loader(num_workers=2, multiprocessing_context=FORKS)
    assert run(loader) == expected


def test_threads_change_no_batch():
    outs = []
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        torch.manual_seed(2)
        outs.append(run(node_loader()))
    assert outs[0] == outs[1]


def test_the_seed_of_torch_decides_without_a_seed():
    def batches(number):
        torch.manual_seed(number)
        data = weighted()
        sampler = sampler_of(data, seed=None)
        return run(NeighborLoader(data, sampler=sampler, batch_size=30))

    assert batches(1) == batches(1)
    assert batches(1) != batches(2)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_attributes_of_nodes_and_edges_arrive_in_their_rows(num_workers):
    data = weighted()
    loader = NeighborLoader(
        data,
        sampler=sampler_of(data, programs.with_degree),
        batch_size=16,
        num_workers=num_workers,
    )
    degree = torch.bincount(data.edge_index[1], minlength=60)
    for batch in loader:
        assert torch.equal(batch.edge_weight, batch.weight)
        assert torch.equal(batch.edge_attr, batch.e_id)
        assert torch.equal(batch.degree, degree[batch.n_id])
        assert torch.equal(batch.x.view(-1), batch.n_id)
        assert batch.edge_weight.numel() == batch.num_edges > 0
        ends = batch.n_id[batch.edge_index]
        assert torch.equal(ends, data.edge_index[:, batch.e_id])


def test_attributes_arrive_with_wide_features():
    data = weighted()
    data.x = torch.randn(60, 32)
    loader = NeighborLoader(data, sampler=sampler_of(data), batch_size=30)
    for batch in loader:
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert batch.edge_weight.numel() == batch.num_edges


def test_a_transform_sees_the_attributes():
    def transform(batch):
        batch.total = batch.edge_weight.sum()
        return batch

    data = weighted()
    loader = NeighborLoader(
        data, sampler=sampler_of(data), batch_size=30, transform=transform
    )
    for batch in loader:
        assert batch.total == batch.edge_weight.sum() > 0


def test_typed_attributes_arrive_in_their_types():
    for batch in typed_loader():
        rates = batch[RATES]
        assert torch.equal(rates.edge_weight, rates.weight)
        assert 'edge_weight' not in batch[FOLLOWS]
        assert torch.equal(batch['item'].number, batch['item'].n_id.float())
        assert 'number' not in batch['user']


def test_a_changed_sample_does_not_get_the_attributes_of_the_former():
    def drop(out):
        out.row, out.col, out.edge = out.row[1:], out.col[1:], out.edge[1:]
        return out

    data = weighted()
    loader = NeighborLoader(
        data,
        sampler=sampler_of(data),
        batch_size=30,
        transform_sampler_output=drop,
    )
    with pytest.raises(ValueError, match="'edge_weight' must have a row for"):
        next(iter(loader))


def test_pygs_node_loader_takes_it():
    data = weighted()
    loader = NodeLoader(data, node_sampler=sampler_of(data), batch_size=16)
    batches = list(loader)
    assert [b.batch_size for b in batches] == [16, 16, 16, 12]
    for batch in batches:
        assert 'edge_weight' not in batch
        assert torch.equal(batch.edge_attr, batch.e_id)
        assert torch.equal(batch.input_id, batch.n_id[: batch.batch_size])


NEGATIVES = [None, ('binary', 1), ('binary', 2.5), ('triplet', 2)]


def loader_of_links(kind, data, **options):
    sampler = options.pop('sampler')
    if kind is LinkLoader:
        return LinkLoader(data, link_sampler=sampler, **options)
    return LinkNeighborLoader(data, sampler=sampler, **options)


@pytest.mark.parametrize('kind', [LinkLoader, LinkNeighborLoader])
@pytest.mark.parametrize('mode', NEGATIVES)
def test_links_find_their_ends(kind, mode):
    data = weighted()
    negative = mode and {'mode': mode[0], 'amount': mode[1]}
    loader = loader_of_links(
        kind,
        data,
        sampler=sampler_of(data, true_negatives=True),
        neg_sampling=negative,
        batch_size=300,
    )
    edges = set(zip(*data.edge_index.tolist(), strict=True))
    for batch in loader:
        expected = data.edge_index[:, batch.input_id]
        if mode is not None and mode[0] == 'triplet':
            src, dst = batch.src_index, batch.dst_pos_index
            pairs = batch.n_id[torch.stack([src, dst])]
            assert torch.equal(pairs, expected)
            for v, u in zip(batch.dst_neg_index, src, strict=True):
                for w in batch.n_id[v].tolist():
                    assert (int(batch.n_id[u]), w) not in edges
            continue
        pairs = batch.n_id[batch.edge_label_index]
        assert torch.equal(pairs[:, :300], expected)
        if mode is not None:
            assert batch.edge_label.tolist() == [1.0] * 300 + [0.0] * (
                pairs.shape[1] - 300
            )
            assert pairs.shape[1] == 300 + int(300 * mode[1])
            negatives = pairs[:, 300:].t().tolist()
            assert not edges & {tuple(pair) for pair in negatives}


@pytest.mark.parametrize('reverse', [False, True])
def test_excluded_seed_edges_take_their_values_along(reverse):
    data = weighted()
    loader = LinkNeighborLoader(
        data,
        sampler=sampler_of(
            data,
            programs.sage,
            exclude_seed_edges='reverse' if reverse else True,
        ),
        batch_size=200,
    )
    for batch in loader:
        seeds = data.edge_index[:, batch.input_id].t().tolist()
        seeds = {tuple(pair) for pair in seeds}
        if reverse:
            seeds |= {(v, u) for u, v in seeds}
        left = batch.n_id[batch.edge_index].t().tolist()
        assert not seeds & {tuple(pair) for pair in left}
        assert torch.equal(batch.edge_weight, batch.weight)
        assert sum(batch.num_sampled_edges) == batch.num_edges > 0


@pytest.mark.parametrize('edge_type', [RATES, FOLLOWS])
def test_typed_links_find_their_ends(edge_type):
    data = graphs.heterogeneous()
    sampler = ProgramSampler(
        data, programs.typed_sage, graphs.each(data, [3, 2]), seed=0
    )
    loader = LinkNeighborLoader(
        data,
        sampler=sampler,
        edge_label_index=edge_type,
        neg_sampling='binary',
        batch_size=7,
    )
    src, _, dst = edge_type
    for batch in loader:
        store = batch[edge_type]
        size = store.input_id.numel()
        rows, cols = store.edge_label_index[:, :size]
        pairs = torch.stack([batch[src].n_id[rows], batch[dst].n_id[cols]])
        expected = data[edge_type].edge_index[:, store.input_id]
        assert torch.equal(pairs, expected)


def test_batches_of_induced_subgraphs_come_through():
    data = weighted()
    loader = NeighborLoader(
        data, sampler=sampler_of(data, programs.induced), batch_size=5
    )
    for batch in loader:
        assert 'num_sampled_edges' not in batch
        assert torch.equal(batch.edge_weight, batch.weight)
        nodes = set(batch.n_id.tolist())
        count = sum(
            u in nodes and v in nodes for u, v in data.edge_index.t().tolist()
        )
        assert batch.num_edges == count


def test_edges_of_a_programs_own_have_no_attributes():
    data = graphs.homogeneous()
    loader = NeighborLoader(
        data,
        sampler=ProgramSampler(
            data, programs.ring, own_edges=True, num_nodes=30
        ),
        batch_size=4,
    )
    batch = next(iter(loader))
    assert 'edge_attr' not in batch
    assert 'e_id' not in batch
    assert batch.n_id.tolist() == [0, 1, 2, 3, 4]
    assert batch.edge_weight.tolist() == [0.5] * 4


def typed_ring(A, seeds):
    [(edge_type, matrix)] = [
        (t, m) for t, m in A.items() if t[2] == 'item' and m.num_edges > 0
    ][:1]
    return {edge_type: matrix[:, seeds['item']]}


def test_typed_edges_of_a_programs_own_have_no_attributes():
    data = graphs.heterogeneous()
    loader = NeighborLoader(
        data,
        sampler=ProgramSampler(data, typed_ring, own_edges=True),
        input_nodes='item',
        batch_size=4,
    )
    batch = next(iter(loader))
    assert sum(batch.num_edges_dict.values()) > 0
    for store in batch.edge_stores:
        assert 'e_id' not in store
        assert 'edge_attr' not in store
