"""Models of many kinds, and batches for them."""

import itertools

import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import trim_to_layer

from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.batch_edge_index import reading_marks

WIDTH, CLASSES = 8, 5
BASIC = {
    'in_channels': WIDTH,
    'hidden_channels': WIDTH,
    'num_layers': 3,
    'out_channels': CLASSES,
}


def graph(dtype=torch.float64, num_nodes=300):
    make = torch.Generator().manual_seed(0)
    num_edges = 5 * num_nodes
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=make)
    return Data(
        x=torch.randn(num_nodes, WIDTH, generator=make, dtype=dtype),
        edge_index=edge_index,
        y=torch.randint(CLASSES, (num_nodes,), generator=make),
        edge_w=torch.rand(num_edges, generator=make, dtype=dtype),
        edge_a=torch.randn(num_edges, 4, generator=make, dtype=dtype),
        train_mask=torch.rand(num_nodes, generator=make) < 0.5,
    )


EDGE_TYPES = (
    ('a', 'to', 'b'),
    ('b', 'of', 'a'),
    ('a', 'cites', 'a'),
    ('c', 'in', 'b'),
    ('b', 'has', 'c'),
)


def typed_graph(dtype=torch.float64):
    make = torch.Generator().manual_seed(0)
    sizes = {'a': 200, 'b': 120, 'c': 60}
    data = HeteroData()
    for name, size in sizes.items():
        x = torch.randn(size, WIDTH, generator=make, dtype=dtype)
        data[name].x = x
        data[name].y = torch.randint(CLASSES, (size,), generator=make)
    for key in EDGE_TYPES:
        ends = (
            torch.randint(sizes[t], (500,), generator=make) for t in key[::2]
        )
        data[key].edge_index = torch.stack(list(ends))
    return data


def batches(data, fanouts=(3, 2, 2), count=2, size=12, **kwargs):
    """Batches that know their blocks."""
    nodes = ('a', torch.arange(100)) if isinstance(data, HeteroData) else None
    with reading_marks():
        loader = NeighborLoader(
            data,
            list(fanouts),
            batch_size=size,
            input_nodes=nodes,
            seed=1,
            prefetch=0,
            **kwargs,
        )
        return list(itertools.islice(loader, count))


class Hand(nn.Module):
    """A loop over layers, as many write it."""

    def __init__(self, kind='', layers=3, conv=SAGEConv):
        super().__init__()
        self.kind = kind
        widths = [
            WIDTH * (i + 1 if kind == 'skip' else 1) for i in range(layers + 1)
        ]
        norms = {'ln': nn.LayerNorm, 'gn': pyg.GraphNorm}
        norm = norms.get(kind, nn.BatchNorm1d)
        self.convs = nn.ModuleList(conv(w, WIDTH) for w in widths[:-1])
        self.norms = nn.ModuleList(norm(WIDTH) for _ in range(layers))
        self.lin = nn.Linear(widths[-1], CLASSES)

    def forward(self, x, edge_index):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = conv(x, edge_index).relu()
            if self.kind in ('bn', 'ln', 'gn'):
                h = norm(h)
            if self.kind == 'residual':
                x = x + h
            elif self.kind == 'skip':
                x = torch.cat([x, h], -1)
            else:
                x = h
        if self.kind == 'mean':
            x = x - x.mean(0)
        if self.kind == 'length':
            x = x / len(x)
        return self.lin(x)


class Trimming(Hand):
    """A model that trims by itself, as PyG's examples do."""

    def forward(self, x, edge_index, nodes, edges):
        for i, conv in enumerate(self.convs):
            x, edge_index, _ = trim_to_layer(i, nodes, edges, x, edge_index)
            x = conv(x, edge_index).relu()
        return self.lin(x)


class Branches(nn.Module):
    """A deep branch and a shallow one."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (
            SAGEConv(WIDTH, WIDTH) for _ in range(4)
        )

    def forward(self, x, edge_index):
        deep = self.b(self.a(x, edge_index).relu(), edge_index)
        return deep + self.d(self.c(x, edge_index).relu(), edge_index)


class Gated(nn.Module):
    """A gate that starts at zero, in front of a mean over all rows."""

    def __init__(self):
        super().__init__()
        self.a, self.b = SAGEConv(WIDTH, WIDTH), SAGEConv(WIDTH, CLASSES)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x, edge_index):
        x = self.a(x, edge_index)
        return self.b(x + self.gate * len(x), edge_index)


class Shared(nn.Module):
    """One layer, three times."""

    def __init__(self):
        super().__init__()
        self.conv = SAGEConv(WIDTH, WIDTH)

    def forward(self, x, edge_index):
        for _ in range(3):
            x = self.conv(x, edge_index).relu()
        return x


class Typed(nn.Module):
    """A stack of HeteroConv."""

    def __init__(self, aggr='sum'):
        super().__init__()
        self.convs = nn.ModuleList(
            pyg.HeteroConv(
                {key: SAGEConv((WIDTH, WIDTH), WIDTH) for key in EDGE_TYPES},
                aggr=aggr,
            )
            for _ in range(3)
        )

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = {k: v.relu() for k, v in conv(x, edge_index).items()}
        return x


class Homogeneous(nn.Module):
    """What `to_hetero` makes a model of many types of."""

    def __init__(self, conv=SAGEConv, **kwargs):
        super().__init__()
        self.a, self.b, self.c = (
            conv((WIDTH, WIDTH), WIDTH, **kwargs) for _ in range(3)
        )
        self.lin = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        h = self.a(x, edge_index).relu()
        h = h + self.b(h, edge_index).relu()
        return self.lin(self.c(h, edge_index))


METADATA = (['a', 'b', 'c'], list(EDGE_TYPES))


def two_layers(conv):
    return pyg.Sequential(
        'x, edge_index',
        [
            (SAGEConv(WIDTH, WIDTH), 'x, edge_index -> x'),
            nn.ReLU(),
            (conv(WIDTH, WIDTH), 'x, edge_index -> x'),
            nn.ReLU(),
            (SAGEConv(WIDTH, CLASSES), 'x, edge_index -> x'),
        ],
    )
