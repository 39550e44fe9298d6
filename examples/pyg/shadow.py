"""A deep model on shallow subgraphs: PyG's ``ShaDowKHopSampler``.

.. code-block:: sh

    gsample run examples/pyg/shadow.py
    gsample run examples/pyg/shadow.py --dataset flickr
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import ShaDowKHopSampler
from torch_geometric.nn import SAGEConv, global_mean_pool


class GNN(nn.Module):
    """Three layers on two hops, read out at the root and over all nodes."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        sizes = [in_channels, hidden, hidden, hidden]
        convs = (SAGEConv(sizes[i], sizes[i + 1]) for i in range(3))
        self.convs = nn.ModuleList(convs)
        self.classify = nn.Linear(2 * hidden, out_channels)

    def forward(self, batch: Data) -> Tensor:
        h = batch.x
        for conv in self.convs:
            h = conv(h, batch.edge_index).relu()
            h = F.dropout(h, 0.3, self.training)
        pooled = global_mean_pool(h, batch.batch)
        return self.classify(torch.cat([h[batch.root_n_id], pooled], dim=1))


def main() -> None:
    args = parse_args('flickr', batch_size=256)
    data, num_classes = load_graph(args)
    train_loader, test_loader = (
        ShaDowKHopSampler(
            data,
            depth=2,
            num_neighbors=5,
            node_idx=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=True,
            num_workers=args.workers,
        )
        for split in ('train', 'test')
    )
    model = GNN(data.num_features, args.hidden, num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch in islice(train_loader, args.max_batches):
            loss = F.cross_entropy(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    model.eval()
    with torch.no_grad():
        correct = [
            model(batch).argmax(dim=1) == batch.y
            for batch in islice(test_loader, args.max_batches)
        ]
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'ShaDow: test accuracy {torch.cat(correct).double().mean():.4f}')


if __name__ == '__main__':
    main()
