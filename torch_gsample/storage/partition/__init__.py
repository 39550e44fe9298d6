"""Graphs and features split over the processes of a group.

Each process's part of a graph and of its features comes in; samples and
batches go out, equal to those on one machine.
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
