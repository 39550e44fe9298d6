"""Trains GraphSAGE on batches that Spark sampled and wrote as Parquet.

Spark runs in this process; for a cluster see docs/spark.md.
"""

import argparse
import tempfile

import pyarrow as pa
import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from pyarrow import parquet
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
            h = h + conv(h, batch.edge_index).relu()
        return self.classify(h)


def tables(data: Data, seeds: Tensor, folder: str) -> list[DataFrame]:
    """Stores edges, seeds and features, as Spark finds them in a lake."""
    src, dst = data.edge_index.numpy()
    columns = {
        'edges': {'src': src, 'dst': dst, 'id': range(len(src))},
        'seeds': {'position': range(len(seeds)), 'id': seeds.numpy()},
        'nodes': {'id': range(len(data.x)), 'x': list(data.x.numpy())},
    }
    columns['nodes']['y'] = data.y.numpy()
    spark = on_spark.local_session(spark_driver_memory='2g')
    for name, values in columns.items():
        parquet.write_table(pa.table(values), f'{folder}/{name}')
    return [spark.read.parquet(f'{folder}/{name}') for name in columns]


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=2)
    add('--batch-size', type=int, default=1024)
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
    with tempfile.TemporaryDirectory() as folder:
        *graph, nodes = tables(data, seeds, folder)
        for epoch in range(args.epochs):
            options['epoch'] = epoch
            batches = on_spark.neighbor_sample(*graph, [10, 5], **options)
            batches.write(f'{folder}/{epoch}', features=nodes)
            batches.close()
        for name, use_edges in (('Features only', False), ('GNN', True)):
            model = GNN(64, 64, dataset.num_classes)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            for epoch in range(args.epochs):
                model.train()
                loader = on_spark.SampledParquetLoader(f'{folder}/{epoch}')
                for batch in loader:
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
