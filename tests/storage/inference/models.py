"""Models and a graph for the tests of inference."""

import re

import torch
from torch_geometric import nn as pyg

from torch_gsample.storage import DiskModel

NODES, WIDTH = 300, 16
DISK = DiskModel(1e-5, 1e9)
#: Disks on which few requests count, or few bytes.
GATHERS, PACKS = DiskModel(1.0, 1e12), DiskModel(1e-9, 1e6)


def random(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype)


def edges(num_edges, rows, cols, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.stack(
        [
            torch.randint(n, (num_edges,), generator=generator)
            for n in (rows, cols)
        ]
    )


def make_edges():
    """Some nodes have loops, one several; one has many in-edges."""
    out = edges(3000, NODES, NODES - 20)
    out[1, :30] = out[0, :30]
    out[:, 30:33] = 7
    out[1, 100:400] = 11
    return out


EDGES = make_edges()
X = random(NODES, WIDTH)


def histogram():
    return EDGES[1].bincount(minlength=NODES).bincount()


def basic(kind, dtype=torch.float64, seed=0, **options):
    torch.manual_seed(seed)
    model = kind(WIDTH, 8, num_layers=2, out_channels=5, **options)
    for norm in model.norms:
        if isinstance(norm, pyg.BatchNorm) and norm.module.track_running_stats:
            norm.module.running_mean.normal_()
            norm.module.running_var.uniform_(0.5, 2)
    return model.to(dtype).eval()


BASIC = {
    'sage': (pyg.GraphSAGE, {'norm': 'batch_norm', 'dropout': 0.5}),
    'sage, jk': (pyg.GraphSAGE, {'jk': 'cat', 'act_first': True}),
    'sage, lstm': (pyg.GraphSAGE, {'jk': 'lstm'}),
    'gcn': (pyg.GCN, {'act': 'elu'}),
    'gcn, no loops': (pyg.GCN, {'add_self_loops': False, 'improved': True}),
    'gcn, sums': (pyg.GCN, {'normalize': False}),
    'gat': (pyg.GAT, {'heads': 2}),
    'gatv2': (pyg.GAT, {'v2': True, 'jk': 'last'}),
    'gin': (pyg.GIN, {'jk': 'max'}),
    'pna': (
        pyg.PNA,
        {
            'aggregators': ['mean', 'min', 'max', 'std'],
            'scalers': ['identity', 'amplification'],
            'deg': histogram(),
        },
    ),
    'edge': (pyg.EdgeCNN, {}),
}


def smallest(call):
    """Returns the least memory that a call says it needs."""
    memory = 1
    while True:
        try:
            return memory, call(memory)
        except ValueError as error:
            need = re.search(r'must be at least (\d+) bytes', str(error))
            if need is None or int(need[1]) <= memory:
                raise
            memory = int(need[1])
