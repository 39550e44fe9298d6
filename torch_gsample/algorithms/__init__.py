"""Published samplers as short programs on ``SparseSample``.

A graph, seeds and fan-outs come in. One sampled matrix per layer goes out,
from the seeds outwards; the columns of a layer are its destinations.
"""

from torch_gsample.algorithms.as_gcn import AsGCN
from torch_gsample.algorithms.deepwalk import deepwalk
from torch_gsample.algorithms.exp3 import EdgeBandit
from torch_gsample.algorithms.fastgcn import fastgcn
from torch_gsample.algorithms.forest_fire import forest_fire
from torch_gsample.algorithms.gcn_bs import GCNBS
from torch_gsample.algorithms.graphsage import graphsage
from torch_gsample.algorithms.graphsaint import (
    SaintNorm,
    saint_edge,
    saint_frontier,
    saint_node,
    saint_norm,
    saint_normalize,
    saint_walk,
)
from torch_gsample.algorithms.hetgnn import hetgnn
from torch_gsample.algorithms.hgt import hgt
from torch_gsample.algorithms.ibmb import ibmb, ibmb_batch, ibmb_partition
from torch_gsample.algorithms.kgcn import kgcn
from torch_gsample.algorithms.labor import labor
from torch_gsample.algorithms.ladies import ladies
from torch_gsample.algorithms.node2vec import node2vec
from torch_gsample.algorithms.pass_sampler import PassSampler
from torch_gsample.algorithms.pinsage import pinsage
from torch_gsample.algorithms.ppr import approximate_ppr
from torch_gsample.algorithms.seal import drnl, seal
from torch_gsample.algorithms.shadow import Subgraphs, shadow, shadow_ppr
from torch_gsample.algorithms.thanos import Thanos
from torch_gsample.algorithms.vr_gcn import VRGCN

__all__ = [
    'GCNBS',
    'VRGCN',
    'AsGCN',
    'EdgeBandit',
    'PassSampler',
    'SaintNorm',
    'Subgraphs',
    'Thanos',
    'approximate_ppr',
    'deepwalk',
    'drnl',
    'fastgcn',
    'forest_fire',
    'graphsage',
    'hetgnn',
    'hgt',
    'ibmb',
    'ibmb_batch',
    'ibmb_partition',
    'kgcn',
    'labor',
    'ladies',
    'node2vec',
    'pinsage',
    'saint_edge',
    'saint_frontier',
    'saint_node',
    'saint_norm',
    'saint_normalize',
    'saint_walk',
    'seal',
    'shadow',
    'shadow_ppr',
]
