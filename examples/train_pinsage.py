"""Recommends Debian packages with PinSAGE.

PinSAGE averages over the packages that random walks along dependencies visit
most. It learns from nine tenths of all recommendations and ranks packages for
the others, beside popularity: the number of known recommendations.
"""

import argparse
import time
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv
from torch_geometric.utils import to_undirected

from torch_gsample import PinSAGESampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader


class PinSAGE(nn.Module):
    """Importance pooling, and a vector for each end of a recommendation."""

    def __init__(self, in_channels: int, hidden: int):
        super().__init__()
        self.encode = nn.Linear(in_channels, hidden)
        self.pool = GraphConv(hidden, hidden)
        self.ends = nn.Linear(hidden, 2 * hidden)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        h = self.encode(batch.x).relu()
        h = h + self.pool(h, batch.edge_index, batch.edge_weight).relu()
        return self.ends(h).chunk(2, dim=1)


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=8)
    add('--batch-size', type=int, default=512)
    add('--num-neighbors', type=int, default=10)
    add('--hidden', type=int, default=64)
    add('--max-batches', type=int, default=10**9, help='per epoch')
    add('--k', type=int, default=100, help='packages to recommend')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    graph = DebianPackages()[0]
    edge_index = graph['package', 'depends', 'package'].edge_index
    data = Data(graph['package'].x, to_undirected(edge_index))
    pairs = graph['package', 'recommends', 'package'].edge_index
    order = torch.randperm(pairs.size(1))
    test, train = pairs[:, order].tensor_split([pairs.size(1) // 10], dim=1)
    popularity = train[1].bincount(minlength=data.num_nodes)
    sampler = PinSAGESampler(data, [args.num_neighbors], seed=args.seed)
    options = {'sampler': sampler, 'batch_size': args.batch_size}
    loader = LinkNeighborLoader(
        data, edge_label_index=train, shuffle=True, **options
    )
    model = PinSAGE(data.num_features, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(1, args.epochs + 1):
        for batch in islice(loader, args.max_batches):
            source, target = model(batch)
            u, v = batch.edge_label_index
            # Targets of the batch are negatives of the other sources. They
            # were drawn by popularity, which is corrected for.
            score = source[u] @ target[v].T
            score = score - popularity[batch.n_id[v]].log()
            loss = F.cross_entropy(score, torch.arange(u.numel()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    u, v = test
    with torch.no_grad():
        ends = [
            torch.cat(model(batch), dim=1)[: batch.batch_size]
            for batch in NeighborLoader(data, **options)
        ]
        source, target = torch.cat(ends).chunk(2, dim=1)
        best = [
            (source[part] @ target.T).topk(args.k, dim=1).indices
            for part in u.split(256)
        ]
    popular = popularity.topk(args.k).indices
    for name, top in (('Popularity', popular), ('PinSAGE', torch.cat(best))):
        hits = (top == v[:, None]).any(dim=1).double().mean()
        print(f'{name}: hit rate {hits:.4f} among {args.k}')
    print(f'After {time.perf_counter() - begin:.0f} s')


if __name__ == '__main__':
    main()
