"""GNN layers written as the computation at one vertex, run as fused kernels.

A function of a vertex comes in; a layer on a graph and features, with
gradients, goes out.
"""

from torch_gsample.vertex.frontend.aggregations import (
    median,
    prod,
    quantile,
    std,
    var,
)
from torch_gsample.vertex.kernels.layout import Loops
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
