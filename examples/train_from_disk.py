"""Trains a GNN on a graph that stays on disk, to tell a package's section.

.. code-block:: sh

    python examples/train_from_disk.py                  # offline
    python examples/train_from_disk.py --dataset contents --folder PATH

Edges are read by a :class:`StreamingSampler` in training and by a
:class:`RandomReadSampler` in the test, features by PyG's ``FeatureStore``.
Beside it is printed what features alone reach.

The second graph is the file index of Debian: directories, names of files and
packages, 28 M edges. ``PATH/graph.npz`` holds ``edge/<src>__<rel>__<dst>``,
``node_types``, ``num_nodes``, ``y/package`` and ``split/package``. It has no
features: directories get random numbers, so that a model can tell them apart,
and all else zeros.
"""

import argparse
import tempfile
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data, FeatureStore, TensorAttr
from torch_geometric.nn import MLP, GraphSAGE

from torch_gsample import storage
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader


def debian_contents(folder: Path) -> tuple[Data, int]:
    """Returns all relations as one, in both directions, and the classes."""
    arrays = np.load(folder / 'graph.npz')
    counts = arrays['num_nodes'].tolist()
    types = bytes(arrays['node_types']).decode().split('\n')
    first = dict(zip(types, accumulate(counts, initial=0), strict=False))
    edges = []
    for key in [key for key in arrays if key.startswith('edge/')]:
        src, _, dst = key.removeprefix('edge/').split('__')
        ends = torch.from_numpy(arrays[key]) + torch.tensor(
            [[first[src]], [first[dst]]], dtype=torch.int32
        )
        edges += [ends, ends.flip(0)]
    y = torch.full((sum(counts),), -1)
    split = y.clone()
    part = slice(first['package'], None)
    y[part] = torch.from_numpy(arrays['y/package']).long()
    split[part] = torch.from_numpy(arrays['split/package']).long()
    x = torch.zeros(len(y), 64, dtype=torch.float16)
    x[first['dir'] :][: counts[types.index('dir')]].normal_()
    data = Data(x, torch.cat(edges, 1).long(), y=y)
    data.train_mask = (split == 0) & (y >= 0)
    data.test_mask = (split == 2) & (y >= 0)
    return data, int(y.max()) + 1


class MappedFeatures(FeatureStore):
    """Features and labels in files, of which only rows are read."""

    def __init__(self, folder: Path, data: Data):
        super().__init__()
        self.maps = {}
        for name in ('x', 'y'):
            np.save(folder / name, data[name].numpy())
            self.maps[name] = np.load(folder / f'{name}.npy', mmap_mode='r')

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        return torch.from_numpy(self.maps[attr.attr_name][attr.index])

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return self.maps[attr.attr_name].shape

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return [TensorAttr(None, name) for name in self.maps]

    _put_tensor = _remove_tensor = None  # type: ignore[assignment]


def predict(model: nn.Module, batch: Data) -> tuple[Tensor, Tensor]:
    edges = [batch.edge_index] * isinstance(model, GraphSAGE)
    out, size = model(batch.x.float(), *edges), batch.batch_size
    return out[:size], batch.y[:size]


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--dataset', choices=['packages', 'contents'], default='packages')
    add('--folder', type=Path, help="of 'contents': where graph.npz is")
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=512)
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=100, help='per epoch')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    seed_everything(args.seed)
    if args.dataset == 'contents':
        if args.folder is None:
            parser.error('--dataset contents needs --folder')
        data, num_classes = debian_contents(args.folder)
    else:
        undirected = T.ToUndirected()
        dataset = DebianPackages(homogeneous=True, pre_transform=undirected)
        data, num_classes = dataset[0], dataset.num_classes
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    graph = storage.ChunkedGraph.write(path / 'g', data, chunk_bytes=1 << 20)
    stores = MappedFeatures(path, data), graph
    kinds = storage.StreamingSampler, storage.RandomReadSampler
    masks = data.train_mask, data.test_mask
    most = args.max_batches * args.batch_size
    loader, tests = (
        NeighborLoader(
            stores,
            input_nodes=mask.nonzero().view(-1)[:most],
            sampler=kind(graph, [10, 5], seed=args.seed),
            batch_size=args.batch_size,
            shuffle=kind is storage.StreamingSampler,
        )
        for kind, mask in zip(kinds, masks, strict=True)
    )
    sizes = data.num_features, args.hidden, 2, num_classes
    for model in (MLP([sizes[0], args.hidden, sizes[3]]), GraphSAGE(*sizes)):
        name = type(model).__name__
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(args.epochs):
            for batch in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(*predict(model, batch))
                loss.backward()
                optimizer.step()
            print(f'{name}, epoch {epoch}: loss {loss.item():.4f}')
        outs = [predict(model, batch) for batch in tests]
        correct = torch.cat([out.argmax(1) == y for out, y in outs])
        print(f'{name}: test accuracy {correct.double().mean():.4f}')


if __name__ == '__main__':
    main()
