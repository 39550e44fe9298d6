"""Predicts links between Debian's packages from the subgraphs around them.

SEAL sees neither features nor names: only how the packages around a pair are
linked, as labels of their distances to both ends. ``LinkNeighborLoader``
samples around both ends, and its model sees degrees. Hubs are left out: their
links say little and their subgraphs are large. With an equal budget of rows,
SEAL is better and takes twice the time.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from runner import Method, arguments, auc, compare
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GraphConv, global_mean_pool
from torch_geometric.utils import degree

from torch_gsample import SparseSample
from torch_gsample.algorithms import seal
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import LinkNeighborLoader

MAX_DEGREE = 50


class LinkGNN(nn.Module):
    """A GNN on labels of nodes, read out at both ends of links."""

    def __init__(self, hidden: int):
        super().__init__()
        self.label = nn.Embedding(MAX_DEGREE + 1, hidden)
        self.convs = nn.ModuleList(
            GraphConv(hidden, hidden, aggr='mean') for _ in range(2)
        )
        self.score = MLP([2 * hidden, hidden, 1], norm=None)

    def forward(self, batch: Data) -> Tensor:
        """Returns scores ``[num_links]``."""
        h = self.label(batch.x.clamp(max=MAX_DEGREE))
        for conv in self.convs:
            h = h + conv(h, batch.edge_index).relu()
        u, v = h[batch.edge_label_index]
        pooled = u + v
        if 'link' in batch:
            pooled = global_mean_pool(h, batch.link)
        return self.score(torch.cat([u * v, pooled], dim=1)).flatten()


def auc_of(score: Tensor, label: Tensor) -> float:
    return auc(score[label == 1], score[label == 0])


class EnclosingSubgraphs:
    """Yields batches of links with the subgraphs around them."""

    def __init__(self, data: Data, batch_size: int):
        edges, size = data.edge_index, data.num_nodes
        self.A = SparseSample.from_edge_index(edges, None, size)
        self.data, self.batch_size = data, batch_size

    def __iter__(self) -> Iterator[Data]:
        labels, links = self.data.edge_label, self.data.edge_label_index
        for index in torch.randperm(labels.numel()).split(self.batch_size):
            A, link, ends, label = seal(self.A, links[:, index], num_hops=1)
            yield Data(
                x=label,
                edge_index=A.to_edge_index(),
                edge_label=labels[index],
                edge_label_index=torch.stack(tuple(ends)),
                link=link,
            )


def main() -> None:
    args = arguments(batch_size=256, hidden=32, rows=150_000)
    data = T.ToUndirected()(DebianPackages(homogeneous=True)[0])
    few = degree(data.edge_index[0], data.num_nodes) <= MAX_DEGREE
    data.edge_index = data.edge_index[:, few[data.edge_index].all(dim=0)]
    # Edges whose model is trained are not those of its messages.
    split = T.RandomLinkSplit(0.02, 0.05, True, disjoint_train_ratio=0.3)
    splits = dict(zip(('train', 'val', 'test'), split(data), strict=True))
    edges = splits['train'].edge_index
    degrees = degree(edges[1], data.num_nodes).long()
    for part in splits.values():
        part.edge_index, part.x, part.y = edges, degrees, None

    def around_ends(part: Data, batch_size: int) -> LinkNeighborLoader:
        links = part.edge_label_index, part.edge_label
        options = {'batch_size': batch_size, 'shuffle': True}
        return LinkNeighborLoader(
            part, [10, 5], *links, seed=args.seed, **options
        )

    def method(name: str, loader: Callable) -> Method:
        model = LinkGNN(args.hidden)
        loaders = {k: loader(v, args.batch_size) for k, v in splits.items()}

        def loss(batch: Data) -> Tensor:
            return F.binary_cross_entropy_with_logits(
                model(batch), batch.edge_label.float()
            )

        def score(split: str) -> float:
            pairs = [(model(b), b.edge_label) for b in loaders[split]]
            return auc_of(*map(torch.cat, zip(*pairs, strict=True)))

        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        return Method(
            name, loaders['train'], model, loss, score, optimizer=optimizer
        )

    u, v = degrees[splits['test'].edge_label_index]
    known = {'Product of degrees': auc_of(u * v, splits['test'].edge_label)}
    methods = {'LinkNeighborLoader': around_ends, 'SEAL': EnclosingSubgraphs}
    compare((method(*item) for item in methods.items()), args, 'AUC', known)


if __name__ == '__main__':
    main()
