"""Samplers for PyG's loaders.

A graph and a batch of seeds come in, a PyG ``SamplerOutput`` goes out.
"""

from typing import TYPE_CHECKING

from torch_gsample._lazy import lazy_names

if TYPE_CHECKING:
    from torch_gsample.samplers.base import KeyedSampler
    from torch_gsample.samplers.link.sampling import NegativeSampling
    from torch_gsample.samplers.neighbor.node_wise import NeighborSampler
    from torch_gsample.samplers.program.hgt import HGTSampler
    from torch_gsample.samplers.program.layer_wise import (
        FastGCNSampler,
        LaborSampler,
        LadiesSampler,
    )
    from torch_gsample.samplers.program.pinsage import PinSAGESampler
    from torch_gsample.samplers.program.sampler import ProgramSampler
    from torch_gsample.samplers.program.subgraph import (
        SaintSampler,
        ShaDowSampler,
    )

#: The module of each name. A module is imported at the first use of a name.
_MODULES = {
    'base': ('KeyedSampler',),
    'link.sampling': ('NegativeSampling',),
    'neighbor.node_wise': ('NeighborSampler',),
    'program.hgt': ('HGTSampler',),
    'program.layer_wise': (
        'FastGCNSampler',
        'LaborSampler',
        'LadiesSampler',
    ),
    'program.pinsage': ('PinSAGESampler',),
    'program.sampler': ('ProgramSampler',),
    'program.subgraph': (
        'SaintSampler',
        'ShaDowSampler',
    ),
}

# In the order of the reference pages.
__all__ = [  # noqa: RUF022
    'NeighborSampler',
    'NegativeSampling',
    'ProgramSampler',
    'LadiesSampler',
    'FastGCNSampler',
    'LaborSampler',
    'PinSAGESampler',
    'HGTSampler',
    'SaintSampler',
    'ShaDowSampler',
    'KeyedSampler',
]

if not TYPE_CHECKING:  # checkers report unknown names
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
