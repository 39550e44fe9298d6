"""Trains a graph attention network on Debian's packages: fused kernels.

Both models read the batches of one ``NeighborLoader``. The layers of PyG
compute all nodes of a batch. The fused ones, with one import changed, compute
what is read later: ``batch.blocks`` lists it for each layer.
"""

import torch.nn.functional as F
from runner import Method, accuracy_of, arguments, baselines, compare, debian
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from torch_gsample.loader import NeighborLoader
from torch_gsample.vertex import nn as fused


class GAT(nn.Module):
    """Layers of attention with residual connections, one a hop."""

    def __init__(self, conv: type[pyg.GATConv], data: Data, hidden: int):
        super().__init__()
        self.encode = nn.Linear(data.num_features, hidden)
        self.convs = nn.ModuleList(
            conv(hidden, hidden, 4, False) for _ in '12'
        )
        self.classify = nn.Linear(hidden, int(data.y.max()) + 1)
        self.whole = conv is pyg.GATConv

    def forward(self, batch: Data) -> Tensor:
        """Returns the scores of the seeds."""
        graphs = [batch.edge_index] * 2 if self.whole else batch.blocks
        h = self.drop(self.encode(batch.x).relu())
        for conv, graph in zip(self.convs, graphs, strict=True):
            out = F.elu(conv(h, graph))
            h = h[: len(out)] + self.drop(out)
        return self.classify(h[: batch.batch_size])

    def drop(self, h: Tensor) -> Tensor:
        return F.dropout(h, 0.5, self.training)


def main() -> None:
    args = arguments(batch_size=512)
    data = debian()
    loaders = {
        split: NeighborLoader(
            data,
            [10, 5],
            data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=split == 'train',
            seed=args.seed,
        )
        for split in ('train', 'val', 'test')
    }

    def method(name: str, conv: type[pyg.GATConv]) -> Method:
        model = GAT(conv, data, args.hidden)

        def loss(batch: Data) -> Tensor:
            return F.cross_entropy(model(batch), batch.y[: batch.batch_size])

        score = accuracy_of(loaders, model, args.max_batches)
        return Method(name, loaders['train'], model, loss, score)

    features, _ = baselines(data, [10, 5], args)
    gats = method('GAT, PyG', pyg.GATConv), method('GAT, fused', fused.GATConv)
    compare([features, *gats], args)


if __name__ == '__main__':
    main()
