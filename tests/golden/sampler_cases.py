"""Each sampler of `torch_gsample.samplers`: seeds in, PyG's outputs out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler import (
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
)

from tests.golden.graphs import GRAPHS, data, mixed, some_nodes
from torch_gsample import algorithms, samplers
from torch_gsample.rng import batch_scope

TIMES = {'time_attr': ('time', 'edge_time')}
OPTIONS = {
    'plain': {},
    'replace': {'replace': True},
    'disjoint': {'disjoint': True},
    'induced': {'subgraph_type': 'induced'},
    'bidirectional': {'subgraph_type': 'bidirectional'},
    'backward': {'sample_direction': 'backward'},
    'random order': {'order': 'random'},
    'random order backward': {
        'order': 'random',
        'sample_direction': 'backward',
    },
    'epoch': {'rng_scope': 'epoch'},
    'plain@narrow': {'index_dtype': torch.int32},
    'weighted': {'weight_attr': 'weight'},
    'timed': TIMES,
    'timed last': TIMES | {'temporal_strategy': 'last'},
    'timed weighted': TIMES | {'weight_attr': 'weight', 'time_window': 20},
    'timed by edges': TIMES | {'time_bound': 'edge', 'time_inclusive': 'left'},
    'timed by batch': TIMES | {'time_bound': 'batch', 'time_window': 20},
    'without seed edges': {'exclude_seed_edges': True},
}
NEGATIVES = {
    'none': None,
    'binary': NegativeSampling('binary', 2.0),
    'triplet': NegativeSampling('triplet', 3),
}
TARGET = ('user', 'rates', 'item')


def drawn(sampler: Any, inputs: Any, negatives: Any = None) -> list[Any]:
    """Samples of two batches; edges are numbered as in the data."""
    out = []
    for batch in range(2):
        with batch_scope(2, batch):
            if isinstance(inputs, NodeSamplerInput):
                sample = sampler.sample_from_nodes(inputs)
            else:
                sample = sampler.sample_from_edges(inputs, negatives)
        sample.edge = original(sample.edge, sampler.edge_permutation)
        out.append(sample)
    return out


def original(edge: Any, permutation: Any) -> Any:
    if isinstance(edge, dict):
        return {
            name: original(ids, permutation and permutation[name])
            for name, ids in edge.items()
        }
    return edge if edge is None or permutation is None else permutation[edge]


def nodes(name: str, count: int = 20, timed: bool = False) -> NodeSamplerInput:
    """Some items, or nodes; one comes twice."""
    graph = GRAPHS[name]()
    node_type = 'item' if graph.is_typed else None
    ids = some_nodes(graph.sizes[node_type or 'n'], count - 1, 2)
    ids = torch.cat([ids, ids[:1]])
    time = mixed(count, 40, 40) if timed else None
    return NodeSamplerInput(torch.arange(count), ids, time, node_type)


def links(name: str, count: int = 12, timed: bool = False) -> EdgeSamplerInput:
    """Every 17th edge of the first relation."""
    graph = GRAPHS[name]()
    edges = graph.relations[0]
    ids = torch.arange(count) * 17
    return EdgeSamplerInput(
        ids,
        edges.row[ids],
        edges.col[ids],
        None,
        mixed(count, 41, 40) if timed else None,
        TARGET if graph.is_typed else None,
    )


def neighbor(name: str, kind: str, options: dict[str, Any]) -> list[Any]:
    sampler = samplers.NeighborSampler(data(name), [4, 3], seed=1, **options)
    timed = 'time_attr' in options
    if kind == 'nodes':
        return drawn(sampler, nodes(name, timed=timed))
    return drawn(sampler, links(name, timed=timed), NEGATIVES[kind])


def program(name: str, make: Any, args: Any, **options: Any) -> list[Any]:
    """What a sampler of programs draws; of links where that is its turn."""
    kind = options.pop('kind', 'nodes')
    sampler = make(data(name), *args, seed=1, **options)
    if kind == 'nodes':
        return drawn(sampler, nodes(name))
    return drawn(sampler, links(name), NEGATIVES[kind])


def by_relation(A: Any, seeds: dict[str, Tensor], fanouts: Any) -> Any:
    """All relations, hop by hop."""
    layers = []
    for k in fanouts:
        layer = {
            t: A[t][:, seeds[t[2]]].individual_sample(k) for t in sorted(A)
        }
        layers.append(layer)
        seeds = {
            node_type: torch.cat(
                [
                    ids,
                    *(m.row() for t, m in layer.items() if t[0] == node_type),
                ]
            ).unique()
            for node_type, ids in seeds.items()
        }
    return layers


WEIGHT = {'weight_attr': 'weight'}
#: Sampler, arguments, options of each case; graphs have one node type.
PROGRAMS = {
    'LadiesSampler': (samplers.LadiesSampler, ([16, 16],), WEIGHT),
    'LadiesSampler/as trained': (
        samplers.LadiesSampler,
        ([16, 16],),
        WEIGHT | {'replace': False, 'normalize': True},
    ),
    'FastGCNSampler': (samplers.FastGCNSampler, ([16, 16],), WEIGHT),
    'LaborSampler': (samplers.LaborSampler, ([4, 3],), WEIGHT),
    'LaborSampler/1 step': (
        samplers.LaborSampler,
        ([4, 3],),
        WEIGHT | {'steps': 1, 'normalize': True},
    ),
    'LaborSampler/weighted': (
        samplers.LaborSampler,
        ([4, 3],),
        WEIGHT | {'weighted': True, 'layer_dependency': True},
    ),
    'LaborSampler/links': (
        samplers.LaborSampler,
        ([4, 3],),
        {'kind': 'binary', 'exclude_seed_edges': True},
    ),
    'PinSAGESampler': (samplers.PinSAGESampler, ([3, 2],), {}),
    'SaintSampler': (samplers.SaintSampler, (3,), {}),
    'SaintSampler/frontier': (
        samplers.SaintSampler,
        (),
        {'frontier_steps': 30},
    ),
    'ShaDowSampler': (samplers.ShaDowSampler, ([3, 2],), {}),
    'ShaDowSampler/replace': (
        samplers.ShaDowSampler,
        ([3, 2],),
        {'replace': True},
    ),
    'ShaDowSampler/pagerank': (samplers.ShaDowSampler, (), {'ppr': 6}),
    'ShaDowSampler/links': (
        samplers.ShaDowSampler,
        ([3, 2],),
        {'kind': 'triplet'},
    ),
    'ProgramSampler': (
        samplers.ProgramSampler,
        (algorithms.graphsage, [4, 3]),
        {},
    ),
    'ProgramSampler/disjoint': (
        samplers.ProgramSampler,
        (algorithms.shadow, [3, 2]),
        {'disjoint': True},
    ),
    'ProgramSampler/links': (
        samplers.ProgramSampler,
        (algorithms.graphsage, [4, 3]),
        {'kind': 'binary', 'true_negatives': True},
    ),
    'ProgramSampler/compiled': (
        samplers.ProgramSampler,
        (algorithms.ladies, [16, 16]),
        WEIGHT | {'compile': True},
    ),
}


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name, which begins with that of the sampler."""
    out: dict[str, Callable[[], Any]] = {}
    for name in GRAPHS:
        for option, options in OPTIONS.items():
            for kind in ('nodes', *NEGATIVES):
                if kind == 'nodes' and 'seed edges' in option:
                    continue
                text = f'NeighborSampler/{name}/{kind}/{option}'
                out[text] = partial(neighbor, name, kind, options)
        out[f'NeighborSampler/{name}/binary/true negatives'] = partial(
            neighbor, name, 'binary', {'true_negatives': True}
        )
    for kind in ('nodes', *NEGATIVES):
        out[f'HGTSampler/typed/{kind}'] = partial(
            program, 'typed', samplers.HGTSampler, ([6, 5],), kind=kind
        )
        out[f'ProgramSampler/typed/{kind}'] = partial(
            *(program, 'typed', samplers.ProgramSampler),
            (by_relation, [3, 2]),
            kind=kind,
        )
    for text, (make, args, options) in PROGRAMS.items():
        for name in ('small', 'hub'):
            sampler, _, option = text.partition('/')
            out[f'{sampler}/{name}/{option or "plain"}'] = partial(
                program, name, make, args, **options
            )
    return out
