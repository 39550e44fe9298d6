"""Draws samples and degrees of the bundled graph of Debian's packages."""

from pathlib import Path

import torch
from picture_style import save
from torch_geometric.data import Data

from torch_gsample import viz
from torch_gsample.datasets import DebianPackages
from torch_gsample.graph_sampling import random_vertex
from torch_gsample.loader import NeighborLoader


def draw_neighborhood(data: Data, names: list[str], path: Path) -> None:
    """Draws the sample of one seed: the picture of the README."""
    loader = NeighborLoader(
        data,
        [4, 3],
        input_nodes=torch.tensor([names.index('gimp')]),
        batch_size=1,
        seed=3,
    )
    degree = torch.bincount(data.edge_index.view(-1))
    batch = next(iter(loader))
    ax = viz.plot_batch(batch, labels=names, degree=degree)
    save(ax.figure, path)


def draw_samples(folder: Path) -> None:
    """Draws all of them."""
    dataset = DebianPackages(homogeneous=True)
    data = dataset[0]
    # Edges lead from a package to its dependencies; reversed, a package
    # gathers from its dependencies.
    data.edge_index = data.edge_index.flip(0)
    draw_neighborhood(data, dataset.package_names, folder / 'sample.svg')
    loader = NeighborLoader(data, [5, 5], batch_size=16, seed=1)
    save(viz.plot_batch(next(iter(loader))).figure, folder / 'batch.svg')
    hetero = DebianPackages()[0]
    loader = NeighborLoader(
        hetero, [3, 2], input_nodes='package', batch_size=2, seed=1
    )
    ax = viz.plot_batch(next(iter(loader)))
    save(ax.figure, folder / 'hetero_batch.svg')
    save(viz.plot_degrees(hetero).figure, folder / 'degrees.svg')
    sampled = random_vertex(data, 0.3, seed=12)
    save(viz.plot_quality(data, sampled).figure, folder / 'quality.svg')
