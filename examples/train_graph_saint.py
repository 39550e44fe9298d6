"""Trains a GNN on GraphSAINT's subgraphs, to tell a package's section.

``node_norm`` and ``edge_norm`` make the loss and the means of a subgraph
estimates of those of the whole graph, on which the model is tested. Beside it
is printed what features alone reach.
"""

import argparse
import time

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.nn import GraphConv
from torch_geometric.utils import degree

from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import GraphSAINTRandomWalkSampler


class GNN(nn.Module):
    """Sums over weighted edges, in ``num_layers`` layers."""

    def __init__(self, sizes: tuple[int, int, int], num_layers: int):
        super().__init__()
        in_channels, hidden, out_channels = sizes
        self.encode = nn.Linear(in_channels, hidden)
        convs = (GraphConv(hidden, hidden) for _ in range(num_layers))
        self.convs = nn.ModuleList(convs)
        self.classify = nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        h = F.dropout(self.encode(x).relu(), 0.5, self.training)
        for conv in self.convs:
            out = conv(h, edge_index, weight).relu()
            h = h + F.dropout(out, 0.5, self.training)
        return self.classify(h)


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=2000, help='walks of a subgraph')
    add('--walk-length', type=int, default=2)
    add('--coverage', type=int, default=3, help='of the normalisation')
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=30, help='per epoch')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    col = data.edge_index[1]
    data.edge_weight = 1 / degree(col, data.num_nodes)[col]  # a mean
    loader = GraphSAINTRandomWalkSampler(
        data,
        args.batch_size,
        args.walk_length,
        num_steps=args.max_batches,
        sample_coverage=args.coverage,
        log=False,
        seed=args.seed,
    )
    sizes = data.num_features, args.hidden, dataset.num_classes
    accuracy = {}
    for name, num_layers in (('Features only', 0), ('GraphSAINT', 2)):
        model = GNN(sizes, num_layers)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(1, args.epochs + 1):
            model.train()
            for batch in loader:
                weight = batch.edge_norm * batch.edge_weight
                out = model(batch.x, batch.edge_index, weight)
                loss = F.cross_entropy(out, batch.y, reduction='none')
                loss = (loss * batch.node_norm)[batch.train_mask].sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f'{name}, epoch {epoch}: loss {loss.item():.4f}')
        model.eval()
        with torch.no_grad():
            out = model(data.x, data.edge_index, data.edge_weight)
        correct = (out.argmax(dim=1) == data.y)[data.test_mask]
        accuracy[name] = correct.double().mean()
    for name, value in accuracy.items():
        print(f'{name}: test accuracy {value:.4f}')
    print(f'After {time.perf_counter() - begin:.0f} s')


if __name__ == '__main__':
    main()
