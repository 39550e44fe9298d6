"""Trains a deep GNN on ShaDow's subgraphs, to tell a package's section.

Each package has a small subgraph of its own, so the model may have more layers
than the subgraph has hops. Beside it is printed what features alone reach.
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
from torch_geometric.nn import SAGEConv, global_mean_pool

from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import ShaDowKHopSampler


class ShaDowSAGE(nn.Module):
    """GraphSAGE on subgraphs, read out at the root and over all nodes."""

    def __init__(self, sizes: tuple[int, int, int], num_layers: int):
        super().__init__()
        in_channels, hidden, out_channels = sizes
        self.encode = nn.Linear(in_channels, hidden)
        convs = (SAGEConv(hidden, hidden) for _ in range(num_layers))
        self.convs = nn.ModuleList(convs)
        self.classify = nn.Linear(2 * hidden, out_channels)

    def forward(self, batch: Data) -> Tensor:
        x = batch.x if self.convs else batch.x[batch.root_n_id]
        h = F.dropout(self.encode(x).relu(), 0.5, self.training)
        for conv in self.convs:
            out = conv(h, batch.edge_index).relu()
            h = h + F.dropout(out, 0.5, self.training)
        if not self.convs:
            return self.classify(torch.cat([h, h], dim=1))
        pooled = global_mean_pool(h, batch.batch)
        return self.classify(torch.cat([h[batch.root_n_id], pooled], dim=1))


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=2)
    add('--batch-size', type=int, default=256)
    add('--hidden', type=int, default=64)
    add('--max-batches', type=int, default=10**9, help='per pass')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    train_loader, test_loader = (
        ShaDowKHopSampler(
            data,
            depth=2,
            num_neighbors=5,
            node_idx=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=True,
            seed=args.seed,
        )
        for split in ('train', 'test')
    )
    sizes = data.num_features, args.hidden, dataset.num_classes
    accuracy = {}
    for name, num_layers in (('Features only', 0), ('ShaDow', 3)):
        model = ShaDowSAGE(sizes, num_layers)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        for epoch in range(1, args.epochs + 1):
            model.train()
            for batch in islice(train_loader, args.max_batches):
                loss = F.cross_entropy(model(batch), batch.y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f'{name}, epoch {epoch}: loss {loss.item():.4f}')
        model.eval()
        batches = islice(test_loader, args.max_batches)
        with torch.no_grad():
            correct = [model(b).argmax(dim=1) == b.y for b in batches]
        accuracy[name] = torch.cat(correct).double().mean()
    for name, value in accuracy.items():
        print(f'{name}: test accuracy {value:.4f}')
    print(f'After {time.perf_counter() - begin:.0f} s')


if __name__ == '__main__':
    main()
