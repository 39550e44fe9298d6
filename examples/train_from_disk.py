"""Trains a GNN on a graph that stays on disk, to tell a package's section.

Edges are read by a :class:`StreamingSampler` in training, and by a
:class:`RandomReadSampler` in the test. Features are rows of mapped files behind
PyG's ``FeatureStore``. Beside it is printed what features alone reach.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GraphSAGE

from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)


def map_features(folder: Path, data: Data) -> Data:
    """Returns features and labels as maps of files: a ``FeatureStore``."""
    out = Data()
    for name in ('x', 'y'):
        np.save(folder / name, data[name].numpy())
        rows = np.load(folder / f'{name}.npy', mmap_mode='c')
        out[name] = torch.from_numpy(rows)
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=512)
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=100, help='per epoch')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    features = map_features(path, data)
    graph = ChunkedGraph.write(path / 'graph', data, chunk_bytes=1 << 20)
    samplers = [
        kind(graph, [10, 5], seed=args.seed)
        for kind in (StreamingSampler, RandomReadSampler)
    ]
    splits = {'train': data.train_mask, 'test': data.test_mask}
    seeds = {k: v.nonzero().view(-1) for k, v in splits.items()}
    most = args.max_batches * args.batch_size
    seeds = {k: v[:most] for k, v in seeds.items()}
    del data  # what follows reads the disk
    loader, tests = (
        NeighborLoader(
            (features, graph),
            None,
            nodes,
            sampler=s,
            batch_size=args.batch_size,
        )
        for s, nodes in zip(samplers, seeds.values(), strict=True)
    )
    sizes = dataset.num_features, args.hidden, 2, dataset.num_classes
    for model in (MLP([sizes[0], args.hidden, sizes[3]]), GraphSAGE(*sizes)):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        def predict(batch: Data, model: torch.nn.Module = model) -> Tensor:
            edges = (batch.edge_index,) * isinstance(model, GraphSAGE)
            return model(batch.x.float(), *edges)[: batch.batch_size]

        for epoch in range(1, args.epochs + 1):
            model.train()
            for batch in loader:
                loss = F.cross_entropy(
                    predict(batch), batch.y[: batch.batch_size]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f'{type(model).__name__}, {epoch}: loss {loss.item():.4f}')
        model.eval()
        correct = [predict(b).argmax(1) == b.y[: b.batch_size] for b in tests]
        accuracy = torch.cat(correct).double().mean()
        print(f'{type(model).__name__}: test accuracy {accuracy:.4f}')
    folder.cleanup()


if __name__ == '__main__':
    main()
