"""Each algorithm: eager, compiled, and several batches in one run."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch

import torch_gsample
from tests.golden.digest import structure
from tests.golden.graphs import GRAPHS, matrices, matrix, mixed, some_nodes
from torch_gsample import algorithms
from torch_gsample.rng import make_key, program_scope


class Inputs:
    """Inputs of programs next to a matrix and seeds, in exact numbers."""

    def __init__(self, name: str):
        A = matrix(name)
        size, edges = A.num_cols, A.num_edges
        self.x = (mixed(3 * size, 70, 9) - 4).view(size, 3).double() / 2
        self.relation = (mixed(15, 71, 9) - 4).view(5, 3).double() / 4
        self.edge_type = mixed(edges, 72, 5)
        self.node_type = mixed(size, 73, 2)
        self.as_gcn = algorithms.AsGCN(3).double()
        self.learned = algorithms.PassSampler(3, 4).double()
        self.bandit = algorithms.GCNBS(edges)
        self.distinct = algorithms.GCNBS(edges, replace=False)
        self.thanos = algorithms.Thanos(edges)
        self.history = algorithms.VRGCN(size, [3])
        for i, module in enumerate((self.as_gcn, self.learned)):
            for parameter in module.parameters():
                value = mixed(parameter.numel(), 74 + i, 9) - 4
                value = value.view(parameter.shape).double() / 4
                parameter.data.copy_(value)
        for module in (self.bandit, self.distinct, self.thanos):
            module.log_weight.copy_(mixed(edges, 76, 5) / 4)


@lru_cache
def inputs(name: str) -> Inputs:
    return Inputs(name)


@lru_cache
def programs(name: str) -> dict[str, Any]:
    """Programs of a matrix and seeds."""
    own = inputs(name)
    return {
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
            A, s, [3, 2], 1, weighted=True, layer_dependency=True
        ),
        'as_gcn': lambda A, s: own.as_gcn(A, s, [8, 8], own.x),
        'pass_sampler': lambda A, s: own.learned(A, s, [3, 2], own.x),
        'vr_gcn': lambda A, s: own.history(A, s, [3, 2]),
        'gcn_bs': lambda A, s: own.bandit(A, s, [3, 2]),
        'gcn_bs-distinct': lambda A, s: own.distinct(A, s, [3, 2]),
        'thanos': lambda A, s: own.thanos(A, s, [3, 2]),
        'kgcn': lambda A, s: algorithms.kgcn(
            A, s, [3, 2], own.x[s], own.relation, own.edge_type
        ),
        'hgt': lambda A, s: list(
            algorithms.hgt({('n', 'to', 'n'): A}, {'n': s}, [4, 4]).values()
        ),
        'forest_fire': lambda A, s: algorithms.forest_fire(A, s, 0.375),
        'shadow': lambda A, s: algorithms.shadow(A, s, [2, 2]),
        'saint_node': lambda A, s: algorithms.saint_node(A, 20),
        'saint_edge': lambda A, s: algorithms.saint_edge(A, 10),
        'saint_walk': lambda A, s: algorithms.saint_walk(A, s, 3),
        'saint_frontier': lambda A, s: algorithms.saint_frontier(A, s, 30),
        'deepwalk': lambda A, s: algorithms.deepwalk(A, s, 4),
        'node2vec': lambda A, s: algorithms.node2vec(A, s, 4, 2.0, 0.5),
        'node2vec-weighted': lambda A, s: algorithms.node2vec(
            A, s, 4, 2.0, 0.5, True
        ),
        'pinsage': lambda A, s: algorithms.pinsage(A, s, 3, 5, 4),
        'hetgnn': lambda A, s: algorithms.hetgnn(
            A, s, own.node_type, [2, 2], 5, 3
        ),
    }


#: Values of edges that exponentials or sums of torch make: they may differ
#: from machine to machine.
INEXACT = {'as_gcn', 'pass_sampler', 'gcn_bs', 'thanos', 'kgcn'}
INEXACT |= {'gcn_bs-distinct', 'labor-star', 'labor-weighted'}

#: Programs compiled here, alone and with several batches in a run.
#: `tests/compiler` compares all programs with eager runs.
WAYS = {
    'compiled': (
        'graphsage ladies labor as_gcn thanos hgt shadow pinsage forest_fire'
    ),
    'together': (
        'graphsage fastgcn labor-1 vr_gcn kgcn saint_node saint_edge '
        'saint_walk shadow deepwalk node2vec hetgnn'
    ),
}


def seeds(name: str, batch: int = 0) -> torch.Tensor:
    return some_nodes(GRAPHS[name]().sizes['n'], 6, batch)


def exact(program: str, nest: Any) -> Any:
    return structure(nest) if program in INEXACT else nest


def eager(name: str, program: str) -> Any:
    """Two batches, one after the other."""
    function, out = programs(name)[program], []
    for batch in range(2):
        with program_scope(make_key(3, 1, batch)):
            out.append(function(matrix(name), seeds(name, batch)))
    return exact(program, out)


def compiled(name: str, program: str) -> Any:
    """The same batches, compiled."""
    torch._dynamo.reset()
    function = torch_gsample.compile(programs(name)[program], strict=True)
    out = []
    for batch in range(2):
        with program_scope(make_key(3, 1, batch)):
            out.append(function(matrix(name), seeds(name, batch)))
    return exact(program, out)


def together(name: str, program: str) -> Any:
    """The same batches, in one run."""
    torch._dynamo.reset()
    function = torch_gsample.super_batch(
        programs(name)[program], 8, options={'strict': True}
    )
    keys = torch.cat([make_key(3, 1, batch) for batch in range(2)])
    with program_scope(keys):
        out = function(matrix(name), [seeds(name, i) for i in range(2)])
    return exact(program, out)


def typed() -> Any:
    """HGT on the graph with types."""
    with program_scope(make_key(3)):
        return algorithms.hgt(
            matrices(),
            {'item': some_nodes(60, 6), 'user': some_nodes(40, 3)},
            [4, 4],
        )


def of_times() -> Any:
    """HGT with times of items; users get theirs."""
    with program_scope(make_key(3)):
        return algorithms.hgt(
            matrices(),
            {'item': some_nodes(60, 6)},
            [4, 4],
            {'item': mixed(60, 77, 9)},
            6,
        )


def of_metapath() -> Any:
    """PinSAGE through the graph with types, there and back."""
    A = matrices()
    first = next(t for t in A if t[0] != t[2])
    back = next(t for t in A if (t[0], t[2]) == (first[2], first[0]))
    size = A[first].num_rows
    with program_scope(make_key(3)):
        return algorithms.pinsage(
            A, some_nodes(size, 6), 3, 5, 4, 0.25, [first, back]
        )


def of_pagerank(name: str) -> Any:
    """What scores select, and their edges; scores are floating-point."""
    A, nodes = matrix(name), seeds(name)
    with program_scope(make_key(3)):
        scores = algorithms.approximate_ppr(A, nodes, 0.25, 2**-7)
        part = algorithms.ibmb_partition(nodes, scores, 4)
        return structure(
            {
                'scores': scores,
                'shadow': algorithms.shadow_ppr(A, nodes, 3, 0.25, 2**-7),
                'part': part,
                'batch': algorithms.ibmb_batch(A, nodes, scores, part[0], 3),
                'ibmb': algorithms.ibmb(A, nodes, 3, 4),
            }
        )


def of_links(name: str) -> Any:
    A = matrix(name)
    nodes = seeds(name)
    links = torch.stack([nodes[:3], nodes[3:]])
    out = algorithms.seal(A, links, 1)
    return {'seal': out, 'drnl': algorithms.drnl(out.matrix, *out.root)}


def of_capped_links(name: str) -> Any:
    nodes = seeds(name)
    links = torch.stack([nodes[:3], nodes[3:]])
    with program_scope(make_key(3)):
        return algorithms.seal(matrix(name), links, 2, 0.5, 6)


def of_norms(name: str) -> Any:
    """GraphSAINT's factors: counts of draws, divided once."""
    A = matrix(name)
    norm = algorithms.saint_norm(
        A, lambda: algorithms.saint_node(A, 20), num_draws=5, seed=3
    )
    with program_scope(make_key(3)):
        subgraph = algorithms.saint_edge(A, 10)
    return norm, algorithms.saint_normalize(subgraph, norm)


