"""A small graph, and its samples on Spark and without Spark."""

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from pyarrow import parquet
from torch_geometric.data import Data

from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader
from torch_gsample.spark import SampledParquetLoader
from torch_gsample.storage import ChunkedGraph

NODES, EDGES, SEEDS, BATCH = 5_000, 60_000, 2_000, 100
FANOUTS = [5, 3]


def make_graph() -> Data:
    torch.manual_seed(3)
    graph = power_law(NODES, EDGES, 2_000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    return Data(edge_index=edge_index, num_nodes=NODES)


def store(data: Data, folder: Path) -> None:
    """Stores the graph as tables and as chunks, and the seeds."""
    src, dst = data.edge_index.numpy()
    for name, columns in (
        ('vertices', {'id': range(data.num_nodes)}),
        ('edges', {'src': src, 'dst': dst, 'id': range(len(src))}),
        ('seeds', {'position': range(SEEDS), 'id': range(SEEDS)}),
    ):
        path = folder / f'{name}.parquet'
        parquet.write_table(pa.table(columns), path, row_group_size=4096)
    ChunkedGraph.write(folder / 'graph', data)


def digest(batches: Iterable[Any]) -> str:
    """A hash of the contents of batches."""
    out = hashlib.sha256()
    for batch in batches:
        for name in ('n_id', 'e_id', 'edge_index', 'input_id'):
            out.update(batch[name].contiguous().numpy().tobytes())
    return out.hexdigest()


class Work:
    """Samples on Spark, and the expected results.

    Args:
        spark (SparkSession): The session.
        data (Data): The graph.
        folder (Path): Of :func:`store`.
    """

    def __init__(self, spark: Any, data: Data, folder: Path):
        self._spark, self._data, self._folder = spark, data, folder
        self.vertices, self.edges, self.seeds = (
            spark.read.parquet(str(folder / f'{name}.parquet'))
            for name in ('vertices', 'edges', 'seeds')
        )

    def batches(self, graph: Any, epoch: int, **options: Any) -> str:
        """Samples an epoch, and reads it."""
        with tempfile.TemporaryDirectory(dir=self._folder) as out:
            sample = on_spark.neighbor_sample(
                graph,
                self.seeds,
                FANOUTS,
                batch_size=BATCH,
                seed=12,
                epoch=epoch,
                **options,
            )
            sample.write(f'{out}/batches')
            sample.close()
            return digest(SampledParquetLoader(f'{out}/batches'))

    def run(self, round_: int) -> bool:
        """Runs one of several jobs; returns whether it equals tensors."""
        kind = round_ % 4
        if kind == 0:
            return self.batches(self.edges, round_) == self.local(round_)
        if kind == 1:
            with tempfile.TemporaryDirectory(dir=self._folder) as out:
                graph = on_spark.prepare_adjacency(self.edges, f'{out}/graph')
                graph.verify()
                found = self.batches(graph, round_, split='nodes')
            return found == self.local(round_)
        if kind == 2:
            graph = ChunkedGraph(self._folder / 'graph')
            return self.batches(graph, round_) == self.local(round_)
        args, options = (0.2, 100), {'seed': round_}
        got = on_spark.random_walk(self.vertices, self.edges, *args, **options)
        want = graph_sampling.random_walk(
            self._data, *args, **options, edge_id=torch.arange(EDGES)
        )
        found = sorted(row.id for row in got.vertices.collect())
        return found == sorted(want.n_id.tolist())

    def local(self, epoch: int) -> str:
        """The batches of the local sampler."""
        return local_batches(self._data, epoch)


def local_batches(data: Data, epoch: int) -> str:
    """A hash of the batches of the local sampler."""
    loader = NeighborLoader(
        data,
        FANOUTS,
        input_nodes=torch.arange(SEEDS),
        batch_size=BATCH,
        seed=12,
        rng_scope='epoch',
    )
    loader.set_epoch(epoch)
    return digest(loader)
