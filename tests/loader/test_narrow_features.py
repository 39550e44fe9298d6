"""Features in fewer bits are float32 in batches, by the same rows."""

import pickle
import re

import pytest
import torch
from torch_geometric.data import HeteroData

from tests.loader.batches import graph, loader_of
from torch_gsample import LaborSampler, loader, quantize_rows
from torch_gsample.ops import gather_rows

DTYPES = [torch.bfloat16, torch.float16, torch.int8]


def store_narrow(store, key, value, dtype):
    """Puts features into a store, and returns their float32 values."""
    if dtype == torch.int8:
        values, scale = quantize_rows(value)
        store[key], store[f'{key}_scale'] = values, scale
        return values.float() * scale.view(-1, *[1] * (value.dim() - 1))
    store[key] = value.to(dtype)
    return store[key].float()


def check(batches, want, key='x'):
    assert batches
    for batch in batches:
        assert batch[key].dtype == torch.float32
        assert torch.equal(batch[key], want[batch.n_id])
        assert f'{key}_scale' not in batch


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('num_workers', [0, 1])
@pytest.mark.parametrize('shape', [(40,), (3,), (), (2, 20)])
def test_batches_have_the_widened_rows(shape, num_workers, dtype):
    data = graph()
    want = store_narrow(data, 'x', torch.randn(data.num_nodes, *shape), dtype)
    kept = data.to_dict()
    options = dict(num_workers=num_workers, widen_features=True)
    check(list(loader_of(data, **options)), want)
    assert all(data[key] is value for key, value in kept.items())


def test_workers_join_widened_features():
    data = graph()
    want = store_narrow(data, 'x', torch.randn(data.num_nodes, 8), torch.int8)
    options = dict(num_workers=1, filter_per_worker=True, widen_features=True)
    check(list(loader_of(data, **options)), want)


@pytest.mark.parametrize('dtype', DTYPES)
def test_typed_graphs_have_them_by_type(dtype):
    data = HeteroData()
    data['a'].x, data['b'].x = torch.randn(30, 4), torch.randn(20, 50)
    want = {
        kind: store_narrow(data[kind], 'x', data[kind].x, dtype)
        for kind in 'ab'
    }
    data['a', 'to', 'b'].edge_index = torch.stack(
        [torch.randint(30, (99,)), torch.randint(20, (99,))]
    )
    batches = loader.NeighborLoader(
        data, [3], input_nodes='b', batch_size=7, widen_features=True
    )
    for batch in batches:
        for kind in 'ab':
            rows = want[kind][batch[kind].n_id]
            assert torch.equal(batch[kind].x, rows)
            assert 'x_scale' not in batch[kind]


def test_other_samplers_and_shapes_widen_too():
    data = graph()
    want = store_narrow(data, 'x', torch.randn(data.num_nodes, 8), torch.int8)
    options = dict(batch_size=16, widen_features=True)
    sampler = LaborSampler(data, [4, 3], seed=0)
    check(list(loader.NeighborLoader(data, sampler=sampler, **options)), want)
    for batch in loader_of(data, static_shapes=1, **options):
        real = batch.node_mask
        assert torch.equal(batch.x[real], want[batch.n_id[real]])
        assert not batch.x[~real].any()


def test_narrow_features_stay_narrow_by_default():
    data = graph()
    store_narrow(data, 'x', torch.randn(data.num_nodes, 40), torch.int8)
    data.half = torch.randn(data.num_nodes, 40).half()
    for batch in loader_of(data):
        assert batch.x.dtype == torch.int8
        assert batch.half.dtype == torch.half
        assert torch.equal(batch.x_scale, data.x_scale[batch.n_id])


def test_bytes_without_scales_and_other_numbers_stay():
    data = graph()
    n = data.num_nodes
    data.x, data.y = torch.randn(n, 40).half(), torch.arange(n)
    data.kind = torch.ones(n, 70, dtype=torch.int8)
    data.table = torch.ones(3, 2).half()  # of no node
    for batch in loader_of(data, widen_features=True):
        dtypes = [batch[key].dtype for key in ('x', 'y', 'kind', 'table')]
        assert dtypes == [
            torch.float32,
            torch.int64,
            torch.int8,
            torch.half,
        ]


@pytest.mark.parametrize('dtype', DTYPES)
def test_rows_of_a_mapped_file_are_widened(tmp_path, dtype):
    """What `torch.load` maps is read row by row."""
    data, mapped = graph(), graph()
    want = store_narrow(data, 'x', torch.randn(data.num_nodes, 40), dtype)
    names = [key for key in ('x', 'x_scale') if key in data]
    torch.save({key: data[key] for key in names}, tmp_path / 'x.pt')
    stored = torch.load(tmp_path / 'x.pt', mmap=True, weights_only=True)
    for key in names:
        mapped[key] = stored[key]
    check(list(loader_of(mapped, widen_features=True)), want)


def test_graphs_with_them_move_and_pickle_as_others():
    data = graph()
    want = store_narrow(data, 'x', torch.randn(data.num_nodes, 8), torch.int8)
    copy = pickle.loads(pickle.dumps(data)).share_memory_()
    index = torch.tensor([4, 0])
    assert torch.equal(gather_rows(copy.x, index, copy.x_scale), want[index])
    check(list(loader_of(copy.clone(), widen_features=True)), want)


def bad_graph(**attributes):
    data = graph()
    n = data.num_nodes
    data.x = torch.ones(n, 8, dtype=torch.int8)
    data.x_scale = torch.ones(n)
    for key, value in attributes.items():
        data[key] = value(n)
    return data


@pytest.mark.parametrize(
    ('attributes', 'message'),
    [
        ({'x_scale': lambda n: torch.ones(n - 1)}, "'x_scale' must be float3"),
        ({'x_scale': lambda n: torch.ones(n).double()}, 'torch.float64 of'),
        (
            {'x_scale': lambda n: torch.ones(n, requires_grad=True)},
            'without gradients',
        ),
        (
            {'x': lambda n: torch.ones(8, n).half().t()},
            "needs contiguous features without gradients (got 'x', strides",
        ),
        (
            {'x': lambda n: torch.ones(n, 8).half().requires_grad_()},
            'requires_grad=True)',
        ),
    ],
)
def test_bad_features_are_refused(attributes, message):
    data = bad_graph(**attributes)
    with pytest.raises(ValueError, match=r'NeighborLoader: .*') as caught:
        loader_of(data, widen_features=True)
    assert re.search(re.escape(message), str(caught.value))


def test_bad_options_are_refused():
    with pytest.raises(TypeError, match="'widen_features' must be"):
        loader_of(graph(), widen_features='int8')
