"""Node2Vec: PyG's model, on walks that are a function of their place."""

import copy
import inspect
import pickle
import sys
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.nn.models import Node2Vec as PyGNode2Vec

from tests.algorithms.checks import chi_square_p
from tests.fresh import FORKS
from torch_gsample import SparseSample
from torch_gsample.nn import Node2Vec
from torch_gsample.rng import batch_scope, make_key, program_scope


def graph(num_nodes=40, num_edges=300):
    """Every node but the last, which is alone, has an edge."""
    generator = torch.Generator().manual_seed(1)
    shape = 2, num_edges - num_nodes + 1
    edges = torch.randint(num_nodes - 1, shape, generator=generator)
    ring = torch.arange(num_nodes - 1)
    edges = torch.cat([edges, torch.stack([ring, ring.roll(1)])], dim=1)
    return edges.unique(dim=1)


def model_of(edge_index=None, **options):
    options = {
        'embedding_dim': 4,
        'walk_length': 6,
        'context_size': 3,
        'walks_per_node': 2,
        'num_negative_samples': 3,
        'num_nodes': 40,
        'seed': 5,
    } | options
    return Node2Vec(graph() if edge_index is None else edge_index, **options)


def batches(loader):
    return [(pos.tolist(), neg.tolist()) for pos, neg in loader]


def passes(**options):
    torch.manual_seed(2)
    options = {'shuffle': True} | options
    loader = model_of(q=0.5).loader(batch_size=16, **options)
    return [batches(loader), batches(loader)]


def test_it_is_pygs_model_with_a_seed():
    ours = inspect.signature(Node2Vec.__init__).parameters
    theirs = inspect.signature(PyGNode2Vec.__init__).parameters
    assert list(ours) == [*theirs, 'edge_weight', 'seed']
    assert all(ours[k].default == v.default for k, v in theirs.items())
    model = model_of()
    assert isinstance(model, PyGNode2Vec)
    assert repr(model) == 'Node2Vec(40, 4)'
    assert list(model.state_dict()) == ['embedding.weight']


@pytest.mark.parametrize(('p', 'q'), [(1, 1), (0.25, 4)])
def test_contexts_are_those_that_pyg_makes_of_the_walks(p, q):
    model, nodes = model_of(p=p, q=q), torch.tensor([7, 0, 7, 39])
    A = SparseSample.from_edge_index(graph(), num_nodes=40)
    starts = nodes.repeat(2)
    with program_scope(make_key(5, 1, 2)):
        if p == q == 1:
            walks = A.random_walk(starts, 5).nodes
        else:
            walks = A.node2vec_walk(starts, 5, p, q).nodes
    model.random_walk_fn = lambda *args: walks
    model.rowptr = model.col = None
    expected = PyGNode2Vec.pos_sample(model, nodes)
    with batch_scope(1, 2):
        pos, neg = model.sample(nodes.tolist())
    assert torch.equal(pos, expected)
    assert pos.shape == (4 * 2 * 4, 3)
    assert neg.shape == (4 * 2 * 4 * 3, 3)
    assert PyGNode2Vec.neg_sample(model, nodes).shape == neg.shape


def test_walks_follow_edges_and_stay_where_none_begins():
    edges = {tuple(pair) for pair in graph().T.tolist()} | {(39, 39)}
    model = model_of(p=0.5, q=2.0, walks_per_node=20)
    pos = model.pos_sample(torch.arange(40))
    steps = torch.cat([pos[:, :2], pos[:, 1:]]).tolist()
    assert {tuple(step) for step in steps} <= edges
    assert len({tuple(step) for step in steps}) > 0.8 * len(edges)


def test_return_parameter_decides_how_often_walks_return():
    def returns(p):
        torch.manual_seed(0)
        model = model_of(p=p, walk_length=3, walks_per_node=100)
        walks = model.pos_sample(torch.arange(39))
        return (walks[:, 0] == walks[:, 2]).double().mean()

    assert returns(0.05) > 2 * returns(1.0) > 4 * returns(20.0)


@pytest.mark.parametrize('q', [1.0, 0.5])
def test_walks_prefer_edges_of_large_weights(q):
    edge_index = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    weight = torch.tensor([1.0, 3.0, 0.0, 1.0, 1.0, 1.0])
    model = model_of(
        edge_index,
        edge_weight=weight.requires_grad_(),
        walk_length=3,
        walks_per_node=4000,
        num_nodes=4,
        q=q,
    )
    first = model.pos_sample(torch.tensor([0]))[:, 1]
    counts = first.bincount(minlength=4).tolist()
    assert counts[0] == counts[3] == 0
    assert chi_square_p(counts[1:3], [1000, 3000]) > 0.001


def test_negatives_are_uniform_over_all_nodes():
    model = model_of(walks_per_node=20)
    nodes = torch.arange(40)
    with batch_scope(0, 0):
        _, neg = model.sample(nodes)
    windows = neg.view(4, -1, 3)
    assert torch.equal(windows[0, :, 0], nodes.repeat(60))
    drawn = torch.cat([windows[0, :, 1:], windows[2, :, 1:]], dim=1)
    counts = drawn.flatten().bincount(minlength=40).tolist()
    assert sum(counts) == 40 * 60 * 4
    assert chi_square_p(counts, [40 * 60 * 4 / 40] * 40) > 0.001


def test_samples_are_the_same_for_any_number_of_workers():
    expected = passes()
    assert expected[0] != expected[1]
    for options in (
        {'prefetch': 0},
        {'num_workers': 1},
        {'num_workers': 2},
        {'num_workers': 1, 'multiprocessing_context': FORKS},
    ):
        assert passes(**options) == expected, options


