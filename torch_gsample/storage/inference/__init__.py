"""Inference over all nodes of a graph, layer by layer, with files between.

A model, a graph and features come in; a feature file of what the model returns
for each node goes out.
"""

from torch_gsample.storage.inference.infer import infer

__all__ = ['infer']
