"""PyG's models that sample walks, without pyg-lib.

A graph comes in, embeddings of its nodes go out.
"""

from torch_gsample.nn.node2vec import Node2Vec

__all__ = ['Node2Vec']
