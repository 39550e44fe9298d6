"""Calls of vertex programs: graphs, threads, errors, no compiler."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric import nn as pyg

import torch_gsample
from tests.fresh import Run
from tests.vertex.programs import (
    PROGRAMS,
    E,
    N,
    features,
    graph,
)
from torch_gsample import SparseSample, ops
from torch_gsample.vertex import Loops, mean, nn, vertex_program
from torch_gsample.vertex.kernels import graph_cache, operator

weighted, sums = PROGRAMS['weighted'], PROGRAMS['gin']


def by_column(edge_index):
    """The order of edges by destination."""
    return torch.argsort(edge_index[1], stable=True)


def sparse_csr(edge_index):
    order = by_column(edge_index)
    row, col = edge_index[:, order]
    indptr = torch.searchsorted(col, torch.arange(N + 1))
    return torch.sparse_csr_tensor(indptr, row, torch.ones(E), (N, N))


@pytest.mark.parametrize('kind', ['sample', 'EdgeIndex', 'csr', 'int32'])
def test_graphs_of_each_kind(kind):
    edge_index = graph()
    f = features('weighted')
    f['w'] = f['w'].detach()
    want = weighted(edge_index, **f)
    made, order = {
        'sample': lambda: (
            SparseSample.from_edge_index(edge_index, num_nodes=N),
            by_column(edge_index),
        ),
        'EdgeIndex': lambda: (
            EdgeIndex(edge_index, sparse_size=(N, N)),
            torch.arange(E),
        ),
        'csr': lambda: (sparse_csr(edge_index), by_column(edge_index)),
        'int32': lambda: (edge_index.int(), torch.arange(E)),
    }[kind]()
    if kind == 'sample':
        order = made.edge_id if made.edge_id is not None else order
    got = weighted(made, h=f['h'], w=f['w'][order])
    assert torch.equal(got, want)


def test_a_changed_graph_is_another_and_a_dead_one_is_forgotten():
    edge_index = graph()
    f = {key: x.detach() for key, x in features('gin').items()}
    before = sums(edge_index, **f)
    edge_index[:] = edge_index.flip(0).clone()
    after = sums(edge_index, **f)
    assert torch.equal(after, sums(edge_index.clone(), **f))
    assert not torch.equal(after, before)
    key = (id(edge_index),)
    assert key in graph_cache._cache._known
    gone = weakref.ref(edge_index)
    del edge_index
    gc.collect()
    assert gone() is None
    assert key not in graph_cache._cache._known


@pytest.mark.parametrize('forget', [False, True])
def test_a_graph_that_changed_without_a_version_is_another(
    forget, monkeypatch
):
    edge_index = graph()
    f = {key: x.detach() for key, x in features('gin').items()}
    if forget:  # nothing is noticed
        nowhere = 'torch_gsample.snapshot._spread'
        monkeypatch.setattr(nowhere, lambda count: np.arange(0))
    before = sums(edge_index, **f)
    edge_index.numpy()[:] = edge_index.flip(0).numpy().copy()
    if forget:
        assert torch.equal(sums(edge_index, **f), before)
        torch_gsample.forget()
    after = sums(edge_index, **f)
    assert torch.equal(after, sums(edge_index.clone(), **f))
    assert not torch.equal(after, before)


@pytest.mark.parametrize('loops', Loops)
def test_loops(loops):
    edge_index = graph()
    f = features('weighted')
    w = f['w'].detach()
    row, col = edge_index
    if loops != Loops.KEEP:
        kept = row != col
        assert not kept.all()
        row, col, w = row[kept], col[kept], w[kept]
    given = f['w'].detach()
    if loops == Loops.REPLACE:
        own = torch.rand(N, dtype=w.dtype)
        row, col = (torch.cat([x, torch.arange(N)]) for x in (row, col))
        w, given = torch.cat([w, own]), torch.cat([given, own])
    want = torch.zeros(N, 3, dtype=w.dtype)
    want = want.index_add(0, col, w[:, None] * f['h'][row])
    got = weighted(edge_index, loops=loops, h=f['h'], w=given)
    torch.testing.assert_close(got, want)


def test_threads_do_not_change_a_bit():
    row, col = ops.rmat_edges(11, 60_000, [0.57, 0.19, 0.19, 0.05], 1)
    edge_index = torch.stack([row, col])
    x = torch.randn(2048, 2, 3)
    score = torch.randn(2048, 2)
    found = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        leaf = x.clone().requires_grad_()
        out = PROGRAMS['gat'](edge_index, eu=score, ev=score, h=leaf)
        [grad] = torch.autograd.grad(out.square().sum(), leaf)
        found.append((out.detach(), grad))
    for out, grad in found[1:]:
        assert torch.equal(out, found[0][0])
        assert torch.equal(grad, found[0][1])


def test_a_graph_without_edges_and_one_without_vertices():
    f = features('gin')
    none = torch.empty(2, 0, dtype=torch.long)
    assert torch.equal(sums(none, **f), (1 + f['eps']) * f['h'])
    assert sums(none, h=f['h'][:0], eps=f['eps']).shape == (0, 3)


def test_calls_that_are_not_fused_equal_pyg():
    x = torch.randn(N, 3)
    for name, kwargs, call in (
        ('GATConv', {'heads': 2}, {'return_attention_weights': True}),
        ('GATv2Conv', {'heads': 2}, {'return_attention_weights': True}),
        ('GCNConv', {'cached': True}, {}),
        ('SAGEConv', {'aggr': 'std'}, {}),
    ):
        theirs = getattr(pyg, name)(3, 2, **kwargs)
        ours = getattr(nn, name)(3, 2, **kwargs)
        ours.load_state_dict(theirs.state_dict())
        for _ in range(2):
            a, b = (layer(x, graph(), **call) for layer in (theirs, ours))
            torch.testing.assert_close(a, b)


@vertex_program
def sorts(v):
    return sum(torch.sort(u.h) for u in v.innbs)


@vertex_program
def edges(v):
    return next(u.h + v.h for u in v.innbs)


@vertex_program
def branches(v):
    if v.h > 0:
        return v.h
    return sum(u.h for u in v.innbs)


@vertex_program
def unknown(v):
    return sum(u.missing for u in v.innbs)


@vertex_program
def shapes(v, weight):
    return sum(u.h for u in v.innbs) @ weight


@vertex_program
def mismatched(v):
    return sum(u.h * u.other for u in v.innbs)


@vertex_program
def lengths(v):
    return sum(u.h for u in v.innbs) / len(v.innbs)


@vertex_program
def surroundings(v):
    return sum(u.h * OUTSIDE for u in v.innbs)


@vertex_program
def plain_list(v):
    return sum([v.h])


@vertex_program
def sliced(v):
    return sum(u.h[:2] for u in v.innbs)


OUTSIDE = torch.ones(3)
H = torch.ones(N, 3)
ERRORS = [
    (sorts, {}, "sorts: line .*'return sum.*torch.sort is not supported"),
    (edges, {}, 'a value of each edge .*type E'),
    (branches, {}, 'has no truth value'),
    (unknown, {}, "no features 'missing' of sources"),
    (shapes, {'weight': torch.ones(4, 2)}, r'matrix \[4, 2\] do not match'),
    (mismatched, {'other': torch.ones(N, 2)}, r'\[3\] and \[2\] do not match'),
    (lengths, {}, 'the number of neighbours is not known'),
    (surroundings, {}, 'a tensor from the enclosing scope is used'),
    (plain_list, {}, 'without values of edges'),
    (sliced, {}, 'indexed by None, : and ... only'),
    (shapes, {}, "parameter 'weight' must be given"),
]


@pytest.mark.parametrize(('program', 'given', 'message'), ERRORS)
def test_errors_name_the_line_and_the_reason(program, given, message):
    with pytest.raises(ValueError, match=message):
        program(graph(), h=H, **given)


@vertex_program
def counts(v):
    return sum(1.0 for u in v.innbs)


CALLS = [
    (TypeError, lambda: sums([1], h=H, eps=H[0, :1]), 'must be an edge_index'),
    (
        ValueError,
        lambda: sums(H, h=H, eps=H[0, :1]),
        r"'graph' must have shape \[2, num_edges\]",
    ),
    (TypeError, lambda: sums(H[:2], h=H, eps=H[0, :1]), 'int32 or int64'),
    (TypeError, lambda: sums(graph(), h=1, eps=H[0, :1]), 'must be a tensor'),
    (ValueError, lambda: weighted(graph(), h=H, w=H[:3, 0]), 'must have 24 '),
    (
        ValueError,
        lambda: weighted(graph(), h=H, w=torch.ones(24, device='meta')),
        "'w' must be on cpu, the device of the graph .got meta",
    ),
    (
        ValueError,
        lambda: sums(graph(), size=(N, 3), h=H, eps=H[0, :1]),
        'must have 3 rows',
    ),
    (
        IndexError,
        lambda: sums(graph(), h=H[:3], eps=H[0, :1]),
        r"'graph\[0\]' must be in",
    ),
    (
        TypeError,
        lambda: vertex_program(lambda: 0),
        'must have an argument for',
    ),
    (RuntimeError, lambda: mean([1]), 'in a vertex program'),
    (ValueError, lambda: counts(graph()), 'no features determine the dtype'),
]


@pytest.mark.parametrize(('error', 'call', 'message'), CALLS)
def test_errors_of_calls(error, call, message):
    with pytest.raises(error, match=message):
        call()


WITHOUT = """
import warnings
import torch
from tests.vertex.programs import *
warnings.simplefilter('always')
with warnings.catch_warnings(record=True) as caught:
    for name in PROGRAMS:
        f = features(name)
        leaves = [x for x in f.values() if x.requires_grad]
        a, b = PROGRAMS[name](graph(), **f), expected(name, graph(), f)
        for x, y in zip(a, b) if isinstance(a, tuple) else [(a, b)]:
            torch.testing.assert_close(x, y)
            pair = [
                torch.autograd.grad(z.sin().sum(), leaves, retain_graph=True)
                for z in (x, y)
            ]
            for g, h in zip(*pair):
                torch.testing.assert_close(g, h)
