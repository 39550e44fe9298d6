"""Fast, reproducible graph sampling for PyTorch Geometric.

>>> import torch
>>> from torch_geometric.data import Data
>>> from torch_gsample.loader import NeighborLoader
>>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
>>> data = Data(edge_index=edge_index, x=torch.randn(3, 4))
>>> loader = NeighborLoader(data, num_neighbors=[2, 2], batch_size=3, seed=0)
>>> next(iter(loader))
Data(x=[3, 4], edge_index=[2, 3], n_id=[3], e_id=[3], \
num_sampled_nodes=[3], num_sampled_edges=[2], input_id=[3], batch_size=3, \
blocks=Blocks(2))
"""

from typing import TYPE_CHECKING, Any

from torch_gsample import algorithms, loader, nn, ops, rng
from torch_gsample.block import Block, Blocks
from torch_gsample.compiler import (
    compile,
    explain,
    export,
    load_program,
)
from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.graph_input import as_graph
from torch_gsample.huge_pages import use_huge_pages
from torch_gsample.memory import keep_memory
from torch_gsample.patch import patch_pyg
from torch_gsample.quantize import quantize_rows
from torch_gsample.samplers import (
    FastGCNSampler,
    HGTSampler,
    KeyedSampler,
    LaborSampler,
    LadiesSampler,
    NegativeSampling,
    NeighborSampler,
    PinSAGESampler,
    ProgramSampler,
    SaintSampler,
    ShaDowSampler,
)
from torch_gsample.snapshot import forget
from torch_gsample.sparse_sample import SparseSample

if TYPE_CHECKING:
    from torch_gsample.compiler.super_batch.run import super_batch
    from torch_gsample.fusion import fuse, unfuse
    from torch_gsample.vertex import vertex_program

__version__ = '0.1.0'

__all__ = [
    'CSC',
    'Block',
    'Blocks',
    'FastGCNSampler',
    'Graph',
    'HGTSampler',
    'KeyedSampler',
    'LaborSampler',
    'LadiesSampler',
    'NegativeSampling',
    'NeighborSampler',
    'PinSAGESampler',
    'ProgramSampler',
    'SaintSampler',
    'ShaDowSampler',
    'SparseSample',
    '__version__',
    'algorithms',
    'as_graph',
    'compile',
    'explain',
    'export',
    'forget',
    'fuse',
    'keep_memory',
    'load_program',
    'loader',
    'nn',
    'ops',
    'patch_pyg',
    'quantize_rows',
    'rng',
    'super_batch',
    'unfuse',
    'use_huge_pages',
    'vertex_program',
]


def __getattr__(name: str) -> Any:
    # What compiles is imported when it is used: it takes a while.
    if name == 'super_batch':
        from torch_gsample.compiler.super_batch.run import super_batch

        return super_batch
    if name in ('fuse', 'unfuse'):
        from torch_gsample import fusion

        return getattr(fusion, name)
    if name == 'vertex_program':
        from torch_gsample.vertex import vertex_program

        return vertex_program
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
