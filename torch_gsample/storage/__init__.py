"""Graphs and features larger than memory, and samplers that read them.

Graphs, edge files and features come in; samples of a graph on disk, rows of
its features, and a model's outputs for all nodes go out.
"""

import os
from typing import TYPE_CHECKING

from torch_gsample._lazy import lazy_names

if not hasattr(os, 'memfd_create'):
    raise ImportError(
        'torch_gsample.storage needs Linux: graphs and features on disk use '
        'calls that this system lacks. Graphs in memory work without it'
    )

if TYPE_CHECKING:
    from torch_gsample.storage.feature_file import FeatureFile
    from torch_gsample.storage.feature_store import DiskFeatureStore
    from torch_gsample.storage.graph import ChunkedGraph
    from torch_gsample.storage.inference.infer import infer
    from torch_gsample.storage.random_read import RandomReadSampler
    from torch_gsample.storage.read_model import DiskModel
    from torch_gsample.storage.row_source import RowSource
    from torch_gsample.storage.streaming import StreamingSampler

#: The module of each name: a task on Spark needs only some.
_MODULES = {
    'feature_file': ('FeatureFile',),
    'feature_store': ('DiskFeatureStore',),
    'graph': ('ChunkedGraph',),
    'inference': ('infer',),
    'random_read': ('RandomReadSampler',),
    'read_model': ('DiskModel',),
    'row_source': ('RowSource',),
    'streaming': ('StreamingSampler',),
}

__all__ = [
    'ChunkedGraph',
    'DiskFeatureStore',
    'DiskModel',
    'FeatureFile',
    'RandomReadSampler',
    'RowSource',
    'StreamingSampler',
    'infer',
]


if not TYPE_CHECKING:  # checkers report unknown names
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
