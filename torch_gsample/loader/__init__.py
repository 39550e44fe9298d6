"""PyG's loaders with a ``sampler=`` argument.

A graph and seeds come in, PyG mini-batches go out.
"""

from torch_gsample.loader.hgt_loader import HGTLoader
from torch_gsample.loader.neighbor_loader import (
    LinkNeighborLoader,
    NeighborLoader,
)

__all__ = ['HGTLoader', 'LinkNeighborLoader', 'NeighborLoader']
