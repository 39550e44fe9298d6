"""Subgraphs of random walks: PyG's ``GraphSAINTRandomWalkSampler``.

.. code-block:: sh

    gsample run examples/pyg/graph_saint.py
    gsample run examples/pyg/graph_saint.py --dataset flickr

``node_norm`` and ``edge_norm`` make the loss and the means of a subgraph
estimates of those of the whole graph.
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.loader import GraphSAINTRandomWalkSampler, NeighborLoader
from torch_geometric.nn import GraphConv
from torch_geometric.utils import degree


class GNN(nn.Module):
    """Two layers, in which edges have weights."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.first = GraphConv(in_channels, hidden)
        self.second = GraphConv(hidden, hidden)
        self.classify = nn.Linear(2 * hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        first = self.first(x, edge_index, weight).relu()
        second = self.second(first, edge_index, weight).relu()
        h = torch.cat([first, second], dim=1)
        return self.classify(F.dropout(h, 0.2, self.training))


def mean_weights(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Returns the weights with which a sum over edges is a mean."""
    return 1 / degree(edge_index[1], num_nodes)[edge_index[1]]


def main() -> None:
    args = parse_args(
        'flickr', batch_size=2000, walk_length=2, coverage=3, max_batches=30
    )
    data, num_classes = load_graph(args)
    data.edge_weight = mean_weights(data.edge_index, data.num_nodes)
    loader = GraphSAINTRandomWalkSampler(
        data,
        batch_size=args.batch_size,
        walk_length=args.walk_length,
        num_steps=args.max_batches,
        sample_coverage=args.coverage,
        num_workers=args.workers,
        log=False,
    )
    model = GNN(data.num_features, args.hidden, num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
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
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    model.eval()
    correct, tests = (
        [],
        NeighborLoader(
            data, [25, 10], data.test_mask, batch_size=1024, shuffle=True
        ),
    )
    for batch in islice(tests, args.max_batches):
        weight = mean_weights(batch.edge_index, batch.num_nodes)
        with torch.no_grad():
            out = model(batch.x, batch.edge_index, weight)
        correct.append((out.argmax(dim=1) == batch.y)[: batch.batch_size])
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    accuracy = torch.cat(correct).double().mean()
    print(f'GraphSAINT: test accuracy {accuracy:.4f}')


if __name__ == '__main__':
    main()
