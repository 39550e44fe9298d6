"""PyG models that sample walks, without pyg-lib.

The input is a graph; the output is embeddings of its nodes.
"""

from torch_gsample.nn.node2vec import Node2Vec

__all__ = ['Node2Vec']
