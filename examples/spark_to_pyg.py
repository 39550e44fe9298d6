"""Trains GraphSAGE on batches that Spark sampled and wrote as Parquet.

Spark runs in this process; on a cluster the same lines sample graphs that no
machine holds (docs/spark.md). Beside it is printed what features alone reach.
"""

import argparse
import tempfile

import pyarrow as pa
import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from pyspark.sql import DataFrame
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from torch_gsample import spark as on_spark
from torch_gsample.datasets import DebianPackages


class GNN(nn.Module):
    """A linear layer, and two rounds of messages if there are edges."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.encode = nn.Linear(in_channels, hidden)
        self.convs = nn.ModuleList(SAGEConv(hidden, hidden) for _ in range(2))
        self.classify = nn.Linear(hidden, out_channels)

    def forward(self, batch: Data, use_edges: bool) -> Tensor:
        h = F.dropout(self.encode(batch.x).relu(), 0.5, self.training)
        for conv in self.convs if use_edges else ():
            message = conv(h, batch.edge_index).relu()
            h = h + F.dropout(message, 0.5, self.training)
        return self.classify(h)


def tables(data: Data, seeds: Tensor) -> list[DataFrame]:
    """Returns edges, seeds and features, which a cluster would read."""
    src, dst = data.edge_index.numpy()
    edges = {'src': src, 'dst': dst, 'id': range(len(src))}
    x = data.x.tolist()
    nodes = {'id': range(len(x)), 'x': x, 'y': data.y.numpy()}
    inputs = {'position': range(len(seeds)), 'id': seeds.numpy()}
    make = on_spark.local_session(spark_driver_memory='2g').createDataFrame
    return [make(pa.table(columns)) for columns in (edges, inputs, nodes)]


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=2)
    add('--batch-size', type=int, default=1024)
    add('--hidden', type=int, default=128)
    add('--max-batches', type=int, default=10**6, help='per epoch')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    options = {'batch_size': args.batch_size, 'seed': args.seed}
    seed_everything(args.seed)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    data.x = data.x @ torch.randn(data.num_features, 64) / 8  # smaller files
    seeds = data.train_mask.nonzero().view(-1)
    count = args.max_batches * args.batch_size
    seeds = seeds[torch.randperm(len(seeds))[:count]]
    *graph, nodes = tables(data, seeds)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(args.epochs):
            options['epoch'] = epoch
            batches = on_spark.neighbor_sample(*graph, [10, 5], **options)
            batches.write(f'{folder}/{epoch}', features=nodes)
            batches.close()
        for name, use_edges in (('Features only', False), ('GNN', True)):
            model = GNN(64, args.hidden, dataset.num_classes)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            for epoch in range(args.epochs):
                model.train()
                for batch in on_spark.SampledParquetLoader(
                    f'{folder}/{epoch}'
                ):
                    out = model(batch, use_edges)[: batch.batch_size]
                    loss = F.cross_entropy(out, batch.y[: len(out)])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                print(f'{name}, epoch {epoch + 1}: loss {loss.item():.4f}')
            model.eval()
            with torch.no_grad():
                pred = model(data, use_edges).argmax(1)
            hits = (pred == data.y)[data.test_mask]
            print(f'{name}: test accuracy {hits.double().mean():.4f}')


if __name__ == '__main__':
    main()
