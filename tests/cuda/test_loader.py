"""Samplers and loaders on a GPU, and on the CPU in its place.

Without a GPU all of Python's part runs with the CPU as the device: where
tensors are moved, pinned and collected, and in which order streams wait. With
one, the same tests run there.
"""

from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NodeSamplerInput

from tests.cuda.conftest import ON_GPU
from torch_gsample import as_graph, ops, placement, quantize_rows
from torch_gsample.loader import (
    LinkNeighborLoader,
    NeighborLoader,
    gpu_batches,
)
from torch_gsample.ops import sample_batches
from torch_gsample.samplers import NeighborSampler
from torch_gsample.samplers.neighbor.neighborhood import (
    Neighborhood,
    batches_in_launch,
)

CPU = torch.device('cpu')


class FakeCuda:
    """Streams that record their calls."""

    def __init__(self):
        self.log = []
        self.made = 0  # streams

    def device(self, device):
        return nullcontext()

    def Stream(self, device):
        self.made += 1
        return self.stream_named('side')

    def stream(self, stream):
        self.log.append(f'on {stream.name}')
        return nullcontext()

    def current_stream(self, device):
        return self.stream_named('main')

    def stream_named(self, name):
        def record_event():
            self.log.append(f'{name} records')
            return name

        return SimpleNamespace(
            name=name,
            record_event=record_event,
            wait_event=lambda event: self.log.append(f'{name} after {event}'),
        )


@pytest.fixture
def in_place(monkeypatch, driver):
    """The CPU in the place of a GPU."""

    def on(self, device, kind, induced, cache_bytes):
        if device is None:
            return self
        return self.place(placement.Placement(CPU, kind == 'uva'))

    monkeypatch.setattr(
        'torch_gsample.samplers.neighbor.node_wise.read_device',
        lambda _, device: None if device == 'cpu' else CPU,
    )
    monkeypatch.setattr(Neighborhood, 'on', on)
    fake = FakeCuda()
    monkeypatch.setattr(gpu_batches, 'cuda', fake)
    monkeypatch.setattr(
        gpu_batches, '_stream', cache(gpu_batches._stream.__wrapped__)
    )
    monkeypatch.setattr(Data, 'record_stream', lambda *_: None)
    monkeypatch.setattr(HeteroData, 'record_stream', lambda *_: None)
    return fake


@pytest.fixture(params=['in-place'] + ON_GPU)
def gpu(request):
    """Where batches are when they are made on the device `'cuda'`."""
    if request.param == 'gpu':
        return torch.device('cuda', torch.cuda.current_device())
    request.getfixturevalue('in_place')
    return CPU


def some_data():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(50, (2, 400), generator=generator)
    return Data(
        x=torch.randn(50, 40, generator=generator),
        y=torch.arange(50),
        edge_index=edge_index,
        edge_attr=torch.arange(800.0).view(400, 2),
        edge_weight=torch.rand(400, generator=generator),
        time=torch.randint(9, (400,), generator=generator),
        note=torch.tensor([1, 2, 3]),
    )


def some_hetero_data():
    generator = torch.Generator().manual_seed(1)
    data = HeteroData()
    for name, size in (('user', 30), ('item', 40)):
        data[name].x = torch.randn(size, 20, generator=generator)
    for src, dst in (('user', 'item'), ('item', 'user'), ('item', 'item')):
        sizes = data[src].num_nodes, data[dst].num_nodes
        rows = [torch.randint(n, (200,), generator=generator) for n in sizes]
        data[src, 'to', dst].edge_index = torch.stack(rows)
        data[src, 'to', dst].edge_attr = torch.arange(200.0)
    return data


def assert_equal_batches(batch, want, device):
    """The same attributes, and all of the first on the device."""
    given, wanted = batch.to_dict(), want.to_dict()
    assert_equal_items(given, wanted, device)


def assert_equal_items(value, want, device):
    if isinstance(want, dict):
        assert list(value) == list(want)
        for key in want:
            assert_equal_items(value[key], want[key], device)
    elif isinstance(want, torch.Tensor):
        assert value.device == device
        assert value.dtype == want.dtype
        assert torch.equal(value.cpu(), want)
    else:
        assert value == want


OPTIONS = [
    {},
    {'replace': True, 'disjoint': True},
    {'weight_attr': 'edge_weight'},
    {'time_attr': 'time', 'input_time': torch.arange(50) % 9},
    {'subgraph_type': 'bidirectional'},
    {'prefetch': 0},
]


