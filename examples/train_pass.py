"""Trains PASS: a sampler that learns, with the model, whom to sample.

The loss of the task trains the sampler, too, through the values of the sampled
edges. It compares nodes by 64 principal components of their features. Beside
it is printed what features alone reach; uniform samples are as good here.
"""

import argparse
import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything

from torch_gsample import SparseSample
from torch_gsample.algorithms import PassSampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.rng import make_key, program_scope


class GNN(nn.Module):
    """Adds to a node the mean of the neighbours that a sampler draws."""

    def __init__(self, sizes: tuple[int, int, int], sampler: nn.Module | None):
        super().__init__()
        in_channels, hidden, out_channels = sizes
        layers = nn.Linear(in_channels, hidden), nn.ReLU(), nn.Dropout(0.5)
        self.encode = nn.Sequential(*layers)
        self.near = nn.Linear(hidden, hidden)
        self.classify = nn.Linear(hidden, out_channels)
        self.sampler = sampler

    def forward(self, x: Tensor, seeds: Tensor, *graph) -> Tensor:
        h = self.encode(x[seeds])
        if self.sampler is not None:
            A, parts, fanout = graph
            [S] = self.sampler(A, seeds, [fanout], parts)
            S = S.compact()
            h = h + self.near(S.T @ self.encode(x[S.row_ids])).relu()
        return self.classify(h)


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=5)
    add('--batch-size', type=int, default=512)
    add('--fanout', type=int, default=5)
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=10**9, help='per pass')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    A = SparseSample.from_edge_index(data.edge_index, None, data.num_nodes)
    parts = F.normalize(data.x @ torch.pca_lowrank(data.x, 64, niter=1)[2])
    graph = A, parts, args.fanout
    sizes = data.num_features, args.hidden, dataset.num_classes

    def batches(split: str, epoch: int) -> Iterator[Tensor]:
        """Yields seeds, and lets samplers draw by the number of the batch."""
        seeds = data[f'{split}_mask'].nonzero().flatten()
        seeds = seeds[torch.randperm(len(seeds))].split(args.batch_size)
        for i, batch in enumerate(seeds[: args.max_batches]):
            with program_scope(make_key(args.seed, epoch, i)):
                yield batch

    accuracy = {}
    for name, sampler in (('Features', None), ('PASS', PassSampler(64, 32))):
        model = GNN(sizes, sampler)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        for epoch in range(1, args.epochs + 1):
            model.train()
            for seeds in batches('train', epoch):
                out = model(data.x, seeds, *graph)
                loss = F.cross_entropy(out, data.y[seeds])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f'{name}, epoch {epoch}: loss {loss.item():.4f}')
        model.eval()
        correct = []
        with torch.no_grad():
            for seeds in batches('test', 0):
                pred = model(data.x, seeds, *graph).argmax(dim=1)
                correct.append(pred == data.y[seeds])
        accuracy[name] = torch.cat(correct).double().mean()
    for name, value in accuracy.items():
        print(f'{name}: test accuracy {value:.4f}')
    print(f'After {time.perf_counter() - begin:.0f} s')


if __name__ == '__main__':
    main()