print(len(caught), caught[0].message)
"""


def test_without_a_compiler_torch_computes_and_says_so_once(tmp_path):
    (tmp_path / 'without.py').write_text(WITHOUT)
    env = {'CXX': 'no-compiler', 'GSAMPLE_CACHE_DIR': str(tmp_path)}
    out = Run(tmp_path / 'without.py', tmp_path / 'out', env=env).wait()
    assert out.startswith("1 gsample: the compiler 'no-compiler' was")


def test_kernel_ids_do_not_depend_on_earlier_kernels():
    """Graphs that Inductor keeps on disk have them."""
    plan = PROGRAMS['gat'].plan(**features('gat'))
    unit, _ = next(iter(plan.units.values()))

    def numbers():
        made = [operator.fused(unit)]
        made += [operator.training(unit, wanted) for wanted in ([0], [0, 1])]
        parts = [part for part, _ in made[1].backward.parts if part]
        return [fused.number for fused in made + parts]

    first = numbers()
    operator.fused(next(iter(sums.plan(**features('gin')).units.values()))[0])
    assert numbers() == first
    assert len(set(first)) == len(first) > 3


def test_tensors_without_memory_have_results_without_it():
    """Fake tensors without an active mode are for the operator."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    f = features('gcn')
    mode = FakeTensorMode()
    fake = {key: mode.from_tensor(x.detach()) for key, x in f.items()}
    edges = mode.from_tensor(graph())
    out = PROGRAMS['gcn'](edges, **fake)
    assert type(out) is type(edges)
    assert out.shape == PROGRAMS['gcn'](graph(), **f).shape
