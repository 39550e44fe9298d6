"""The algorithms that draw samples, as functions of a graph and seeds."""

import copy
import functools

import torch
from torch import Tensor

from tests.algorithms.graphs import features, skewed_graph
from tests.compiler.captured import Captured
from torch_gsample import SparseSample, algorithms
from torch_gsample.compiler.backend import backend
from torch_gsample.compiler.pipeline import run_passes

A, X = skewed_graph(), features(40)
TYPE = torch.arange(A.num_edges) % 5
NODE_TYPE = torch.arange(40) % 2


def _modules():
    torch.manual_seed(0)
    return (
        algorithms.AsGCN(3).double(),
        algorithms.PassSampler(3, 4).double(),
        algorithms.VRGCN(40, [3]),
        algorithms.GCNBS(A.num_edges),
        algorithms.Thanos(A.num_edges),
        algorithms.GCNBS(A.num_edges, replace=False),
    )


AS_GCN, PASS, VR_GCN, GCN_BS, THANOS, EXP3M = _modules()
RELATIONS = features(5)
PATH = [('n', 'to', 'n'), ('n', 'of', 'n')]
TIME = {'n': torch.arange(40) % 7}


def timed_hgt(A, s, fanouts, time):
    """A type with times, and one that gets them."""
    relations = {('n', 'to', 'n'): A, ('m', 'to', 'n'): A, ('n', 'of', 'm'): A}
    out, time = algorithms.hgt(relations, {'n': s}, fanouts, time, 4)
    return [*out.values(), *time.values()]


PROGRAMS = {
    'graphsage': lambda A, s: algorithms.graphsage(A, s, [3, 2]),
    'ladies': lambda A, s: algorithms.ladies(A, s, [8, 8]),
    'ladies-trained': lambda A, s: algorithms.ladies(
        A, s, [8, 8], False, True
    ),
    'fastgcn': lambda A, s: algorithms.fastgcn(A, s, [8, 8]),
    'labor': lambda A, s: algorithms.labor(A, s, [3, 2]),
    'labor-1': lambda A, s: algorithms.labor(A, s, [3, 2], 1, True),
    'labor-star': lambda A, s: algorithms.labor(A, s, [3, 2], -1),
    'labor-weighted': lambda A, s: algorithms.labor(
        A, s, [3, 2], weighted=True
    ),
    'labor-dependent': lambda A, s: algorithms.labor(
        A, s, [3, 2], 2, weighted=True, layer_dependency=True
    ),
    'as_gcn': lambda A, s: AS_GCN(A, s, [8, 8], X),
    'pass': lambda A, s: PASS(A, s, [3, 2], X),
    'vr_gcn': lambda A, s: VR_GCN(A, s, [3, 2]),
    'gcn_bs': lambda A, s: GCN_BS(A, s, [3, 2]),
    'gcn_bs-distinct': lambda A, s: EXP3M(A, s, [3, 2]),
    'thanos': lambda A, s: THANOS(A, s, [3, 2]),
    'kgcn': lambda A, s: algorithms.kgcn(A, s, [3, 2], X[s], RELATIONS, TYPE),
    'hgt': lambda A, s: list(
        algorithms.hgt({('n', 'to', 'n'): A}, {'n': s}, [4, 4]).values()
    ),
    'hgt-timed': lambda A, s: timed_hgt(A, s, [4, 4], TIME),
    'forest_fire': lambda A, s: algorithms.forest_fire(A, s, 0.4),
    'shadow': lambda A, s: algorithms.shadow(A, s, [2, 2]),
    'saint_node': lambda A, s: algorithms.saint_node(A, 20),
    'saint_edge': lambda A, s: algorithms.saint_edge(A, 10),
    'saint_walk': lambda A, s: algorithms.saint_walk(A, s, 3),
    'saint_frontier': lambda A, s: algorithms.saint_frontier(A, s, 12),
    'deepwalk': lambda A, s: algorithms.deepwalk(A, s, 4),
    'node2vec': lambda A, s: algorithms.node2vec(A, s, 4, 2.0, 0.5),
    'node2vec-weighted': lambda A, s: algorithms.node2vec(
        A, s, 4, 2.0, 0.5, True
    ),
    'pinsage-metapath': lambda A, s: algorithms.pinsage(
        {t: A for t in PATH}, s, 3, 5, 4, metapath=PATH
    ),
    'pinsage': lambda A, s: algorithms.pinsage(A, s, 3, 5, 4),
    'hetgnn': lambda A, s: algorithms.hetgnn(A, s, NODE_TYPE, [2, 2], 5, 3),
}


def graph(dtype=torch.float64) -> SparseSample:
    return A.with_value(A.values().to(dtype))


def seeds(size: int, start: int = 0) -> Tensor:
    """Distinct nodes, marked as samplers mark them."""
    ids = (torch.arange(size) * 7 + start) % 40
    torch._dynamo.decorators.mark_unbacked(ids, 0)
    return ids


def tensors(value) -> list[Tensor]:
    """All tensors in the results of a program."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, SparseSample):
        ids = [i for i in (value.row_ids, value.col_ids) if i is not None]
        return [*value.coo(), value.edge_id, value.values(), *ids]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return []


def compiled(program, **options):
    torch._dynamo.reset()
    options.setdefault('strict', True)
    return torch.compile(
        program, backend=backend, fullgraph=True, options=options
    )


@functools.cache
def _captured(name):
    fast = Captured(PROGRAMS[name])
    fast(graph(), seeds(4))
    return fast


def trace_of(name, **options):
    """Returns the way of an algorithm, captured once, through the passes."""
    return _captured(name).rewrite(**options)


def trace(program, *args, **options):
    """Returns the way of a program through the passes."""
    torch._dynamo.reset()
    found = []

    def look(gm, example_inputs):
        copied = copy.deepcopy(gm)
        found.append(run_passes(copied.graph, **options))
        return gm.forward

    torch.compile(program, backend=look, fullgraph=True)(*args)
    [out] = found
    return out


#: Programs that call operators for each batch, if several run together.
CALLED = {
    'sum': 'ladies ladies-trained',
    'random_uniform': 'labor labor-1 labor-weighted labor-dependent',
    'forest_fire': 'forest_fire',
    'sample_neighbors': 'shadow',
    'random_walk': 'saint_walk deepwalk',
    'frontier_walk': 'saint_frontier',
    'node2vec_walk': 'node2vec node2vec-weighted',
    'random_walk, argsort': 'pinsage hetgnn',
}
EACH = {name: each for each, names in CALLED.items() for name in names.split()}
EACH['pinsage-metapath'] = (
    'metapath_walk, arange, random_uniform, view, cumsum, argsort'
)
