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

from typing import TYPE_CHECKING

from torch_gsample._lazy import lazy_names

if TYPE_CHECKING:
    from torch_gsample import (
        algorithms,
        compiler,
        datasets,
        graph_sampling,
        loader,
        nn,
        ops,
        relational,
        rng,
        samplers,
        spark,
        storage,
        testing,
        vertex,
        viz,
    )
    from torch_gsample.block import Block, Blocks
    from torch_gsample.compiler import compile, export, load_program
    from torch_gsample.compiler.explain import explain
    from torch_gsample.compiler.super_batch.run import super_batch
    from torch_gsample.csc import CSC
    from torch_gsample.fusion import fuse, unfuse
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
    from torch_gsample.samplers.neighbor.last_neighbors import last_neighbors
    from torch_gsample.snapshot import forget
    from torch_gsample.sparse_sample import SparseSample
    from torch_gsample.vertex import vertex_program

__version__ = '0.2.0'

#: The module of each name: none is imported before a name of it is used.
_MODULES = {
    'block': ('Block', 'Blocks'),
    'compiler': ('compile', 'export', 'load_program'),
    'compiler.explain': ('explain',),
    'compiler.super_batch.run': ('super_batch',),
    'csc': ('CSC',),
    'fusion': ('fuse', 'unfuse'),
    'graph': ('Graph',),
    'graph_input': ('as_graph',),
    'huge_pages': ('use_huge_pages',),
    'memory': ('keep_memory',),
    'patch': ('patch_pyg',),
    'quantize': ('quantize_rows',),
    'samplers': (
        'FastGCNSampler',
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
    ),
    'samplers.neighbor.last_neighbors': ('last_neighbors',),
    'snapshot': ('forget',),
    'sparse_sample': ('SparseSample',),
    'vertex': ('vertex_program',),
}
#: The public modules.
_PARTS = (
    'algorithms compiler datasets graph_sampling loader nn ops relational rng '
    'samplers spark storage testing vertex viz'
).split()

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
    'compiler',
    'datasets',
    'explain',
    'export',
    'forget',
    'fuse',
    'graph_sampling',
    'keep_memory',
    'last_neighbors',
    'load_program',
    'loader',
    'nn',
    'ops',
    'patch_pyg',
    'quantize_rows',
    'relational',
    'rng',
    'samplers',
    'spark',
    'storage',
    'super_batch',
    'testing',
    'unfuse',
    'use_huge_pages',
    'vertex',
    'vertex_program',
    'viz',
]


if not TYPE_CHECKING:  # checkers report unknown names
    __getattr__, __dir__ = lazy_names(__name__, _MODULES, _PARTS)
