"""Workers draw for samplers that train, and their caller differentiates."""

import copy
import functools

import pytest
import torch

from tests.loader.batches import end_workers
from tests.loader.test_trainable_samplers import DATA, X
from tests.samplers import graphs
from torch_gsample import ProgramSampler, export, load_program
from torch_gsample.algorithms import AsGCN, PassSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.rng import batch_scope
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    DiskModel,
    FeatureFile,
)

pytestmark = pytest.mark.timeout(300)

with torch.random.fork_rng(devices=[]):
    torch.manual_seed(4)
    MODULES = {'PassSampler': PassSampler(4, 8), 'AsGCN': AsGCN(4)}


@pytest.fixture(autouse=True)
def _one_thread():
    """Sums of several threads differ in their last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    end_workers()


def sampler_of(program, **options):
    return ProgramSampler(DATA, program, [6, 4], seed=0, **{'x': X, **options})


def loader_of(sampler, kind=NeighborLoader, num_workers=2, **options):
    options = {'batch_size': 8, 'num_workers': num_workers, **options}
    return kind(DATA, sampler=sampler, **options)


def differentiate(batch, parameters):
    """The sample of a batch, and the gradients of some loss of it."""
    weight = batch.edge_weight
    for p in parameters:
        p.grad = None
    (weight * torch.arange(weight.numel())).sum().backward()
    grads = [p.grad if p.grad is None else p.grad.tolist() for p in parameters]
    return batch.e_id.tolist(), weight.tolist(), grads


def assert_close(found, expected, exact):
    """Compares batches: without a compiler, which rounds as it likes, all."""
    assert not exact or found == expected
    for (edge, *values), (known, *others) in zip(found, expected, strict=True):
        assert edge == known
        for x, y in zip(values, others, strict=True):
            for a, b in zip(x, y, strict=True):
                a, b = torch.tensor(a), torch.tensor(b)
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def run(loader, parameters):
    return [differentiate(batch, parameters) for batch in loader]


# Each pair of module, compiler and loader: a loader sees no compiler.
@pytest.mark.parametrize(
    ('name', 'compile', 'kind'),
    [
        ('PassSampler', False, NeighborLoader),
        ('PassSampler', True, LinkNeighborLoader),
        ('AsGCN', False, LinkNeighborLoader),
        ('AsGCN', True, NeighborLoader),
    ],
)
def test_samples_and_gradients_are_those_without_workers(name, compile, kind):
    module = MODULES[name]
    parameters, found = list(module.parameters()), []
    batch_size = 8 if kind is NeighborLoader else 150
    for num_workers in (0, 2):
        sampler = sampler_of(module, compile=compile)
        loader = loader_of(sampler, kind, num_workers, batch_size=batch_size)
        found.append(run(loader, parameters) + run(loader, parameters))
    assert_close(*found, exact=not compile)
    assert any(grad for _, _, grads in found[0] for grad in grads)


def late(batches, module, steps, epoch=0):
    """What is drawn and differentiated by parameters of some steps before.

    The step of each batch is made by the parameters as they are then.
    """
    old, history, seen = copy.deepcopy(module), [], []
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    sampler = sampler_of(old)
    for i, nodes in enumerate(batches):
        history.append(copy.deepcopy(module.state_dict()))
        old.load_state_dict(history[max(i - steps, 0)])
        with batch_scope(epoch, i):
            out = sampler.sample_from_nodes(graphs.nodes(nodes))
        weight = out.attributes.edge[None]['edge_weight']
        old.zero_grad()
        (weight * torch.arange(weight.numel())).sum().backward()
        grads = [p.grad for p in old.parameters()]
        seen.append(
            (out.edge.tolist(), weight.tolist(), [g.tolist() for g in grads])
        )
        for p, grad in zip(module.parameters(), grads, strict=True):
            p.grad = grad.clone()
        optimizer.step()
    return seen


@pytest.mark.parametrize('compile', [False, True])
@pytest.mark.parametrize(('num_workers', 'factor'), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize('name', MODULES)
def test_a_batch_is_drawn_by_the_parameters_of_the_steps_before(
    name, num_workers, factor, compile
):
    module = copy.deepcopy(MODULES[name])
    batches = torch.arange(60).split(8)
    expected = late(batches, module, num_workers * factor)
    trained = module.state_dict()
    module = copy.deepcopy(MODULES[name])
    loader = loader_of(
        sampler_of(module, compile=compile),
        num_workers=num_workers,
        prefetch_factor=factor,
    )
    found = train_late(loader, module)
    assert_close(found, expected, exact=not compile)
    for key, value in module.state_dict().items():
        torch.testing.assert_close(value, trained[key])


def train_late(loader, module):
    """Batches, while an optimizer takes steps."""
    parameters, found = list(module.parameters()), []
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    for batch in loader:
        found.append(differentiate(batch, parameters))
        optimizer.step()
    return found


def test_spawned_workers_that_persist_leave_parameters_alone():
    """Torch moves pickled tensors to memory that all processes share."""
    module = copy.deepcopy(MODULES['PassSampler'])
    batches = torch.arange(60).split(8)
    expected = [late(batches, module, 2, epoch) for epoch in range(2)]
    trained = [p.tolist() for p in module.parameters()]
    module = copy.deepcopy(MODULES['PassSampler'])
    loader = loader_of(
        sampler_of(module, share_memory=True),
        num_workers=1,
        prefetch_factor=2,
        multiprocessing_context='spawn',
        persistent_workers=True,
    )
    assert [train_late(loader, module) for _ in range(2)] == expected
    assert [p.tolist() for p in module.parameters()] == trained


def programs():
    """Ways in which a program holds parameters."""
    module = MODULES['PassSampler']
    w = torch.rand(60, requires_grad=True)

    def weighted(A, seeds, fanouts, x=None, w=w):
        S = A[:, seeds].individual_sample(fanouts[0])
        return S.mul(w, dim=1)

    def closed(A, seeds, fanouts, x):
        return module(A, seeds, fanouts, x)

    exact = list(module.parameters())
    yield 'closure', closed, {}, exact
    yield 'method', module.forward, {}, exact
    yield 'argument', passed, {'model': module}, exact
    yield 'partial', functools.partial(weighted, w=w), {}, [w]
    yield 'in a list', nested, {'held': [{'w': w}]}, [w]


def passed(A, seeds, fanouts, x, model):
    return model(A, seeds, fanouts, x)


def nested(A, seeds, fanouts, x, held):
    S = A[:, seeds].individual_sample(fanouts[0])
    return [S.mul(held[0]['w'], dim=1)]


@pytest.mark.parametrize('name', [name for name, *_ in programs()])
def test_parameters_are_found_wherever_a_program_has_them(name):
    [(program, options, parameters)] = [
        rest for known, *rest in programs() if known == name
    ]
    found = [
        run(loader_of(sampler_of(program, **options), num_workers=n), p)
        for n, p in ((0, parameters), (1, parameters))
    ]
    assert found[0] == found[1]
    assert found[0][0][2][0] is not None


def test_an_exported_program_trains_with_workers(tmp_path):
    module, path = MODULES['PassSampler'], tmp_path / 'p'
    A = sampler_of(module).matrices[None]
    export(module, A, torch.arange(8), [6, 4], X, path=path)
    program, found = load_program(path), []
    parameters = list(program.tensors.values())
    assert sum(p.requires_grad for p in parameters) == 3
    for num_workers in (0, 2):
        loader = loader_of(sampler_of(program), num_workers=num_workers)
        found.append(run(loader, [p for p in parameters if p.requires_grad]))
    assert found[0] == found[1]


def test_a_resumed_loader_has_the_rest_of_the_batches():
    parameters = list(MODULES['AsGCN'].parameters())
    whole = run(loader_of(sampler_of(MODULES['AsGCN'])), parameters)
    loader = loader_of(sampler_of(MODULES['AsGCN']))
    iterator = iter(loader)
    next(iterator), next(iterator)
    again = loader_of(sampler_of(MODULES['AsGCN']), num_workers=1)
    again.load_state_dict(loader.state_dict())
    assert run(again, parameters) == whole[2:]


def double(batch):
    """A transform that needs gradients."""
    assert batch.edge_weight.requires_grad
    batch.edge_weight = batch.edge_weight * 2
    return batch


def scored(A, seeds, fanouts, x, w):
    """A pair: layers, and an attribute of nodes that trains."""
    S = A[:, seeds].individual_sample(fanouts[0])
    return [S.mul(w, dim=1)], {'score': w * 3, 'fixed': w.detach()}


def test_transforms_and_attributes_of_nodes_have_gradients():
    w, found = torch.rand(60, requires_grad=True), []
    for num_workers in (0, 2):
        sampler = sampler_of(scored, w=w)
        loader = loader_of(sampler, num_workers=num_workers, transform=double)
        for batch in loader:
            assert not batch.fixed.requires_grad
            loss = batch.edge_weight.sum() + batch.score.square().sum()
            score = batch.score.sum()
            [alone] = torch.autograd.grad(score, w, retain_graph=True)
            [grad] = torch.autograd.grad(loss, w)
            found.append((batch.n_id.tolist(), grad.tolist(), alone.tolist()))
    half = len(found) // 2
    assert found[:half] == found[half:]


def by_type(A, seeds, w):
    out = {}
    for i, (t, matrix) in enumerate(A.items()):
        S = matrix[:, seeds[t[2]]].individual_sample(2)
        out[t] = S.with_value(torch.ones(S.num_edges) * w[i])
    return [out]


def test_heterogeneous_samples_have_gradients():
    data, found = graphs.heterogeneous(), []
    w = torch.rand(len(data.edge_types), requires_grad=True)
    for num_workers in (0, 1):
        sampler = ProgramSampler(data, by_type, seed=0, w=w)
        loader = NeighborLoader(
            data,
            sampler=sampler,
            input_nodes=data.node_types[0],
            batch_size=4,
            num_workers=num_workers,
        )
        for batch in loader:
            weights = [batch[t].edge_weight for t in batch.edge_types]
            loss = sum(weight.square().sum() for weight in weights)
            [grad] = torch.autograd.grad(loss, w)
            ids = batch[data.node_types[0]].n_id.tolist()
            found.append((ids, grad.tolist()))
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert any(any(grad) for _, grad in found)


def test_the_program_runs_in_the_parent_for_gradients_alone():
    calls, module = [], MODULES['PassSampler']

    def noted(A, seeds, fanouts, x):
        calls.append(1)
        return module(A, seeds, fanouts, x)

    loader = loader_of(sampler_of(noted))
    batches = list(loader)
    with torch.no_grad():
        [batch, *_] = loader
    assert not batch.edge_weight.requires_grad
    assert not calls
    batches[1].edge_weight.sum().backward()
    assert len(calls) == 1


def test_more_threads_than_the_worker_has_draw_the_same():
    torch.set_num_threads(2)
    module = MODULES['PassSampler']
    for batch in loader_of(sampler_of(module)):
        batch.edge_weight.sum().backward()
    assert torch.get_num_threads() == 2


def by_threads(A, seeds, fanouts, x, w):
    """A program with draws that depend on the number of threads."""
    k = torch.get_num_threads()
    return [A[:, seeds].individual_sample(k).mul(w, dim=1)]


def test_one_thread_draws_again_where_several_drew_another_sample():
    torch.set_num_threads(2)
    w, num_edges = torch.ones(60, requires_grad=True), 0
    for batch in loader_of(sampler_of(by_threads, w=w), num_workers=1):
        assert 0 < batch.num_edges <= batch.batch_size
        num_edges += batch.num_edges
        batch.edge_weight.sum().backward()
    assert w.grad.sum() == num_edges


# Training ####################################################################


def train(num_workers):
    """The mean loss of PASS on a planted graph, epoch by epoch."""
    torch.manual_seed(0)
    y = torch.arange(60) % 2
    data = DATA.clone()
    data.x = torch.nn.functional.one_hot(y, 4) + 0.5 * torch.randn(60, 4)
    policy, model = PassSampler(4, 8), torch.nn.Linear(4, 2)
    sampler = ProgramSampler(data, policy, [5], seed=1, x=data.x)
    data.y = y
    options = {'num_workers': num_workers, 'shuffle': True}
    loader = NeighborLoader(data, sampler=sampler, batch_size=20, **options)
    parameters = [*policy.parameters(), *model.parameters()]
    optimizer, losses = torch.optim.Adam(parameters, lr=0.02), []
    for _ in range(30):
        total = 0.0
        for batch in loader:
            row, col = batch.edge_index
            message = model(batch.x)[row] * batch.edge_weight[:, None]
            h = torch.zeros(batch.num_nodes, 2).index_add(0, col, message)
            h = (h + model(batch.x))[: batch.batch_size]
            target = batch.y[: batch.batch_size]
            loss = torch.nn.functional.cross_entropy(h, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        losses.append(total)
    moved = policy.W1.grad.abs().sum().item()
    return losses, moved


def test_pass_trains_with_workers_as_without():
    (losses, _), (others, moved) = train(0), train(2)
    assert losses[-1] < 0.8 * losses[0]
    assert moved > 0
    assert abs(others[-1] - losses[-1]) < 0.05 * losses[0]


def test_features_on_disk_are_read_for_batches_of_workers(tmp_path):
    module, found = MODULES['PassSampler'], []
    features = {(None, 'x'): FeatureFile.write(tmp_path / 'x', X)}
    store = DiskFeatureStore(features)
    store.plan_reads(4 << 20, plan='window', model=DiskModel(9.5e-6, 2e9))
    data = store, ChunkedGraph.write(tmp_path / 'graph', DATA)
    for num_workers in (0, 2):
        options = {'batch_size': 8, 'num_workers': num_workers}
        options['input_nodes'] = torch.arange(60)
        loader = NeighborLoader(data, sampler=sampler_of(module), **options)
        batches = [(b.x.tolist(), b.n_id) for b in loader]
        assert all(x == X[n_id].tolist() for x, n_id in batches)
        found.append(run(loader, list(module.parameters())))
    assert found[0] == found[1]
