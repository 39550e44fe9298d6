"""Models that were written with PyG's layers, on fused layers and blocks.

A model and batches that know their blocks come in; the model computes what
its seeds need.
"""

from torch_gsample.fusion.automatic import AutomaticFusion
from torch_gsample.fusion.model import Fusion, fuse, unfuse

__all__ = ['AutomaticFusion', 'Fusion', 'fuse', 'unfuse']
