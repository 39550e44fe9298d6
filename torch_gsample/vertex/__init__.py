"""GNN layers that are written vertex by vertex and run as fused kernels.

A function of a vertex comes in; a layer comes out that takes a graph and
features, with gradients.
"""

from torch_gsample.vertex.frontend.aggregations import (
    median,
    prod,
    quantile,
    std,
    var,
)
from torch_gsample.vertex.kernels.layouts import Loops
from torch_gsample.vertex.program import (
    VertexProgram,
    mean,
    vertex_program,
)

__all__ = [
    'Loops',
    'VertexProgram',
    'mean',
    'median',
    'prod',
    'quantile',
    'std',
    'var',
    'vertex_program',
]