@pytest.mark.parametrize('kind', ['gpu', 'uva'])
@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_batches_equal_those_of_the_cpu(gpu, options, kind):
    data = some_data()
    options = dict(options, batch_size=16, seed=3, shuffle=False)
    loaders = [
        NeighborLoader(data, [4, 3], device=device, **more, **options)
        for device, more in (
            ('cuda', {'graph_placement': kind}),
            ('cpu', {}),
        )
    ]
    for _ in range(2):
        for batch, want in zip(*loaders, strict=True):
            assert_equal_batches(batch, want, gpu)


@pytest.fixture
def calls(monkeypatch):
    """How many batches each call has."""
    calls = []

    def counted(*args, **kwargs):
        calls.append(args[3].shape[0])  # keys
        return sample_batches(*args, **kwargs)

    monkeypatch.setattr(ops, 'sample_batches', counted)
    return calls


def assert_equal_loaders(cls, gpu, data, fanouts, **given):
    batches = [
        list(cls(data, fanouts, device=device, seed=3, **given))
        for device in ('cuda', 'cpu')
    ]
    for batch, want in zip(*batches, strict=True):
        assert_equal_batches(batch, want, gpu)


@pytest.mark.parametrize('shuffle', [False, True])
def test_several_batches_are_one_call(gpu, calls, shuffle):
    """Ten batches, in windows of eight."""
    given = {'batch_size': 5, 'shuffle': shuffle}
    assert_equal_loaders(NeighborLoader, gpu, some_data(), [4, 3], **given)
    given = {'batch_size': 4, 'shuffle': shuffle, 'input_nodes': 'item'}
    data = some_hetero_data()
    assert_equal_loaders(NeighborLoader, gpu, data, [3, 2], **given)
    assert calls == [8, 2, 8, 2]


@pytest.mark.parametrize('edge_type', [None, ('user', 'to', 'item')])
def test_several_batches_of_links_are_one_call(gpu, calls, edge_type):
    data = some_hetero_data() if edge_type else some_data()
    index = (data[edge_type] if edge_type else data).edge_index[:, :32]
    assert_equal_loaders(
        *(LinkNeighborLoader, gpu, data, [3, 2]),
        edge_label_index=(edge_type, index) if edge_type else index,
        neg_sampling='binary',
        batch_size=4,
    )
    assert calls == [8]


def test_failing_groups_are_sampled_one_by_one(gpu, monkeypatch):
    def failing(*args, **kwargs):
        raise RuntimeError('no memory for these')

    monkeypatch.setattr(ops, 'sample_batches', failing)
    loader = NeighborLoader(some_data(), [2], batch_size=25, device='cuda')
    with pytest.warns(UserWarning, match='no memory for these'):
        assert [batch.batch_size for batch in loader] == [25, 25]


@pytest.mark.parametrize(
    ('num_seeds', 'fanouts', 'batches'),
    [
        (1024, [15, 10, 5], 4),
        (1024, [25, 10], 14),
        (0, [], 2**22),
        (8192, [25, 25, 25], 1),
        (4, [-1], 1),
    ],
)
def test_as_many_batches_in_a_launch_as_have_room(num_seeds, fanouts, batches):
    sizes, graph = {None: num_seeds}, as_graph(some_data().edge_index)
    assert batches_in_launch(sizes, graph, [fanouts]) == batches


def test_edges_of_types_bound_a_launch():
    """A hop samples from the nodes that the one before visits."""
    graph = as_graph(some_hetero_data())
    fanouts = {
        ('user', 'to', 'item'): [10, 5],
        ('item', 'to', 'user'): [-1, 2],
        ('item', 'to', 'item'): [3, 1],
    }
    fanouts = [fanouts[t] for t in graph.edge_types]
    hops = [100, 10 * 100 + 3 * 100, 300 * 5 + 1000 * 2 + 300]
    assert batches_in_launch({'item': 100}, graph, fanouts) == 2**22 // sum(
        hops
    )
    assert batches_in_launch({'user': 1}, graph, fanouts) == 1


@pytest.mark.parametrize('kind', ['gpu', 'uva'])
def test_widened_features_equal_those_of_the_cpu(gpu, kind):
    data = some_data()
    data.half = data.x.half()
    data.x, data.x_scale = quantize_rows(data.x)
    options = dict(batch_size=16, seed=3, widen_features=True)
    cpu = NeighborLoader(data, [4, 3], **options)
    device = NeighborLoader(
        data, [4, 3], device='cuda', graph_placement=kind, **options
    )
    for batch, want in zip(device, cpu, strict=True):
        assert_equal_batches(batch, want, gpu)
        assert batch.x.dtype == batch.half.dtype == torch.float32


