"""Learns embeddings of Debian's packages from node2vec's walks alone.

.. code-block:: sh

    python examples/train_node2vec.py
    python examples/train_node2vec.py --workers 2    # the same walks

No features are used: a logistic regression on the embeddings tells the
section of packages, beside the share of the largest section.
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

from torch_gsample.datasets import DebianPackages
from torch_gsample.nn import Node2Vec


def accuracy(z: Tensor, data: Data, num_classes: int) -> float:
    """Returns the test accuracy of a logistic regression."""
    z = (z - z.mean(dim=0)) / z.std(dim=0)
    model = nn.Linear(z.size(1), num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(100):
        out = model(z[data.train_mask])
        loss = F.cross_entropy(out, data.y[data.train_mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pred = model(z[data.test_mask]).argmax(dim=1)
    return float((pred == data.y[data.test_mask]).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=2)
    add('--batch-size', type=int, default=256)
    add('--walk-length', type=int, default=10)
    add('--context-size', type=int, default=5)
    add('--p', type=float, default=1.0)
    add('--q', type=float, default=0.5)
    add('--hidden', type=int, default=64)
    add('--max-batches', type=int, default=10**9, help='per epoch')
    add('--workers', type=int, default=0)
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    model = Node2Vec(
        data.edge_index,
        embedding_dim=args.hidden,
        walk_length=args.walk_length,
        context_size=args.context_size,
        p=args.p,
        q=args.q,
        num_nodes=data.num_nodes,
        sparse=True,
        seed=args.seed,
    )
    nn.init.normal_(model.embedding.weight, std=0.1)  # near what is learned
    loader = model.loader(
        batch_size=args.batch_size, shuffle=True, num_workers=args.workers
    )
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        for pos_rw, neg_rw in islice(loader, args.max_batches):
            optimizer.zero_grad()
            loss = model.loss(pos_rw, neg_rw)
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    largest = data.y[data.train_mask].bincount().argmax()
    majority = (data.y[data.test_mask] == largest).double().mean()
    test = accuracy(model().detach(), data, dataset.num_classes)
    print(f'Largest section: test accuracy {majority:.4f}')
    print(f'node2vec: test accuracy {test:.4f}')
    print(f'After {time.perf_counter() - begin:.0f} s')


if __name__ == '__main__':
    main()
