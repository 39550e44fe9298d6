"""GraphSAGE on Reddit's posts: PyG's ``NeighborLoader``.

.. code-block:: sh

    gsample run examples/pyg/sage.py                     # the bundled graph
    gsample run examples/pyg/sage.py --dataset reddit    # 2 GB to download
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv


class SAGE(nn.Module):
    """Two layers of GraphSAGE."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.first = SAGEConv(in_channels, hidden)
        self.second = SAGEConv(hidden, out_channels)

    def forward(self, batch: Data) -> Tensor:
        h = self.first(batch.x, batch.edge_index).relu()
        h = F.dropout(h, 0.5, self.training)
        return self.second(h, batch.edge_index)[: batch.batch_size]


def main() -> None:
    args = parse_args('reddit')
    data, num_classes = load_graph(args)
    train_loader, test_loader = (
        NeighborLoader(
            data,
            num_neighbors=[25, 10],
            input_nodes=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=True,
            num_workers=args.workers,
        )
        for split in ('train', 'test')
    )
    model = SAGE(data.num_features, args.hidden, num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch in islice(train_loader, args.max_batches):
            loss = F.cross_entropy(model(batch), batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    model.eval()
    with torch.no_grad():
        correct = [
            model(batch).argmax(dim=1) == batch.y[: batch.batch_size]
            for batch in islice(test_loader, args.max_batches)
        ]
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'GraphSAGE: test accuracy {torch.cat(correct).double().mean():.4f}')


if __name__ == '__main__':
    main()
