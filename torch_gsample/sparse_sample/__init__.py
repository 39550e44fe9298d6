"""Sparse matrices for samplers: PyTorch's names on sampled graphs.

Graphs and dense tensors come in, sampled matrices and PyG's outputs go out.
"""

from typing import Any

from torch_gsample import _deprecated
from torch_gsample.sparse_sample.matrix import SparseSample
from torch_gsample.sparse_sample.node_probs import NodeProbs

__all__ = ['NodeProbs', 'SparseSample']


def __getattr__(name: str) -> Any:
    return _deprecated.find(__name__, name)
