"""Draws samples and degrees of the bundled graph of Debian's packages."""

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from torch_gsample import viz
from torch_gsample.datasets import DebianPackages
from torch_gsample.graph_sampling import random_vertex
from torch_gsample.loader import NeighborLoader


def save(ax: Any, path: Path) -> None:
    """Writes a picture, the same one for the same axes."""
    ax.figure.savefig(
        path, bbox_inches='tight', dpi=110, metadata={'Software': None}
    )


def draw_neighborhood(data: Data, names: list[str], path: Path) -> None:
    """Draws what one seed needs: the picture of the README."""
    loader = NeighborLoader(
        data,
        [4, 3],
        input_nodes=torch.tensor([names.index('gimp')]),
        batch_size=1,
        seed=3,
    )
    degree = torch.bincount(data.edge_index.view(-1))
    batch = next(iter(loader))
    save(viz.plot_batch(batch, labels=names, degree=degree), path)


def draw_samples(folder: Path) -> None:
    """Draws all of them."""
    dataset = DebianPackages(homogeneous=True)
    data = dataset[0]
    # Edges lead from a package to what it needs; turn them, so that a package
    # gathers from its dependencies.
    data.edge_index = data.edge_index.flip(0)
    draw_neighborhood(data, dataset.package_names, folder / 'sample.png')
    loader = NeighborLoader(data, [5, 5], batch_size=16, seed=1)
    save(viz.plot_batch(next(iter(loader))), folder / 'batch.png')
    hetero = DebianPackages()[0]
    loader = NeighborLoader(
        hetero, [3, 2], input_nodes='package', batch_size=2, seed=1
    )
    save(viz.plot_batch(next(iter(loader))), folder / 'hetero_batch.png')
    save(viz.plot_degrees(hetero), folder / 'degrees.png')
    sampled = random_vertex(data, 0.3, seed=12)
    save(viz.plot_quality(data, sampled), folder / 'quality.png')
