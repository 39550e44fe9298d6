"""Graphs and features that no process has whole.

The parts of a graph and of its features that each process of a group has come
in; samples and batches go out, the same ones as on one machine.
"""

from torch_gsample.storage.partition.exchange import Exchange
from torch_gsample.storage.partition.features import PartitionedFeatures
from torch_gsample.storage.partition.graph_part import GraphPart
from torch_gsample.storage.partition.sampler import PartitionedSampler

__all__ = [
    'Exchange',
    'GraphPart',
    'PartitionedFeatures',
    'PartitionedSampler',
]
