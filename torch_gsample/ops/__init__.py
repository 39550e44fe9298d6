"""The operators: checked Python wrappers of ``torch.ops.gsample``.

Tensors come in, tensors go out; randomness is an argument.
"""

from typing import Any

from torch_gsample import _deprecated, _library  # noqa: F401  (registers)
from torch_gsample.ops import kernels, labor  # noqa: F401  (not public)
from torch_gsample.ops.features import gather_rows
from torch_gsample.ops.forest_fire import forest_fire
from torch_gsample.ops.formats import coo_to_csc, cumulate_weights
from torch_gsample.ops.frontier_walk import frontier_walk
from torch_gsample.ops.has_edges import has_edges
from torch_gsample.ops.last_neighbors import last_neighbors
from torch_gsample.ops.match_edges import match_edges
from torch_gsample.ops.matrix import (
    mask_columns,
    next_key,
    random_uniform,
    slice_cols,
    slice_rows,
)
from torch_gsample.ops.negative_sample import negative_sample
from torch_gsample.ops.node2vec_walk import node2vec_walk
from torch_gsample.ops.nodes import sample_nodes, unique_nodes
from torch_gsample.ops.sample_batches import sample_batches
from torch_gsample.ops.sample_columns import sample_columns
from torch_gsample.ops.sample_layer_batches import sample_layer_batches
from torch_gsample.ops.sample_layers import Layers, sample_layers
from torch_gsample.ops.sample_neighbors import sample_neighbors
from torch_gsample.ops.sampling import Sample, Sampling
from torch_gsample.ops.subgraph import induce_subgraph
from torch_gsample.ops.sum_columns import sum_columns
from torch_gsample.ops.synthetic import configuration_model, rmat_edges
from torch_gsample.ops.walk import Walks, metapath_walk, random_walk

__all__ = [
    'Layers',
    'Sample',
    'Sampling',
    'Walks',
    'configuration_model',
    'coo_to_csc',
    'cumulate_weights',
    'forest_fire',
    'frontier_walk',
    'gather_rows',
    'has_edges',
    'induce_subgraph',
    'last_neighbors',
    'mask_columns',
    'match_edges',
    'metapath_walk',
    'negative_sample',
    'next_key',
    'node2vec_walk',
    'random_uniform',
    'random_walk',
    'rmat_edges',
    'sample_batches',
    'sample_columns',
    'sample_layer_batches',
    'sample_layers',
    'sample_neighbors',
    'sample_nodes',
    'slice_cols',
    'slice_rows',
    'sum_columns',
    'unique_nodes',
]


def __getattr__(name: str) -> Any:
    return _deprecated.find(__name__, name)
