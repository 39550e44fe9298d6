"""The operators: checked Python functions in front of ``torch.ops.gsample``.

Tensors come in, tensors go out; randomness is an argument.
"""

from torch_gsample import _library  # noqa: F401  (registers the operators)
from torch_gsample.ops.edge_map import edge_map, load_edge_kernel
from torch_gsample.ops.features import gather_rows
from torch_gsample.ops.forest_fire import forest_fire
from torch_gsample.ops.formats import (
    check_csc,
    coo_to_csc,
    cumulate_weights,
    index_widths,
    positive_weights,
)
from torch_gsample.ops.hetero_neighbor_sample import (
    HeteroNeighborSample,
    hetero_neighbor_sample,
)
from torch_gsample.ops.hetero_padded_sample import (
    HeteroPaddedSample,
    hetero_neighbor_sample_padded,
)
from torch_gsample.ops.hetero_sample_hops import (
    HeteroHops,
    hetero_sample_hops,
)
from torch_gsample.ops.labor import labor_scale
from torch_gsample.ops.matrix import (
    next_key,
    random_uniform,
    sample_cols,
    sample_nodes,
    slice_cols,
    slice_rows,
    unique_nodes,
)
from torch_gsample.ops.negative_sample import negative_sample
from torch_gsample.ops.neighbor_sample import NeighborSample, neighbor_sample
from torch_gsample.ops.padded_sample import (
    PaddedSample,
    neighbor_sample_padded,
)
from torch_gsample.ops.sample_frontier import sample_frontier
from torch_gsample.ops.sample_hops import Hops, sample_hops
from torch_gsample.ops.segments import (
    positive_weights_segments,
    sample_nodes_segments,
    slice_rows_segments,
    unique_nodes_segments,
)
from torch_gsample.ops.subgraph import induce_subgraph
from torch_gsample.ops.sum_columns import sum_columns
from torch_gsample.ops.synthetic import configuration_model, rmat_edges
from torch_gsample.ops.vertex_map import load_vertex_kernel, vertex_map
from torch_gsample.ops.walk import (
    Walks,
    metapath_walk,
    node2vec_walk,
    random_walk,
)

__all__ = [
    'HeteroHops',
    'HeteroNeighborSample',
    'HeteroPaddedSample',
    'Hops',
    'NeighborSample',
    'PaddedSample',
    'Walks',
    'check_csc',
    'configuration_model',
    'coo_to_csc',
    'cumulate_weights',
    'edge_map',
    'forest_fire',
    'gather_rows',
    'hetero_neighbor_sample',
    'hetero_neighbor_sample_padded',
    'hetero_sample_hops',
    'index_widths',
    'induce_subgraph',
    'labor_scale',
    'load_edge_kernel',
    'load_vertex_kernel',
    'metapath_walk',
    'negative_sample',
    'neighbor_sample',
    'neighbor_sample_padded',
    'next_key',
    'node2vec_walk',
    'positive_weights',
    'positive_weights_segments',
    'random_uniform',
    'random_walk',
    'rmat_edges',
    'sample_cols',
    'sample_frontier',
    'sample_hops',
    'sample_nodes',
    'sample_nodes_segments',
    'slice_cols',
    'slice_rows',
    'slice_rows_segments',
    'sum_columns',
    'unique_nodes',
    'unique_nodes_segments',
    'vertex_map',
]
