"""Trains a GNN on sampled batches, and predicts for all nodes from disk.

.. code-block:: sh

    python examples/infer_from_disk.py

Graph and features are files. Training reads what its batches need; then
``infer`` computes each layer for all nodes within a limit of memory, and goes
on where it was if it is killed. Predictions of all neighbours and of sampled
ones are compared.
"""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch_geometric import seed_everything
from torch_geometric.nn import MLP, GraphSAGE

from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    FeatureFile,
    RandomReadSampler,
    infer,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=512)
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=100, help='per epoch')
    add('--memory', default='1GiB', help='of the inference')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    seed_everything(args.seed)
    data = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())[0]
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    graph = ChunkedGraph.write(path / 'graph', data, chunk_bytes=1 << 20)
    x = FeatureFile.write(path / 'x.gsf', data.x)
    store = DiskFeatureStore({'x': x, 'y': data.y})

    def loader(mask: torch.Tensor) -> NeighborLoader:
        nodes = mask.nonzero().view(-1)[: args.max_batches * args.batch_size]
        return NeighborLoader(
            (store, graph),
            input_nodes=nodes,
            sampler=RandomReadSampler(graph, [10, 5], seed=args.seed),
            batch_size=args.batch_size,
        )

    num_classes = int(data.y.max()) + 1
    sizes = data.num_features, args.hidden, 2, num_classes
    model = GraphSAGE(*sizes)
    mlp = MLP([sizes[0], args.hidden, num_classes])
    for net in (mlp, model):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        edges = net is model
        for epoch in range(args.epochs):
            for batch in loader(data.train_mask):
                optimizer.zero_grad()
                out = net(batch.x, *[batch.edge_index] * edges)
                size = batch.batch_size
                loss = F.cross_entropy(out[:size], batch.y[:size])
                loss.backward()
                optimizer.step()
            name = type(net).__name__
            print(f'{name}, epoch {epoch}: loss {loss.item():.4f}')
        net.eval()
    test = data.test_mask.nonzero().view(-1)
    with torch.no_grad():
        right = (mlp(x[test]).argmax(1) == data.y[test]).double()
        print(f'MLP: test accuracy {right.mean():.4f}')
        right = torch.cat(
            [
                model(batch.x, batch.edge_index)[: batch.batch_size].argmax(1)
                == batch.y[: batch.batch_size]
                for batch in loader(data.test_mask)
            ]
        ).double()
    print(f'sampled neighbours: test accuracy {right.mean():.4f}')
    out = infer(model, graph, x, out=path / 'out.gsf', memory=args.memory)
    right = (out[test].argmax(1) == data.y[test]).double()
    print(f'all neighbours: test accuracy {right.mean():.4f}')


if __name__ == '__main__':
    main()
