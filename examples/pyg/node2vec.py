"""Embeddings from random walks alone: PyG's ``Node2Vec``.

.. code-block:: sh

    gsample run examples/pyg/node2vec.py
    gsample run examples/pyg/node2vec.py --dataset cora

A logistic regression on them tells the class of a node.
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import nn
from torch_geometric.nn import Node2Vec


def main() -> None:
    args = parse_args('cora', walk_length=10, context_size=5)
    data, num_classes = load_graph(args)
    model = Node2Vec(
        data.edge_index,
        embedding_dim=args.hidden,
        walk_length=args.walk_length,
        context_size=args.context_size,
        walks_per_node=1,
        num_negative_samples=1,
        p=1.0,
        q=0.5,
        num_nodes=data.num_nodes,
        sparse=True,
    )
    nn.init.normal_(model.embedding.weight, std=0.1)  # near what is learned
    loader = model.loader(
        batch_size=args.batch_size, shuffle=True, num_workers=args.workers
    )
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        for pos_rw, neg_rw in islice(loader, args.max_batches):
            loss = model.loss(pos_rw, neg_rw)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    z = model().detach()
    z = (z - z.mean(dim=0)) / z.std(dim=0)
    classify = nn.Linear(args.hidden, num_classes)
    optimizer = torch.optim.Adam(classify.parameters(), lr=0.05)
    train, test = data.train_mask, data.test_mask
    for _ in range(50):
        loss = F.cross_entropy(classify(z[train]), data.y[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    correct = classify(z[test]).argmax(dim=1) == data.y[test]
    share = share_of_largest_class(data.y, train, test)
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'node2vec: test accuracy {correct.double().mean():.4f}')


if __name__ == '__main__':
    main()
