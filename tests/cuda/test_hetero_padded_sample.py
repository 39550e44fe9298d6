"""hetero_neighbor_sample_padded on the (emulated) GPU against the CPU."""

import pytest
import torch

from tests.cuda.conftest import ON_CUDA
from tests.cuda.test_hetero_neighbor_sample import SHAPES, some_seeds
from tests.ops import test_hetero_neighbor_sample as hetero
from tests.ops.cases import OPTIONS
from tests.ops.compare import assert_equal_tensors
from torch_gsample import ops
from torch_gsample.ops import HeteroPaddedSample
from torch_gsample.rng import EPOCH_SCOPE, make_key

ON_CPU = torch.ops.gsample.hetero_neighbor_sample_padded
KEY = make_key(2, 1, 3)


def on_device(cuda, *args, **options):
    operator = cuda.operator('hetero_neighbor_sample_padded')
    return operator(*args, **options)


def assert_same(cuda, fanouts, key=KEY, more=0, **options):
    """The sample of a device is the CPU's, with room for some edges more."""
    graphs, seeds = hetero.some_graphs(), some_seeds()
    before, given = hetero.operator_arguments(
        graphs, seeds, fanouts, **options
    )
    small = hetero.sample(graphs, seeds, fanouts, key, **options)
    edges = [row.numel() + more * r for r, row in enumerate(small.row)]
    args = *before, key, edges
    want = ON_CPU(*args, **given)
    assert_equal_tensors(on_device(cuda, *args, **given), want)


@pytest.mark.parametrize('options', OPTIONS)
def test_it_equals_the_cpu_in_any_order(cuda, options):
    for seed, fanouts in enumerate(hetero.FANOUTS):
        cuda.configure(seed, *SHAPES[(seed + len(options)) % len(SHAPES)])
        assert_same(cuda, fanouts, more=seed % 3, **OPTIONS[options])


@pytest.mark.parametrize('seed', range(8))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    fanouts = [[2, 2, 2], [3, 1, 2], [-1, 2, 1], [1, 1, 1], [5, 5, 5], [1] * 3]
    assert_same(cuda, fanouts, more=2, return_edge_id=seed % 2 == 0)


@pytest.mark.sanitize
@pytest.mark.parametrize('options', ['plain', 'temporal-all'])
def test_memory_and_order(cuda, options):
    cuda.configure(1, 3, 32)
    assert_same(cuda, hetero.FANOUTS[2], more=1, **OPTIONS[options])


def test_keys_of_the_epoch_scope(cuda):
    cuda.configure()
    key = make_key(3, 1, EPOCH_SCOPE)
    assert_same(cuda, hetero.FANOUTS[2], key, disjoint=True)


def test_graphs_without_relations_or_types(cuda):
    cuda.configure()
    seeds = torch.tensor([1, 0, 1])
    for sizes, given in (([], []), ([2], [seeds]), ([2, 3], [seeds, seeds])):
        args = [], [], [], [], sizes, given, [], [], [], [], KEY, []
        want = ON_CPU(*args)
        assert_equal_tensors(on_device(cuda, *args), want)


def test_one_relation_between_two_types(cuda):
    """Its edges stay where they were sampled."""
    cuda.configure()
    graph = torch.tensor([0, 2, 3, 5]), torch.tensor([4, 1, 2, 0, 4])
    seeds = torch.tensor([2, 0]), torch.tensor([4])
    for most in (4, 6):
        args = [graph[0]], [graph[1]], [1], [0], [3, 5], [*seeds], [-1, 2]
        args = *args, [], [], [], KEY, [most]
        want = ON_CPU(*args)
        assert_equal_tensors(on_device(cuda, *args), want)


def faulty(cuda, seeds=(0, 1), indptr=(0, 2, 4), indices=(0, 1, 1, 0)):
    """Two relations into type 0; the second one is what is given."""
    cuda.configure()
    good = torch.tensor([0, 1, 2]), torch.tensor([1, 2])
    out = on_device(
        cuda,
        [good[0], torch.tensor(indptr)],
        [good[1], torch.tensor(indices)],
        *[[1, 0], [0, 0], [2, 3], [torch.tensor(seeds), torch.tensor([2])]],
        *[[-1] * 4, [], [], [], KEY, [3, 9]],
    )
    return checked(out)


