"""Calls that type checkers accept or refuse: mypy reads this file.

Where it accepts a call that it should refuse, it reports an unused ignore.
"""

import torch
from torch_geometric.data import Data

from torch_gsample import loader, samplers
from torch_gsample.nn import Node2Vec


def accepted(data: Data) -> None:
    loader.NeighborLoader(data, [2], replace=True, seed=0, num_workers=2)
    loader.NeighborLoader(data, [2], static_shapes=2, device='cuda', rank=1)
    loader.NeighborLoader(data, sampler=samplers.NeighborSampler(data, [2]))
    loader.LinkNeighborLoader(data, [2], neg_sampling='binary', prefetch=0)
    loader.HGTLoader(data, [2], 'paper', rng_scope='epoch', batch_size=8)
    loader.ShaDowKHopSampler(data, 2, 5, shuffle=True, seed=0)
    loader.GraphSAINTNodeSampler(data, 8, pin_memory=True)
    samplers.LadiesSampler(data, [2], normalization='row', share_memory=True)
    samplers.ShaDowSampler(data, [2], own_edges=False, compile=True)
    Node2Vec(torch.zeros(2, 1), 8, 4, 3).loader(batch_size=2)


def refused(data: Data) -> None:
    loader.NeighborLoader(data, [2], num_worker=2)  # type: ignore[call-arg]
    loader.NeighborLoader(data, [2], seed='0')  # type: ignore[arg-type]
    loader.NeighborLoader(data, [2], replace='no')  # type: ignore[arg-type]
    loader.LinkNeighborLoader(data, [2], prefetch='2')  # type: ignore[arg-type]
    loader.HGTLoader(data, [2], 'paper', rng_scope='all')  # type: ignore[arg-type]
    loader.ShaDowKHopSampler(data, 2, 5, timeout='1')  # type: ignore[arg-type]
    loader.GraphSAINTNodeSampler(data, 8, log=1.5)  # type: ignore[arg-type]
    loader.WalkLoader(3, list, batch_sise=2)  # type: ignore[call-arg]
    samplers.NeighborSampler(data, [2], sed=0)  # type: ignore[call-arg]
    samplers.LadiesSampler(data, [2], normalization='rows')  # type: ignore[arg-type]
    samplers.SaintSampler(data, 2, compiled=True)  # type: ignore[call-arg]
    Node2Vec(torch.zeros(2, 1), 8, 4, 3).loader(seed=0.5)  # type: ignore[arg-type]
