"""Samplers with parameters draw when a batch is asked for.

Or workers draw, of which `test_replay.py` has the tests.
"""

import copy

import pytest
import torch
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler

from tests.loader.batches import end_workers, loader_of, run
from tests.samplers import graphs
from torch_gsample import NeighborSampler, ProgramSampler, compile
from torch_gsample.algorithms import AsGCN, PassSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.rng import batch_scope
from torch_gsample.samplers.output.attributes import AttributedOutput
from torch_gsample.samplers.program.gradients import is_trainable

with torch.random.fork_rng(devices=[]):
    torch.manual_seed(4)
    X = torch.randn(60, 4)
    PROGRAMS = {'PassSampler': PassSampler(4, 8), 'AsGCN': AsGCN(4)}
DATA = graphs.homogeneous(num_nodes=60, num_edges=900)


def hidden(A, seeds, fanouts, **unused):
    """Parameters that no argument shows."""
    return PROGRAMS['PassSampler'](A, seeds, fanouts, X)


def sampler_of(program, **options):
    if program is not hidden:
        options['x'] = X
    return ProgramSampler(DATA, program, [6, 4], seed=0, **options)


def loader_with(sampler, kind=NeighborLoader, **options):
    return kind(DATA, sampler=sampler, batch_size=16, **options)


@pytest.mark.parametrize('kind', [NeighborLoader, LinkNeighborLoader])
@pytest.mark.parametrize('name', PROGRAMS)
def test_batches_made_ahead_are_refused(name, kind):
    sampler = sampler_of(PROGRAMS[name])
    match = f"{kind.__name__}: 'prefetch' must be 0 .*{name}.*got 2"
    for num_workers in (0, 1):
        options = {'num_workers': num_workers}
        with pytest.raises(ValueError, match=match):
            loader_with(sampler, kind, prefetch=2, **options)
        assert loader_with(sampler, kind, **options).prefetch == 0


def test_parameters_are_found_wherever_a_program_has_them():
    module = PROGRAMS['AsGCN']
    w = module.weight
    for options in (
        {'program': module.forward},
        {'program': compile(module)},
        {'program': lambda A, seeds, fanouts, x: module(A, seeds, fanouts, x)},
        {'program': lambda A, seeds, fanouts, x: [A * w[0]]},
        {'program': hidden, 'policy': [{'w': w}]},
        {'program': hidden, 'model': module},
    ):
        sampler = ProgramSampler(DATA, fanouts=[2], x=X, **options)
        assert is_trainable(sampler)
    assert not is_trainable(ProgramSampler(DATA, hidden, [2], x=X))
    weighted = copy.copy(DATA)
    weighted.weight = torch.ones(900, requires_grad=True)
    sampler = ProgramSampler(weighted, hidden, [2], weight_attr='weight')
    assert is_trainable(sampler)


def test_a_frozen_sampler_has_workers():
    module = copy.deepcopy(PROGRAMS['PassSampler']).requires_grad_(False)
    loaders = [
        loader_with(sampler_of(module, share_memory=True), num_workers=n)
        for n in (0, 2)
    ]
    assert loaders[0].prefetch == 2
    assert run(loaders[0]) == run(loaders[1])


def trained(batches, module):
    """Edges and gradients of each batch, while an optimizer takes steps."""
    optimizer, seen = torch.optim.SGD(module.parameters(), lr=10.0), []
    for edge, weight in batches:
        optimizer.zero_grad()
        (weight * torch.arange(weight.numel())).sum().backward()
        grads = [p.grad.clone() for p in module.parameters()]
        seen.append((edge.tolist(), [g.tolist() for g in grads]))
        optimizer.step()
    return seen


@pytest.mark.parametrize('compile', [False, True])
@pytest.mark.parametrize('name', PROGRAMS)
def test_batches_are_drawn_by_the_parameters_of_their_step(name, compile):
    def batches(module):
        for i, nodes in enumerate(torch.arange(60).split(16)):
            with batch_scope(0, i):
                out = sampler_of(module).sample_from_nodes(graphs.nodes(nodes))
            yield out.edge, out.attributes.edge[None]['edge_weight']

    module = copy.deepcopy(PROGRAMS[name])
    expected = trained(batches(module), module)
    module = copy.deepcopy(PROGRAMS[name])
    loader = loader_with(sampler_of(module, compile=compile))
    got = trained(((b.e_id, b.edge_weight) for b in loader), module)
    assert [edge for edge, _ in got] == [edge for edge, _ in expected]
    for (_, a), (_, b) in zip(got, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            torch.testing.assert_close(torch.tensor(x), torch.tensor(y))


class Learned(BaseSampler):
    """A user's sampler with gradients in its output."""

    def __init__(self):
        self.sampler = NeighborSampler(DATA, [3], seed=0)
        self.scale = torch.ones(1, requires_grad=True)

    def sample_from_nodes(self, inputs, **kwargs):
        out = self.sampler.sample_from_nodes(inputs)
        out = AttributedOutput(**vars(out))
        weight = self.scale.expand(out.edge.numel()) * 1
        out.attributes.edge[None] = {'edge_weight': weight}
        return out

    def sample_from_edges(self, inputs, **kwargs):
        raise NotImplementedError

    @property
    def edge_permutation(self):
        return self.sampler.edge_permutation


MATCH = "requires gradients .*'num_workers' and 'prefetch' to 0"


@pytest.mark.timeout(60)
@pytest.mark.parametrize('prefetch', [0, 2])
@pytest.mark.parametrize('make', [Learned, lambda: sampler_of(hidden)])
def test_gradients_that_a_worker_cannot_send_are_an_error(make, prefetch):
    loader = loader_with(make(), num_workers=1, prefetch=prefetch)
    iterator = iter(loader)
    with pytest.raises(ValueError, match=MATCH):
        next(iterator)
    end_workers()


@pytest.mark.timeout(60)
def test_gradients_of_a_transform_in_a_worker_are_an_error():
    def scaled(batch):
        batch.x = batch.x * torch.ones(1, requires_grad=True)
        return batch

    options = dict(num_workers=1, prefetch=0, filter_per_worker=True)
    iterator = iter(loader_of(DATA, transform=scaled, **options))
    with pytest.raises(ValueError, match='NeighborLoader: .*' + MATCH):
        next(iterator)
    end_workers()


@pytest.mark.timeout(60)
def test_a_worker_of_pygs_loader_says_it_too():
    loader = NodeLoader(
        DATA, node_sampler=sampler_of(hidden), batch_size=16, num_workers=1
    )
    iterator = iter(loader)
    with pytest.raises(ValueError, match='ProgramSampler: .*' + MATCH):
        next(iterator)
    end_workers()


@pytest.mark.parametrize('make', [Learned, lambda: sampler_of(hidden)])
def test_gradients_of_a_batch_made_ahead_are_an_error(make):
    with pytest.raises(ValueError, match=MATCH):
        next(iter(loader_with(make(), prefetch=2)))
    batch = next(iter(loader_with(make(), prefetch=0)))
    assert batch.edge_weight.requires_grad
