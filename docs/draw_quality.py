"""Measures and draws what four operators keep of Debian's packages.

    python docs/draw_quality.py
    python docs/draw_quality.py --spark

The table is printed, the picture is ``docs/images/sampling_quality.svg``: as
in Section 5 of "Graph Sampling with Distributed In-Memory Dataflow Systems"
(Gomez et al., BTW 2021). With ``--spark`` the samples and their properties
are those of Spark, both clusterings estimated.
"""

import argparse
from pathlib import Path

import pyarrow as pa
from matplotlib.figure import Figure
from picture_style import picture_style, save
from torch_geometric.data import Data

from torch_gsample import graph_sampling, viz
from torch_gsample.datasets import DebianPackages
from torch_gsample.graph_sampling import GraphProperties, SampleQuality

#: Shares that keep about three tenths of the vertices.
OPERATORS = {
    'RV': ('random_vertex', (0.41,), {}),
    'RE': ('random_edge', (0.065,), {}),
    'RVN': ('random_vertex_neighborhood', (0.06, 'both'), {}),
    'RW': ('random_walk', (0.32, 1000), {}),
}
PROPERTIES = (
    'num_vertices',
    'num_edges',
    'density',
    'mean_degree',
    'max_degree',
    'reciprocity',
    'average_clustering',
    'transitivity',
    'num_components',
    'largest_component',
)


def in_memory(data: Data) -> dict[str, SampleQuality]:
    """Compares the samples of tensors."""
    whole = graph_sampling.graph_properties(data)
    out = {}
    for name, (operator, args, options) in OPERATORS.items():
        sample = getattr(graph_sampling, operator)(
            data, *args, seed=12, **options
        )
        part = graph_sampling.graph_properties(sample)
        out[name] = SampleQuality(whole, part)
    return out


def on_spark(data: Data) -> dict[str, SampleQuality]:
    """Compares the samples of Spark."""
    from torch_gsample import spark

    session = spark.local_session(spark_driver_memory='3g')
    session.sparkContext.setLogLevel('ERROR')
    src, dst = data.edge_index.numpy()
    graph = [
        session.createDataFrame(pa.table(columns)).persist()
        for columns in (
            {'id': range(data.num_nodes)},
            {'src': src, 'dst': dst},
        )
    ]
    whole = spark.graph_properties(*graph, seed=12)
    out = {}
    for name, (operator, args, options) in OPERATORS.items():
        sample = getattr(spark, operator)(*graph, *args, seed=12, **options)
        part = [frame.persist() for frame in sample]
        out[name] = SampleQuality(
            whole, spark.graph_properties(*part, seed=12)
        )
    return out


def table(found: dict[str, SampleQuality]) -> str:
    """Returns a Markdown table with a column for each operator."""
    whole = next(iter(found.values())).original

    def cells(name: str) -> list[float]:
        graphs: list[GraphProperties] = [whole]
        graphs += [quality.sampled for quality in found.values()]
        return [getattr(graph, name) for graph in graphs]

    rows = {name.replace('_', ' '): cells(name) for name in PROPERTIES}
    for name in ('in_degree_distance', 'out_degree_distance'):
        distances = [getattr(quality, name) for quality in found.values()]
        rows[name.replace('_', ' ')] = [0.0, *distances]
    lines = [
        f'| property | original | {" | ".join(found)} |',
        '|---' * (len(found) + 2) + '|',
    ]
    for name, values in rows.items():
        shown = [
            f'{v:,}' if isinstance(v, int) else f'{v:.3g}' for v in values
        ]
        lines.append(f'| {name} | {" | ".join(shown)} |')
    return '\n'.join(lines)


def draw(found: dict[str, SampleQuality], path: Path) -> None:
    """Draws the degrees of each sample."""
    figure = Figure(figsize=(11, 8), layout='constrained')
    for ax, (name, quality) in zip(
        figure.subplots(2, 2).flat, found.items(), strict=True
    ):
        viz.plot_quality(quality, ax=ax)
        ax.set_title(f'{name}: {OPERATORS[name][0]}')
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--spark', action='store_true')
    args = parser.parse_args()
    data = DebianPackages(homogeneous=True)[0]
    data = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    found = on_spark(data) if args.spark else in_memory(data)
    print(table(found))
    if not args.spark:
        images = Path(__file__).resolve().parent / 'images'
        with picture_style():
            draw(found, images / 'sampling_quality.svg')


if __name__ == '__main__':
    main()
