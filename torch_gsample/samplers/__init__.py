"""Samplers for PyG's loaders.

A graph and a batch of seeds come in, a PyG ``SamplerOutput`` goes out.
"""

from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.hgt import HGTSampler
from torch_gsample.samplers.node_wise import NeighborSampler
from torch_gsample.samplers.program import ProgramSampler
from torch_gsample.samplers.subgraph import SaintSampler, ShaDowSampler

__all__ = [
    'HGTSampler',
    'KeyedSampler',
    'NeighborSampler',
    'ProgramSampler',
    'SaintSampler',
    'ShaDowSampler',
]
