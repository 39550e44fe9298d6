"""Trains a GNN on layers that LADIES samples, to tell a package's section.

The weights of a sampled layer make its sum an estimate of the whole mean, so
the model is tested on the whole graph, without samples. Beside it is printed
what features alone reach.
"""

import argparse
import time
from itertools import islice

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv
from torch_geometric.utils import degree

from torch_gsample import LadiesSampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

Layers = list[tuple[Tensor, Tensor]]  # ``edge_index`` and ``edge_weight``


class GNN(nn.Module):
    """Sums over the weighted edges of each layer."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.encode = nn.Linear(in_channels, hidden)
        self.convs = nn.ModuleList(GraphConv(hidden, hidden) for _ in range(2))
        self.classify = nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, layers: Layers) -> Tensor:
        h = F.dropout(self.encode(x).relu(), 0.5, self.training)
        for i, (edge_index, edge_weight) in enumerate(layers):
            out = self.convs[i](h, edge_index, edge_weight).relu()
            h = h + F.dropout(out, 0.5, self.training)
        return self.classify(h)


def layers_of(batch: Data) -> Layers:
    """Returns the edges of each hop, the outermost first."""
    edges = batch.edge_index.split(batch.num_sampled_edges, dim=1)
    weights = batch.edge_weight.split(batch.num_sampled_edges)
    return list(zip(edges, weights, strict=True))[::-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=4)
    add('--batch-size', type=int, default=1024)
    add('--num-sampled', type=int, default=3072, help='per hop')
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=10**9, help='per epoch')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    col = data.edge_index[1]
    data.weight = 1 / degree(col, data.num_nodes)[col]  # a mean
    sizes = [args.num_sampled] * 2
    sampler = LadiesSampler(data, sizes, weight_attr='weight', seed=args.seed)
    options = {'batch_size': args.batch_size, 'shuffle': True}
    loader = NeighborLoader(
        data, None, data.train_mask, sampler=sampler, **options
    )
    accuracy = {}
    for name, use_edges in (('Features only', False), ('LADIES', True)):
        model = GNN(data.num_features, args.hidden, dataset.num_classes)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(1, args.epochs + 1):
            model.train()
            for batch in islice(loader, args.max_batches):
                out = model(batch.x, layers_of(batch) if use_edges else [])
                size = batch.batch_size
                loss = F.cross_entropy(out[:size], batch.y[:size])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f'{name}, epoch {epoch}: loss {loss.item():.4f}')
        model.eval()
        with torch.no_grad():
            layer = data.edge_index, data.weight
            pred = model(data.x, [layer] * 2 if use_edges else []).argmax(1)
        accuracy[name] = (pred == data.y)[data.test_mask].double().mean()
    for name, value in accuracy.items():
        print(f'{name}: test accuracy {value:.4f}')
    print(f'After {time.perf_counter() - begin:.0f} s')


if __name__ == '__main__':
    main()
