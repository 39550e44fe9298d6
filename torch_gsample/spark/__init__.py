"""Samples graphs that no single machine holds, on Apache Spark.

DataFrames of vertices and edges come in. Sampled DataFrames go out, or
mini-batches as Parquet files, which :class:`SampledParquetLoader` reads where
a model is trained, without Spark.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_gsample.spark.batches import SampledBatches
    from torch_gsample.spark.frames import check_graph
    from torch_gsample.spark.hops import neighbor_sample
    from torch_gsample.spark.operators import (
        SampledGraph,
        random_edge,
        random_vertex,
        random_vertex_neighborhood,
    )
    from torch_gsample.spark.parquet_loader import SampledParquetLoader
    from torch_gsample.spark.prepare import prepare_adjacency
    from torch_gsample.spark.runs import sample_epochs
    from torch_gsample.spark.session import local_session
    from torch_gsample.spark.stored import stored_edges
    from torch_gsample.spark.walk import random_walk

#: Where each name comes from: only what is used is imported, so that a
#: machine that reads batches needs no Spark.
_MODULES = {
    'SampledBatches': 'batches',
    'SampledGraph': 'operators',
    'SampledParquetLoader': 'parquet_loader',
    'check_graph': 'frames',
    'local_session': 'session',
    'neighbor_sample': 'hops',
    'prepare_adjacency': 'prepare',
    'random_edge': 'operators',
    'random_vertex': 'operators',
    'random_vertex_neighborhood': 'operators',
    'random_walk': 'walk',
    'sample_epochs': 'runs',
    'stored_edges': 'stored',
}

__all__ = [
    'SampledBatches',
    'SampledGraph',
    'SampledParquetLoader',
    'check_graph',
    'local_session',
    'neighbor_sample',
    'prepare_adjacency',
    'random_edge',
    'random_vertex',
    'random_vertex_neighborhood',
    'random_walk',
    'sample_epochs',
    'stored_edges',
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    module = importlib.import_module(f'{__name__}.{_MODULES[name]}')
    return getattr(module, name)