@pytest.mark.parametrize('kind', ['gpu', 'uva'])
def test_hetero_batches_equal_those_of_the_cpu(gpu, kind):
    data = some_hetero_data()
    options = {'input_nodes': 'item', 'batch_size': 16, 'seed': 3}
    loaders = [
        NeighborLoader(
            data, [4, 3], device=device, graph_placement=kind, **options
        )
        for device in ('cuda', 'cpu')
    ]
    for batch, want in zip(*loaders, strict=True):
        assert_equal_batches(batch, want, gpu)


@pytest.mark.parametrize('disjoint', [False, True])
@pytest.mark.parametrize('exclude', [False, 'reverse'])
def test_link_batches_equal_those_of_the_cpu(gpu, disjoint, exclude):
    data = some_data()
    loaders = [
        LinkNeighborLoader(
            data,
            [4, 3],
            edge_label_index=data.edge_index[:, ::9],
            neg_sampling='binary',
            batch_size=16,
            seed=3,
            disjoint=disjoint,
            exclude_seed_edges=exclude,
            device=device,
        )
        for device in ('cuda', 'cpu')
    ]
    for batch, want in zip(*loaders, strict=True):
        assert_equal_batches(batch, want, gpu)


def test_a_transform_sees_batches_that_have_arrived(gpu):
    seen = []

    def transform(batch):
        seen.append(batch.x.device)
        return batch.num_nodes

    loader = NeighborLoader(
        some_data(), [2], batch_size=25, device='cuda', transform=transform
    )
    assert all(isinstance(nodes, int) for nodes in loader)
    assert seen == [gpu, gpu]


def test_streams_wait_for_each_other(in_place):
    loader = NeighborLoader(some_data(), [2], batch_size=25, device='cuda')
    batches = iter(loader)
    first = ['main records', 'side after main', 'on side']
    next(batches)
    assert in_place.log[:3] == first
    assert len(list(batches)) == 1
    rest = in_place.log[3:]
    assert rest.count('side records') == rest.count('main after side') == 2
    assert rest.index('side records') < rest.index('main after side')


def test_loaders_share_one_stream(in_place):
    for _ in range(2):
        loader = NeighborLoader(some_data(), [2], batch_size=25, device='cuda')
        for _ in range(2):
            assert len(list(loader)) == 2
    assert in_place.made == 1


# Errors ######################################################################


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'num_workers': 2}, "'num_workers' must be 0 with .* \\(got 2\\)"),
        ({'pin_memory': True}, "'pin_memory' must not be set"),
    ],
)
@pytest.mark.parametrize('name', ['NeighborLoader', 'LinkNeighborLoader'])
def test_loaders_do_not_have_workers(gpu, name, options, message):
    sampler = NeighborSampler(some_data(), [2], device='cuda')
    loader = {
        'NeighborLoader': NeighborLoader,
        'LinkNeighborLoader': LinkNeighborLoader,
    }[name]
    with pytest.raises(ValueError, match=f'{name}: {message}'):
        loader(some_data(), sampler=sampler, **options)


def test_stores_stay_on_the_cpu(gpu):
    data = some_data()
    sampler = NeighborSampler(data, [2], device='cuda')
    with pytest.raises(ValueError, match="needs 'data' as Data or"):
        NeighborLoader(
            (data, data), sampler=sampler, input_nodes=torch.arange(4)
        )


def test_samplers_say_that_they_are_in_a_worker(gpu):
    sampler = NeighborSampler(some_data(), [2], device='cuda')
    loader = torch.utils.data.DataLoader(
        torch.arange(4),
        num_workers=1,
        collate_fn=lambda nodes: sampler.sample_from_nodes(
            NodeSamplerInput(None, torch.stack(nodes))
        ),
    )
    with pytest.raises(RuntimeError, match='must not be used in a worker'):
        list(loader)


def test_samplers_say_that_they_were_forked(gpu, monkeypatch):
    sampler = NeighborSampler(some_data(), [2], device='cuda')
    monkeypatch.setattr(torch.cuda, '_is_in_bad_fork', lambda: True)
    with pytest.raises(RuntimeError, match='forked after CUDA was used'):
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([0])))
