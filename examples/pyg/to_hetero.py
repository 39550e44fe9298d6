"""A model for one type of nodes, made heterogeneous by PyG's ``to_hetero``.

.. code-block:: sh

    gsample run examples/pyg/to_hetero.py
    gsample run examples/pyg/to_hetero.py --dataset ogb-mag
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_typed_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv, to_hetero


class SAGE(nn.Module):
    """Two layers of GraphSAGE, whose sizes follow from the first batch."""

    def __init__(self, hidden: int, out_channels: int):
        super().__init__()
        self.first = SAGEConv((-1, -1), hidden)
        self.second = SAGEConv((-1, -1), hidden)
        self.classify = nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index).relu()
        return self.classify(self.second(x, edge_index).relu())


def main() -> None:
    args = parse_args('ogb-mag')
    data, node_type, num_classes = load_typed_graph(args)
    labelled = data[node_type]
    train_loader, test_loader = (
        NeighborLoader(
            data,
            num_neighbors=[5, 5],
            input_nodes=(node_type, labelled[f'{split}_mask']),
            batch_size=args.batch_size,
            shuffle=True,
            num_workers=args.workers,
        )
        for split in ('train', 'test')
    )
    model = to_hetero(SAGE(args.hidden, num_classes), data.metadata(), 'sum')

    def predict(batch):
        out = model(batch.x_dict, batch.edge_index_dict)[node_type]
        return out[: batch[node_type].batch_size]

    def labels(batch):
        return batch[node_type].y[: batch[node_type].batch_size]

    with torch.no_grad():  # gives all weights their sizes
        predict(next(iter(train_loader)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(1, args.epochs + 1):
        for batch in islice(train_loader, args.max_batches):
            loss = F.cross_entropy(predict(batch), labels(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    with torch.no_grad():
        correct = [
            predict(batch).argmax(dim=1) == labels(batch)
            for batch in islice(test_loader, args.max_batches)
        ]
    share = share_of_largest_class(
        labelled.y, labelled.train_mask, labelled.test_mask
    )
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'to_hetero: test accuracy {torch.cat(correct).double().mean():.4f}')


if __name__ == '__main__':
    main()
