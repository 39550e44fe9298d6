"""Fuses models written with PyG's layers, and runs them on blocks.

A model and batches with blocks come in; the model then computes only the rows
that the seeds need.
"""

from torch_gsample.fusion.automatic import AutomaticFusion
from torch_gsample.fusion.model import Fusion, fuse, unfuse

__all__ = ['AutomaticFusion', 'Fusion', 'fuse', 'unfuse']
