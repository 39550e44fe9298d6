"""Graphs on disk: their files, and batches that are read from them."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

from tests.golden import loader_cases, sampler_cases
from tests.golden.graphs import GRAPHS, data, mixed
from torch_gsample import graph_sampling
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    DiskModel,
    FeatureFile,
    RandomReadSampler,
    StreamingSampler,
    infer,
)

KINDS = {'random': RandomReadSampler, 'streaming': StreamingSampler}
WRITTEN = {
    'plain': {},
    'weighted': {'weight_attr': 'weight'},
    'timed': {'time_attr': ('time', 'edge_time')},
}
OPTIONS = {
    'plain': {},
    'replace': {'replace': True},
    'random order': {'order': 'random'},
    'disjoint': {'disjoint': True},
    'weighted': {},
    'timed': {},
    'timed last': {'temporal_strategy': 'last'},
}


def write(folder: str, name: str, written: str) -> ChunkedGraph:
    """Small chunks: columns of the hub are in several."""
    return ChunkedGraph.write(
        Path(folder) / 'graph',
        data(name),
        chunk_bytes=400 if name == 'small' else 16_384,
        alignment=512,
        **WRITTEN[written],
    )


def files(name: str, written: str) -> dict[str, Any]:
    """The bytes of all files but the one that describes them."""
    with tempfile.TemporaryDirectory() as folder:
        graph = write(folder, name, written)
        return {
            path.name: torch.frombuffer(
                bytearray(path.read_bytes()), dtype=torch.uint8
            )
            for path in sorted(graph.path.iterdir())
            if path.suffix == '.bin'
        }


def batches(name: str, kind: str, option: str) -> list[Any]:
    """The first batches of two epochs."""
    written = option.split()[0]
    written = written if written in WRITTEN else 'plain'
    options = dict(OPTIONS[option])
    if kind == 'streaming':
        options['rng_scope'] = 'epoch'
    with tempfile.TemporaryDirectory() as folder:
        graph = write(folder, name, written)
        sampler = KINDS[kind](graph, [4, 3], seed=1, **options)
        time = mixed(40, 42, 40) if written == 'timed' else None
        out = loader_cases.first(
            NeighborLoader(
                data(name),
                sampler=sampler,
                input_nodes=loader_cases.seeds(name, 40),
                input_time=time,
                batch_size=16,
            )
        )
        if kind == 'streaming':
            sampler.close()
    return out


def links(name: str) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        sampler = RandomReadSampler(
            write(folder, name, 'plain'), [4, 3], seed=1
        )
        return loader_cases.first(
            LinkNeighborLoader(
                data(name),
                sampler=sampler,
                edge_label_index=loader_cases.links(name, 40),
                neg_sampling_ratio=1.0,
                batch_size=16,
            )
        )


def samples(name: str) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        sampler = RandomReadSampler(
            write(folder, name, 'plain'), [4, 3], seed=1, cache_bytes=0
        )
        return sampler_cases.drawn(sampler, sampler_cases.nodes(name))


def features(name: str, dtype: torch.dtype) -> list[Any]:
    """Features that are read by windows, as loaders join them."""
    graph = data(name)
    x = (mixed(graph.num_nodes * 24, 43, 999) / 64).view(-1, 24)
    with tempfile.TemporaryDirectory() as folder:
        file = FeatureFile.write(Path(folder) / 'x', x, dtype=dtype)
        store = DiskFeatureStore({(None, 'x'): file})
        model = DiskModel(1e-5, 2e9)
        store.plan_reads(64 << 20, plan='window', model=model)
        disk = write(folder, name, 'plain')
        return loader_cases.first(
            NeighborLoader(
                (store, disk),
                sampler=RandomReadSampler(disk, [4, 3], seed=1),
                input_nodes=loader_cases.seeds(name, 40),
                batch_size=16,
            )
        )


def inferred(name: str) -> Tensor:
    """What two layers of sums make of features, all of them exact."""
    graph = data(name)
    x = (mixed(graph.num_nodes * 4, 44, 99) / 64).view(-1, 4)
    layers = nn.ModuleList([SimpleConv('sum'), SimpleConv('mean')]).eval()
    with tempfile.TemporaryDirectory() as folder:
        out = infer(
            layers, write(folder, name, 'plain'), x, out=Path(folder) / 'out'
        )
        return out[:]


REDUCED = {
    'random_vertex': (0.5,),
    'random_edge': (0.25,),
    'random_vertex_neighborhood': (0.25, 'in'),
    'random_walk': (0.5, 6, 0.125),
}


DRAWN_BY_EDGE = 'random_edge', 'random_walk'


def reduced(name: str, operator: str, ids: bool = True) -> Any:
    """A whole graph in memory, reduced as Spark does it."""
    function, options = getattr(graph_sampling, operator), {}
    if ids and operator in DRAWN_BY_EDGE:  # as a column `id` says
        options = {'edge_id': torch.arange(data(name).num_edges)}
    out = function(data(name), *REDUCED[operator], seed=1, **options)
    return {'node': out.n_id, 'edge': out.e_id}


#: The local loader that gives Spark's batches.
ON_SPARK = {'plain': {}, 'weighted': {'weight_attr': 'weight'}}


def of_spark(option: str) -> list[Any]:
    graph = data('small')
    bare = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    if option == 'weighted':
        bare.weight = graph.weight
    loader = NeighborLoader(
        bare,
        [4, 3],
        input_nodes=loader_cases.seeds('small', 20),
        batch_size=8,
        seed=1,
        rng_scope='epoch',
        **ON_SPARK[option],
    )
    out = [batch.to_dict() for batch in loader]
    for batch in out:
        batch.pop('weight', None)  # float64 there
    return out


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name."""
    out: dict[str, Callable[[], Any]] = {}
    for name in GRAPHS:
        for written in WRITTEN:
            out[f'files/{name}/{written}'] = partial(files, name, written)
        for kind, sampler in KINDS.items():
            for option in OPTIONS:
                text = f'{sampler.__name__}/{name}/{option}'
                out[text] = partial(batches, name, kind, option)
        for dtype in () if name == 'typed' else (torch.bfloat16, torch.int8):
            out[f'features/{name}/{dtype}'] = partial(features, name, dtype)
        if name != 'typed':
            out[f'infer/{name}'] = partial(inferred, name)
        out[f'RandomReadSampler/{name}/links'] = partial(links, name)
        out[f'RandomReadSampler/{name}/no cache'] = partial(samples, name)
    for operator in REDUCED:
        out[f'{operator}/small'] = partial(reduced, 'small', operator)
    for operator in DRAWN_BY_EDGE:  # by the ends of edges
        out[f'{operator}/small/no ids'] = partial(
            reduced, 'small', operator, ids=False
        )
    for option in ON_SPARK:
        out[f'spark/{option}'] = partial(of_spark, option)
    return out
