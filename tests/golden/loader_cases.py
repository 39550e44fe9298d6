"""Each loader of `torch_gsample.loader`: its first batches in two epochs."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data

from tests.golden.graphs import GRAPHS, data, mixed, some_nodes
from torch_gsample import LadiesSampler, NeighborSampler, loader, nn
from torch_gsample.rng import current_batch

TIMES = {'time_attr': ('time', 'edge_time')}
#: Options of NeighborLoader and LinkNeighborLoader.
OPTIONS = {
    'plain': {},
    'plain@no prefetch': {'prefetch': 0},
    'replace': {'replace': True},
    'disjoint': {'disjoint': True},
    'induced': {'subgraph_type': 'induced'},
    'bidirectional': {'subgraph_type': 'bidirectional'},
    'epoch': {'rng_scope': 'epoch'},
    'weighted': {'weight_attr': 'weight'},
    'static shapes': {'static_shapes': True},
}
LINKS = {
    'plain': {},
    'negatives': {'neg_sampling_ratio': 2.0},
    'triplets': {'neg_sampling': 'triplet', 'disjoint': True},
    'true negatives': {'neg_sampling_ratio': 1.0, 'true_negatives': True},
    'without seed edges': {'exclude_seed_edges': True},
    'static shapes': {'neg_sampling_ratio': 1.0, 'static_shapes': True},
}
TARGET = ('user', 'rates', 'item')
SAINT = {
    'Node': loader.GraphSAINTNodeSampler,
    'Edge': loader.GraphSAINTEdgeSampler,
    'RandomWalk': loader.GraphSAINTRandomWalkSampler,
}


def first(batches: Any, count: int = 2) -> list[Any]:
    """The first batches of two epochs; iterators are closed."""
    out = []
    for epoch in range(2):
        if hasattr(batches, 'set_epoch'):
            batches.set_epoch(epoch)
        iterator = iter(batches)
        out.append(list(itertools.islice(iterator, count)))
        del iterator
    return out


def seeds(name: str, count: int) -> Any:
    """The nodes that a loader takes: those of type `item`."""
    graph = GRAPHS[name]()
    ids = some_nodes(graph.sizes['item' if graph.is_typed else 'n'], count, 3)
    return ('item', ids) if graph.is_typed else ids


def links(name: str, count: int) -> Any:
    edges = GRAPHS[name]().relations[0]
    ids = torch.arange(count) * 7
    index = torch.stack([edges.row[ids], edges.col[ids]])
    return (TARGET, index) if GRAPHS[name]().is_typed else index


def neighbors(name: str, **options: Any) -> list[Any]:
    options = {'input_nodes': seeds(name, 40), 'batch_size': 16} | options
    return first(loader.NeighborLoader(data(name), [4, 3], seed=1, **options))


def timed(name: str, **options: Any) -> list[Any]:
    return neighbors(name, input_time=mixed(40, 42, 40), **TIMES, **options)


def link_neighbors(name: str, **options: Any) -> list[Any]:
    return first(
        loader.LinkNeighborLoader(
            data(name),
            [4, 3],
            edge_label_index=links(name, 40),
            batch_size=16,
            seed=1,
            **options,
        )
    )


def of_sampler(name: str, kind: str) -> list[Any]:
    """Loaders of PyG's that take a sampler."""
    sampler = NeighborSampler(data(name), [4, 3], seed=1)
    make: dict[str, Any] = {
        'NodeLoader': (loader.NodeLoader, seeds),
        'LinkLoader': (loader.LinkLoader, links),
    }
    cls, items = make[kind]
    return first(cls(data(name), sampler, items(name, 40), batch_size=16))


def timed_links(name: str) -> list[Any]:
    return link_neighbors(
        name,
        edge_label_time=mixed(40, 43, 40),
        neg_sampling_ratio=1.0,
        **TIMES,
    )


def layer_wise(name: str) -> list[Any]:
    sampler = LadiesSampler(data(name), [16, 16], seed=1)
    return first(
        loader.NeighborLoader(
            data(name),
            sampler=sampler,
            input_nodes=seeds(name, 40),
            batch_size=16,
        )
    )


