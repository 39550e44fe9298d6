"""Sparse matrices to write samplers with: PyTorch's names on sampled graphs.

Graphs and dense tensors come in, sampled matrices and PyG's outputs go out.
"""

from torch_gsample.sparse_sample.matrix import SparseSample
from torch_gsample.sparse_sample.row_probs import RowProbs

__all__ = ['RowProbs', 'SparseSample']