def test_workers_that_persist_change_no_sample():
    # In order: torch shuffles otherwise with them.
    options = {'num_workers': 2, 'persistent_workers': True, 'shuffle': False}
    assert passes(**options) == passes(shuffle=False)


def test_threads_change_no_sample():
    expected, before = passes(), torch.get_num_threads()
    torch.set_num_threads(2 if before == 1 else 1)
    got = passes()
    assert got == expected


def test_a_batch_is_a_function_of_seed_epoch_and_number():
    loader = model_of().loader(batch_size=10)
    first, second = batches(loader), batches(loader)
    loader.set_epoch(1)
    assert batches(loader) == second
    model = model_of()
    with batch_scope(0, 3):
        pos, neg = model.sample(range(30, 40))
    assert (pos.tolist(), neg.tolist()) == first[3]
    assert batches(model_of(seed=6).loader(batch_size=10)) != first
    assert len(loader) == len(first) == 4


def test_without_a_seed_that_of_torch_decides():
    def drawn(number):
        torch.manual_seed(number)
        return batches(model_of(seed=None).loader(batch_size=10))

    assert drawn(1) == drawn(1) != drawn(2)


def test_outside_of_the_loader_torchs_generator_decides():
    model = model_of()

    def drawn():
        return [model.pos_sample(torch.arange(9)), model.sample([1, 2])[1]]

    torch.manual_seed(1)
    first, other = drawn(), drawn()
    torch.manual_seed(1)
    again = drawn()
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))


def test_the_loss_is_that_of_negative_sampling():
    model = model_of()
    pos, neg = model.sample([3, 5])
    z = model.embedding.weight

    def scores(walks):
        return torch.stack([(z[w[0]] * z[w[1:]]).sum(dim=1) for w in walks])

    expected = -scores(pos).sigmoid().log().mean()
    expected -= (1 - scores(neg).sigmoid()).log().mean()
    torch.testing.assert_close(model.loss(pos, neg), expected)


@pytest.mark.parametrize('sparse', [False, True])
def test_embeddings_of_two_cliques_come_apart(sparse):
    torch.manual_seed(0)
    clique = torch.combinations(torch.arange(8)).T
    edges = torch.cat([clique, clique + 8], dim=1)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    model = model_of(edges, num_nodes=16, embedding_dim=8, sparse=sparse)
    kind = torch.optim.SparseAdam if sparse else torch.optim.Adam
    optimizer = kind(list(model.parameters()), lr=0.05)
    loader = model.loader(batch_size=16, shuffle=True)
    for _ in range(60):
        for pos, neg in loader:
            optimizer.zero_grad()
            model.loss(pos, neg).backward()
            optimizer.step()
    z = torch.nn.functional.normalize(model()).detach()
    similar = z @ z.T
    assert similar[:8, :8].mean() > 0.8
    assert similar[:8, 8:].mean() < 0.2
    assert torch.equal(model(torch.tensor([3])), model()[3:4])


def test_test_scores_by_a_logistic_regression(monkeypatch):
    class LogisticRegression:
        """Knows the classes by the sign of the first coordinate."""

        def __init__(self, solver, max_iter):
            assert (solver, max_iter) == ('lbfgs', 50)

        def fit(self, z, y):
            return self

        def score(self, z, y):
            return ((z[:, 0] > 0) == y).mean()

    linear = SimpleNamespace(LogisticRegression=LogisticRegression)
    monkeypatch.setitem(sys.modules, 'sklearn', SimpleNamespace())
    monkeypatch.setitem(sys.modules, 'sklearn.linear_model', linear)
    z, y = torch.tensor([[1.0], [-1.0], [2.0]]), torch.tensor([1, 0, 0])
    score = model_of().test(z, y, z, y, max_iter=50)
    assert score == pytest.approx(2 / 3)


def test_copies_sample_the_same():
    model = model_of()
    expected = batches(model.loader(batch_size=16))
    for other in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        assert batches(other.loader(batch_size=16)) == expected


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        ({'walk_length': 2}, ValueError, "'walk_length' must be at least"),
        ({'context_size': 1}, ValueError, "'context_size' must be at least 2"),
        ({'embedding_dim': 0}, ValueError, "'embedding_dim' must be at"),
        ({'walks_per_node': 0}, ValueError, r"'walks_per_node' .* \(got 0\)"),
        ({'walks_per_node': 1.5}, TypeError, 'must be an integer'),
        ({'num_negative_samples': True}, TypeError, r'\(got True\)'),
        ({'p': 0}, ValueError, r"'p' must be positive and finite \(got 0\)"),
        ({'q': float('inf')}, ValueError, "'q' must be positive and finite"),
        ({'num_nodes': 5}, IndexError, 'must be in'),
        ({'seed': 0.5}, TypeError, "'seed' must be an integer"),
        ({'edge_index': torch.arange(3)}, ValueError, "'edge_index' must"),
    ],
)
def test_bad_input_is_named(options, error, message):
    with pytest.raises(error, match=message):
        model_of(**options)


def test_nodes_outside_of_the_graph_are_named():
    with pytest.raises(IndexError, match="'seeds' must be in"):
        model_of().sample([40])


@pytest.mark.parametrize(
    ('options', 'message'),
    [({'prefetch': -1}, "'prefetch'"), ({'batch_size': None}, "'batch_size'")],
)
def test_bad_loaders_are_named(options, message):
    with pytest.raises(ValueError, match=f'WalkLoader: {message}'):
        model_of().loader(**options)