def hgt(**options: Any) -> list[Any]:
    return first(
        loader.HGTLoader(
            data('typed'),
            [6, 5],
            seeds('typed', 40),
            batch_size=16,
            seed=1,
            **options,
        )
    )


def saint(name: str, kind: str, coverage: int) -> list[Any]:
    graph = data(name)
    graph = Data(
        x=graph.x, edge_index=graph.edge_index, edge_attr=graph.edge_attr
    )
    args = (20, 3) if kind == 'RandomWalk' else (20,)
    out = SAINT[kind](
        graph,
        *args,
        num_steps=2,
        sample_coverage=coverage,
        log=False,
        seed=1,
    )
    return first(out)


def shadow(name: str, **options: Any) -> list[Any]:
    graph = data(name)
    graph = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)
    out = loader.ShaDowKHopSampler(
        *(graph, 2, 3, seeds(name, 20)), batch_size=8, seed=1, **options
    )
    return first(out)


def walks(name: str) -> list[Any]:
    """Each batch says which one it is, of which nodes."""
    out = loader.WalkLoader(
        GRAPHS[name]().sizes['n'],
        lambda nodes: torch.tensor([*current_batch(), *nodes]),
        seed=1,
        batch_size=8,
    )
    return first(out)


def node2vec(name: str, **options: Any) -> list[Any]:
    """Positive and negative walks."""
    model = nn.Node2Vec(
        data(name).edge_index,
        embedding_dim=2,
        walk_length=6,
        context_size=3,
        walks_per_node=2,
        num_negative_samples=2,
        num_nodes=GRAPHS[name]().sizes['n'],
        seed=1,
        **options,
    )
    return first(model.loader(batch_size=16))


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name, which begins with that of the loader."""
    out: dict[str, Callable[[], Any]] = {}
    for name in GRAPHS:
        for option, options in OPTIONS.items():
            text = f'NeighborLoader/{name}/{option}'
            out[text] = partial(neighbors, name, **options)
        for option, options in LINKS.items():
            text = f'LinkNeighborLoader/{name}/{option}'
            out[text] = partial(link_neighbors, name, **options)
        out[f'NeighborLoader/{name}/timed'] = partial(timed, name)
        out[f'NeighborLoader/{name}/timed last'] = partial(
            timed, name, temporal_strategy='last'
        )
        out[f'LinkNeighborLoader/{name}/timed'] = partial(timed_links, name)
        for kind in ('NodeLoader', 'LinkLoader'):
            out[f'{kind}/{name}/plain'] = partial(of_sampler, name, kind)
    out['NeighborLoader/small/plain@workers'] = partial(
        neighbors, 'small', num_workers=1
    )
    shuffled = {'shuffle': True}
    for name in ('small', 'typed'):
        out[f'NeighborLoader/{name}/shuffled'] = partial(
            neighbors, name, **shuffled
        )
        out[f'LinkNeighborLoader/{name}/shuffled'] = partial(
            link_neighbors, name, **shuffled
        )
    out['ShaDowKHopSampler/small/shuffled'] = partial(
        shadow, 'small', **shuffled
    )
    out['NeighborLoader/small/shuffled@workers'] = partial(
        neighbors, 'small', num_workers=1, **shuffled
    )
    out['HGTLoader/typed/plain'] = hgt
    out['HGTLoader/typed/epoch'] = partial(hgt, rng_scope='epoch')
    for name in ('small', 'hub'):
        out[f'NeighborLoader/{name}/layer-wise'] = partial(layer_wise, name)
        for kind in SAINT:
            text = f'GraphSAINT{kind}Sampler/{name}'
            out[text] = partial(saint, name, kind, 0)
        out[f'ShaDowKHopSampler/{name}/plain'] = partial(shadow, name)
        out[f'ShaDowKHopSampler/{name}/replace'] = partial(
            shadow, name, replace=True
        )
        out[f'WalkLoader/{name}'] = partial(walks, name)
        out[f'Node2Vec/{name}/plain'] = partial(node2vec, name)
        out[f'Node2Vec/{name}/biased'] = partial(node2vec, name, p=2.0, q=0.5)
    for kind in SAINT:
        text = f'GraphSAINT{kind}Sampler/small/normalised'
        out[text] = partial(saint, 'small', kind, 3)
    return out
