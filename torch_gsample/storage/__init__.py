"""Graphs larger than memory: a chunked format, and samplers that read it.

Graphs and edge files come in; samples of a graph on disk go out.
"""

from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.random_read import RandomReadSampler
from torch_gsample.storage.streaming import StreamingSampler

__all__ = ['ChunkedGraph', 'RandomReadSampler', 'StreamingSampler']
