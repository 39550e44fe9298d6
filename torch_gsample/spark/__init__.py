"""Samples graphs on Apache Spark.

DataFrames of vertices and edges come in. Sampled DataFrames go out, or
mini-batches in Parquet files, which :class:`SampledParquetLoader` reads for
training, without Spark.
"""

import importlib
from typing import TYPE_CHECKING, Any

from torch_gsample.spark.session import require_pyspark

if TYPE_CHECKING:
    from torch_gsample.spark.batches import SampledBatches
    from torch_gsample.spark.edges_of_graph import stored_edges
    from torch_gsample.spark.frames import check_graph
    from torch_gsample.spark.hops import neighbor_sample
    from torch_gsample.spark.ids import VertexIds, assign_ids, read_ids
    from torch_gsample.spark.jobs import watch
    from torch_gsample.spark.layouts import (
        EncodedGraph,
        encode_graph,
        read_graphalytics,
        read_snb,
    )
    from torch_gsample.spark.metrics import JobReport, StageMetrics
    from torch_gsample.spark.operators import (
        SampledGraph,
        random_edge,
        random_vertex,
        random_vertex_neighborhood,
    )
    from torch_gsample.spark.parquet_loader import SampledParquetLoader
    from torch_gsample.spark.prepare import prepare_adjacency
    from torch_gsample.spark.quality import graph_properties, sample_quality
    from torch_gsample.spark.runs import sample_epochs
    from torch_gsample.spark.session import local_session
    from torch_gsample.spark.walk import random_walk

#: The module of each name. Names are imported on first use, so a machine that
#: only reads batches needs no Spark.
_MODULES = {
    'EncodedGraph': 'layouts',
    'JobReport': 'metrics',
    'SampledBatches': 'batches',
    'SampledGraph': 'operators',
    'SampledParquetLoader': 'parquet_loader',
    'StageMetrics': 'metrics',
    'VertexIds': 'ids',
    'assign_ids': 'ids',
    'check_graph': 'frames',
    'encode_graph': 'layouts',
    'graph_properties': 'quality',
    'local_session': 'session',
    'neighbor_sample': 'hops',
    'prepare_adjacency': 'prepare',
    'random_edge': 'operators',
    'random_vertex': 'operators',
    'random_vertex_neighborhood': 'operators',
    'random_walk': 'walk',
    'read_graphalytics': 'layouts',
    'read_ids': 'ids',
    'read_snb': 'layouts',
    'sample_epochs': 'runs',
    'sample_quality': 'quality',
    'stored_edges': 'edges_of_graph',
    'watch': 'jobs',
}

__all__ = [
    'EncodedGraph',
    'JobReport',
    'SampledBatches',
    'SampledGraph',
    'SampledParquetLoader',
    'StageMetrics',
    'VertexIds',
    'assign_ids',
    'check_graph',
    'encode_graph',
    'graph_properties',
    'local_session',
    'neighbor_sample',
    'prepare_adjacency',
    'random_edge',
    'random_vertex',
    'random_vertex_neighborhood',
    'random_walk',
    'read_graphalytics',
    'read_ids',
    'read_snb',
    'sample_epochs',
    'sample_quality',
    'stored_edges',
    'watch',
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if _MODULES[name] not in ('parquet_loader', 'session'):
        require_pyspark()
    module = importlib.import_module(f'{__name__}.{_MODULES[name]}')
    return getattr(module, name)
