"""GraphSAGE without labels: PyG's ``LinkNeighborLoader`` and its negatives.

.. code-block:: sh

    gsample run examples/pyg/unsupervised_sage.py
    gsample run examples/pyg/unsupervised_sage.py --dataset cora

Nodes with an edge are to be near each other. A logistic regression on what
comes of it tells the class.
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
from torch_geometric.nn import GraphSAGE


def fit(z: Tensor, y: Tensor) -> nn.Module:
    """Returns a logistic regression."""
    model = nn.Sequential(
        nn.BatchNorm1d(z.size(1)), nn.Linear(z.size(1), int(y.max()) + 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(50):
        loss = F.cross_entropy(model(z), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def main() -> None:
    args = parse_args('cora', max_batches=100)
    data, _ = load_graph(args)
    loader = LinkNeighborLoader(
        data,
        num_neighbors=[10, 10],
        batch_size=args.batch_size,
        shuffle=True,
        neg_sampling_ratio=1.0,
        num_workers=args.workers,
    )
    model = GraphSAGE(data.num_features, args.hidden, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        for batch in islice(loader, args.max_batches):
            h = model(batch.x, batch.edge_index)
            src, dst = batch.edge_label_index
            score = (h[src] * h[dst]).sum(dim=1)
            loss = F.binary_cross_entropy_with_logits(score, batch.edge_label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    outs = {}
    for split in ('train', 'test'):
        nodes = NeighborLoader(
            data,
            num_neighbors=[10, 10],
            input_nodes=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=True,
        )
        with torch.no_grad():
            pairs = [
                (model(b.x, b.edge_index)[: b.batch_size], b.y[: b.batch_size])
                for b in islice(nodes, args.max_batches)
            ]
        outs[split] = [torch.cat(part) for part in zip(*pairs, strict=True)]
    z, y = outs['test']
    accuracy = (fit(*outs['train'])(z).argmax(dim=1) == y).double().mean()
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'Unsupervised: test accuracy {accuracy:.4f}')


if __name__ == '__main__':
    main()
