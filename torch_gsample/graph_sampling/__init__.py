"""Reduces a whole graph to a smaller one that looks like it.

A graph comes in as PyG's ``Data``, a sampled ``Data`` goes out. The same
operators for graphs on a cluster are in :mod:`torch_gsample.spark`, and give
the same samples.
"""

from typing import TYPE_CHECKING

from torch_gsample._lazy import lazy_names

if TYPE_CHECKING:
    from torch_gsample.graph_sampling.operators import (
        random_edge,
        random_vertex,
        random_vertex_neighborhood,
        random_walk,
    )
    from torch_gsample.graph_sampling.quality import (
        GraphProperties,
        SampleQuality,
        graph_properties,
        sample_quality,
    )

#: The module of each name: tasks on Spark draw without PyG.
_MODULES = {
    'operators': (
        'random_edge',
        'random_vertex',
        'random_vertex_neighborhood',
        'random_walk',
    ),
    'quality': (
        'GraphProperties',
        'SampleQuality',
        'graph_properties',
        'sample_quality',
    ),
}

__all__ = [
    'GraphProperties',
    'SampleQuality',
    'graph_properties',
    'random_edge',
    'random_vertex',
    'random_vertex_neighborhood',
    'random_walk',
    'sample_quality',
]


if not TYPE_CHECKING:  # checkers report unknown names
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
