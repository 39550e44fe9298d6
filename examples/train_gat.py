"""Trains a graph attention network on Debian's packages: fused kernels.

This is PyG's example of GAT with one import changed.

    python examples/train_gat.py
"""

import argparse
import time

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor
from torch_geometric.data import Data

from torch_gsample.datasets import DebianPackages
from torch_gsample.vertex.nn import GATConv  # was torch_geometric.nn


class GAT(torch.nn.Module):
    def __init__(
        self, in_channels: int, hidden: int, out_channels: int, heads: int
    ):
        super().__init__()
        self.conv1 = GATConv(in_channels, hidden, heads, dropout=0.3)
        self.conv2 = GATConv(
            hidden * heads, out_channels, heads=1, concat=False, dropout=0.3
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, p=0.3, training=self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.3, training=self.training)
        return self.conv2(x, edge_index)


def train(model: GAT, data: Data, optimizer: torch.optim.Optimizer) -> float:
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    mask = data.train_mask
    loss = F.cross_entropy(out[mask], data.y[mask])
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def test(model: GAT, data: Data) -> list[float]:
    model.eval()
    right = model(data.x, data.edge_index).argmax(-1) == data.y
    masks = data.train_mask, data.val_mask, data.test_mask
    return [float(right[mask].float().mean()) for mask in masks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--epochs', type=int, default=30)
    parser.add_argument('--hidden', type=int, default=16)
    parser.add_argument('--heads', type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(12)
    data = T.ToUndirected()(DebianPackages(homogeneous=True)[0])
    model = GAT(
        data.num_features, args.hidden, int(data.y.max()) + 1, args.heads
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        start = time.perf_counter()
        loss = train(model, data, optimizer)
        seconds = time.perf_counter() - start
        accuracy = test(model, data)
        print(
            f'epoch {epoch}: loss {loss:.3f}, train {accuracy[0]:.3f}, '
            f'validation {accuracy[1]:.3f}, test {accuracy[2]:.3f}, '
            f'{seconds:.2f} s'
        )


if __name__ == '__main__':
    main()
