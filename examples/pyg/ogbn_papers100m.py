"""GCN on OGB's graph of 111 million papers, of which 1.5 million have labels.

.. code-block:: sh

    gsample run examples/pyg/ogbn_papers100m.py
    gsample run examples/pyg/ogbn_papers100m.py --dataset ogbn-papers100M

The real graph takes 60 GB to download and about 150 GB of memory: three
billion directed edges as a list, their columns in the sampler, and features.
Seeds are lists of nodes, and only edges of sampled nodes are normalised.
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCN


def predict(model: nn.Module, batch: Data) -> Tensor:
    return model(batch.x, batch.edge_index)[: batch.batch_size]


def main() -> None:
    args = parse_args('ogbn-papers100M', fanout=10)
    data, num_classes = load_graph(args)
    loaders = {
        split: NeighborLoader(
            data,
            num_neighbors=[args.fanout, args.fanout],
            input_nodes=data[f'{split}_mask'].nonzero().view(-1),
            batch_size=args.batch_size,
            shuffle=split == 'train',
            drop_last=split == 'train',
            num_workers=args.workers,
        )
        for split in ('train', 'val', 'test')
    }
    model = GCN(data.num_features, args.hidden, 2, num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch in islice(loaders['train'], args.max_batches):
            y = batch.y[: batch.batch_size]
            loss = F.cross_entropy(predict(model, batch), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    model.eval()
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    for split in ('val', 'test'):
        with torch.no_grad():
            correct = [
                predict(model, batch).argmax(1) == batch.y[: batch.batch_size]
                for batch in islice(loaders[split], args.max_batches)
            ]
        accuracy = torch.cat(correct).double().mean()
        print(f'GCN: {split} accuracy {accuracy:.4f}')


if __name__ == '__main__':
    main()