def checked(out):
    """A sample, which is empty if there is a fault."""
    out = HeteroPaddedSample(*out)
    if int(out.fault[0]) != 0:
        for tensors in (out.row, out.col, out.edge, out.node):
            assert {i for t in tensors for i in t.tolist()} <= {-1}
        assert int(out.num_nodes.sum()) == int(out.num_edges.sum()) == 0
    return out


@pytest.mark.sanitize
def test_faults_are_noted_and_the_sample_is_empty(cuda):
    faulty(cuda).check()
    with pytest.raises(IndexError, match='2 at position 1 of node type 0'):
        faulty(cuda, seeds=(0, 2)).check()
    with pytest.raises(RuntimeError, match=r"'indptr' must .* relation 1"):
        faulty(cuda, indptr=(0, 5, 4)).check()
    with pytest.raises(RuntimeError, match=r"'indices' must .* relation 1"):
        faulty(cuda, indices=(0, 1, 1, 2)).check()


@pytest.mark.sanitize
def test_an_edge_from_a_type_without_nodes_has_a_place(cuda):
    cuda.configure()
    graph = [torch.tensor([0, 1])], [torch.tensor([0])]
    types = [1], [0], [1, 0], [torch.tensor([0]), graph[0][0][:0]]
    out = on_device(cuda, *graph, *types, [1], [], [], [], KEY, [9])
    with pytest.raises(RuntimeError, match='edge 0 of relation 0'):
        checked(out).check()
    assert len(out[2][1]) == 1


@pytest.mark.sanitize
@pytest.mark.parametrize('relation', [0, 1, 2, 3, 5])
def test_a_relation_takes_no_room_of_others(cuda, relation):
    """One edge is too many, whatever the others have left."""
    cuda.configure(relation, *SHAPES[relation % len(SHAPES)])
    graphs, seeds, fanouts = hetero.some_graphs(), some_seeds(), [[2, 3]] * 6
    before, _ = hetero.operator_arguments(graphs, seeds, fanouts)
    small = hetero.sample(graphs, seeds, fanouts, KEY)
    edges = [row.numel() for row in small.row]
    for more in (0, 50):
        room = [n + more for n in edges]
        room[relation] = edges[relation] - 1
        out = checked(on_device(cuda, *before, KEY, room))
        said = f'at least {edges[relation]} of relation {relation}'
        with pytest.raises(RuntimeError, match=said):
            out.check()


@pytest.mark.parametrize('device', ON_CUDA)
def test_a_cuda_graph_samples_anew_for_each_key(device):
    """It takes a GPU: the key is read, and the seeds, at each replay."""
    host = hetero.some_graphs(), some_seeds()
    most = [120, 120, 120, 120, 0, 120]
    key = make_key(0).to(device)

    def put(tensors):
        return [tensor.to(device) for tensor in tensors]

    def sample(indptr, indices, seeds, key):
        return ops.hetero_neighbor_sample_padded(
            *[indptr, indices, hetero.RELATIONS, hetero.NUM_NODES, seeds],
            *[[[3, 2]] * 6],
            key=key,
            max_edges=most,
        )

    indptr, indices = [g.indptr for g in host[0]], [g.indices for g in host[0]]
    there = put(indptr), put(indices), put(host[1])
    sample(*there, key)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = sample(*there, key)
    for batch in range(3):
        now = make_key(0, batch=batch)
        seeds = [
            (s + batch) % max(n, 1)
            for s, n in zip(host[1], hetero.NUM_NODES, strict=True)
        ]
        key.copy_(now)
        for to, tensor in zip(there[2], seeds, strict=True):
            to.copy_(tensor)
        captured.replay()
        want = sample(indptr, indices, seeds, now)
        out.check()
        assert_equal_tensors(
            [[x.cpu() for x in part] for part in out[:5]], list(want[:5])
        )
        assert_equal_tensors([x.cpu() for x in out[5:]], want[5:])