def trained(name: str, kind: str) -> Any:
    """What bandits draw after an update."""
    A, x = matrix(name), inputs(name).x
    bandit = getattr(algorithms, kind)(A.num_edges)
    with program_scope(make_key(3)):
        for _ in range(2):
            layers = bandit(A, seeds(name), [3, 2])
            bandit.update(A, layers, [x[S.row()] for S in layers])
    return structure(layers)


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name, which begins with that of the algorithm."""
    out: dict[str, Callable[[], Any]] = {}
    for program in programs('small'):
        for name in ('small', 'hub'):
            out[f'{program}/{name}'] = partial(eager, name, program)
    for way, function in (('compiled', compiled), ('together', together)):
        for program in WAYS[way].split():
            out[f'{program}/small@{way}'] = partial(function, 'small', program)
        out[f'graphsage/hub@{way}'] = partial(function, 'hub', 'graphsage')
    out['hgt/typed'] = typed
    out['hgt-timed/typed'] = of_times
    out['pinsage-metapath/typed'] = of_metapath
    for name in ('small', 'hub'):
        out[f'pagerank/{name}'] = partial(of_pagerank, name)
        out[f'seal/{name}'] = partial(of_links, name)
        out[f'seal-capped/{name}'] = partial(of_capped_links, name)
        out[f'saint_norm/{name}'] = partial(of_norms, name)
        for kind in ('GCNBS', 'Thanos'):
            out[f'{kind}/{name}'] = partial(trained, name, kind)
    return out
