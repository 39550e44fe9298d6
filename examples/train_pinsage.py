"""Recommends Debian packages with PinSAGE.

PinSAGE averages over the packages that random walks along dependencies visit
most. Models learn from eight tenths of all recommendations, and rank packages
for the others; popularity is the number of known recommendations. With an
equal budget of feature rows, direct neighbours (``NeighborLoader``) rank
better here.
"""

import torch
import torch.nn.functional as F
from runner import Method, arguments, compare, debian, mean_weight
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv
from torch_geometric.utils import to_undirected

from torch_gsample import NeighborSampler, PinSAGESampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader


class PinSAGE(nn.Module):
    """Weighted pooling, and a vector for each end of a recommendation."""

    def __init__(self, in_channels: int, hidden: int):
        super().__init__()
        self.encode = nn.Linear(in_channels, hidden)
        self.pool = GraphConv(hidden, hidden)
        self.ends = nn.Linear(hidden, 2 * hidden)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        h = self.encode(batch.x).relu()
        weight = batch.edge_weight
        if weight is None:
            weight = mean_weight(batch.edge_index, batch.num_nodes)
        h = h + self.pool(h, batch.edge_index, weight).relu()
        return self.ends(h).chunk(2, dim=1)


def hit_rate(best: Tensor, target: Tensor) -> float:
    """Returns how often the target is among the best ``[num, k]``."""
    return float((best == target[:, None]).any(dim=1).double().mean())


def main() -> None:
    args = arguments(batch_size=512, num_neighbors=10, k=100, epochs=6)
    graph = DebianPackages()[0]
    edge_index = graph['package', 'depends', 'package'].edge_index
    data = Data(debian().x, to_undirected(edge_index))
    pairs = graph['package', 'recommends', 'package'].edge_index
    pairs = pairs[:, torch.randperm(pairs.size(1))]
    tenth = pairs.size(1) // 10
    val, test, train = pairs.tensor_split([tenth, 2 * tenth], dim=1)
    splits = {'val': val, 'test': test}
    popularity = train[1].bincount(minlength=data.num_nodes)

    def method(name: str, sampler_type: type) -> Method:
        sampler = sampler_type(data, [args.num_neighbors], seed=args.seed)
        options = {'sampler': sampler, 'batch_size': args.batch_size}
        model = PinSAGE(data.num_features, args.hidden)

        def loss(batch: Data) -> Tensor:
            source, target = model(batch)
            u, v = batch.edge_label_index
            # Targets of the batch are negatives of the other sources. They
            # were drawn by popularity, which is corrected for.
            score = source[u] @ target[v].T
            score = score - popularity[batch.n_id[v]].log()
            return F.cross_entropy(score, torch.arange(u.numel()))

        def score(split: str) -> float:
            u, v = splits[split]
            ends = [
                torch.cat(model(batch), dim=1)[: batch.batch_size]
                for batch in NeighborLoader(data, **options)
            ]
            source, target = torch.cat(ends).chunk(2, dim=1)
            best = [
                (source[part] @ target.T).topk(args.k, dim=1).indices
                for part in u.split(256)
            ]
            return hit_rate(torch.cat(best), v)

        loader = LinkNeighborLoader(
            data, edge_label_index=train, shuffle=True, **options
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        return Method(name, loader, model, loss, score, optimizer=optimizer)

    popular = popularity.topk(args.k).indices.expand(len(test[1]), -1)
    methods = [
        method('NeighborLoader', NeighborSampler),
        method('PinSAGE', PinSAGESampler),
    ]
    known = {'Popularity': hit_rate(popular, test[1])}
    compare(methods, args, 'hit rate', known)


if __name__ == '__main__':
    main()
