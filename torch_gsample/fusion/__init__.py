"""Models that were written with PyG's layers, on fused layers and blocks.

A model and batches that know their blocks come in; the model computes what
its seeds need.
"""

from torch_gsample.fusion.fuse import Fusion, fuse, unfuse

__all__ = ['Fusion', 'fuse', 'unfuse']
