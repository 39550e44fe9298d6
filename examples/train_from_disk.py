"""Trains a GNN on a graph and features that stay on disk, within a hard limit
of memory, to tell a package's section.

.. code-block:: sh

    python examples/train_from_disk.py                  # offline
    python examples/train_from_disk.py --memory 1024
    python examples/train_from_disk.py --contents PATH

The graph is written in chunks and the features as a :class:`FeatureFile`, and
both are forgotten. From then on the system refuses the process more memory
than ``--memory`` (``RLIMIT_DATA``). Edges are read by a
:class:`StreamingSampler` in training and by a :class:`RandomReadSampler` in
the test, features by a :class:`DiskFeatureStore`, which plans its reads by the
samples of coming batches. The accuracy of features alone is printed, too.

The second graph is the file index of Debian: directories, names of files and
packages, 28 M edges. ``PATH/graph.npz`` holds ``edge/<src>__<rel>__<dst>``,
``node_types``, ``num_nodes``, ``y/package`` and ``split/package``. It has no
features: directories get random numbers, so that a model can tell them apart,
and all else zeros.
"""

import argparse
import resource
import tempfile
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
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


def prepare(folder: Path, contents: Path | None) -> None:
    """Writes graph, features, and what is known of nodes."""
    if contents is not None:
        data, num_classes = debian_contents(contents)
    else:
        undirected = T.ToUndirected()
        dataset = DebianPackages(homogeneous=True, pre_transform=undirected)
        data, num_classes = dataset[0], dataset.num_classes
    storage.ChunkedGraph.write(folder / 'graph', data, chunk_bytes=1 << 20)
    storage.FeatureFile.write(folder / 'x.gsf', data.x)
    nodes = data.y, data.train_mask, data.test_mask, num_classes
    torch.save(nodes, folder / 'nodes.pt')


def predict(model: nn.Module, batch: Data) -> tuple[Tensor, Tensor]:
    edges = [batch.edge_index] * isinstance(model, GraphSAGE)
    out, size = model(batch.x.float(), *edges), batch.batch_size
    return out[:size], batch.y[:size]


def train(folder: Path, args: argparse.Namespace) -> None:
    """Trains two models, and prints how many test nodes they tell."""
    memory = args.memory << 20
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    y, *masks, num_classes = torch.load(folder / 'nodes.pt')
    graph = storage.ChunkedGraph(folder / 'graph')
    x = storage.FeatureFile(folder / 'x.gsf')
    features = storage.DiskFeatureStore({'x': x, 'y': y})
    features.plan_reads(memory // 8)
    most = args.max_batches * args.batch_size
    samplers = (
        storage.StreamingSampler(
            graph, [10, 5], seed=args.seed, memory_limit=memory // 8
        ),
        storage.RandomReadSampler(
            graph, [10, 5], seed=args.seed, cache_bytes=memory // 8
        ),
    )
    loader, tests = (
        NeighborLoader(
            (features, graph),
            input_nodes=mask.nonzero().view(-1)[:most],
            sampler=sampler,
            batch_size=args.batch_size,
            shuffle=sampler is samplers[0],
        )
        for sampler, mask in zip(samplers, masks, strict=True)
    )
    sizes = x.shape[1], args.hidden, 2, num_classes
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
        with torch.no_grad():
            outs = [predict(model, batch) for batch in tests]
        correct = torch.cat([out.argmax(1) == y for out, y in outs])
        print(f'{name}: test accuracy {correct.double().mean():.4f}')


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--contents', type=Path, help='a folder with graph.npz')
    add('--memory', type=int, default=2048, help='MiB for the training')
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=512)
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=100, help='per epoch')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    seed_everything(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), args.contents)
        train(Path(folder), args)


if __name__ == '__main__':
    main()
