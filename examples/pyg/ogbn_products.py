"""GraphSAGE on OGB's products: each layer on what it needs of the sample only.

.. code-block:: sh

    gsample run examples/pyg/ogbn_products.py
    gsample run examples/pyg/ogbn_products.py --dataset ogbn-products
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GraphSAGE


def predict(model: GraphSAGE, batch: Data) -> Tensor:
    out = model(
        batch.x,
        batch.edge_index,
        num_sampled_nodes_per_hop=batch.num_sampled_nodes,
        num_sampled_edges_per_hop=batch.num_sampled_edges,
    )
    return out[: batch.batch_size]


def main() -> None:
    args = parse_args('ogbn-products')
    data, num_classes = load_graph(args)
    train_loader, test_loader = (
        NeighborLoader(
            data,
            num_neighbors=[15, 10, 5],
            input_nodes=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=True,
            num_workers=args.workers,
            persistent_workers=args.workers > 0,
        )
        for split in ('train', 'test')
    )
    model = GraphSAGE(
        data.num_features, args.hidden, 3, num_classes, dropout=0.5
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch in islice(train_loader, args.max_batches):
            y = batch.y[: batch.batch_size]
            loss = F.cross_entropy(predict(model, batch), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    model.eval()
    with torch.no_grad():
        correct = [
            predict(model, batch).argmax(1) == batch.y[: batch.batch_size]
            for batch in islice(test_loader, args.max_batches)
        ]
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'GraphSAGE: test accuracy {torch.cat(correct).double().mean():.4f}')


if __name__ == '__main__':
    main()
