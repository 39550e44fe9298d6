"""Models written with PyG's layers, on fused layers and blocks.

The input is a model and batches with blocks; the model then computes only the
rows that the seeds need.
"""

from torch_gsample.fusion.automatic import AutomaticFusion
from torch_gsample.fusion.model import Fusion, fuse, unfuse

__all__ = ['AutomaticFusion', 'Fusion', 'fuse', 'unfuse']
