"""Distributions of degrees."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample._axes import make_axes, sample_colors
from torch_gsample.csc import CSC
from torch_gsample.graph_sampling.quality import DegreeCounts, SampleQuality
from torch_gsample.sparse_sample import SparseSample


def plot_degrees(graph: Any, ax: Any = None) -> Any:
    """Draws the degree distribution of a graph.

    A line shows the share of nodes with at least a number of edges, from 1 on,
    on logarithmic axes. The gap to 1 at its left end is the share of nodes
    without an edge; hubs are at its right end.

    Args:
        graph (Data, HeteroData, CSC or SparseSample): The graph: in- and
            out-degrees, or in-degrees by edge type of a
            :class:`~torch_geometric.data.HeteroData`.
        ax (matplotlib.axes.Axes, optional): The axes; default: new ones.

    Returns:
        matplotlib.axes.Axes: The axes; ``ax.figure`` is the picture.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If the graph or :obj:`ax` is of another type.
        ValueError: If the graph has no :obj:`edge_index`.

    Example:
        >>> from torch_gsample.datasets import power_law
        >>> ax = plot_degrees(power_law(1_000, 5_000, 200))
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['in-degree', 'out-degree']
        >>> ax.figure.savefig('degrees.png')  # doctest: +SKIP
    """
    if isinstance(graph, HeteroData):
        lines = {
            ' '.join(kind): _degree('plot_degrees', graph[kind], kind, 1)
            for kind in graph.edge_types
        }
        if not lines:
            raise ValueError("plot_degrees: 'graph' must have an 'edge_index'")
    else:
        lines = dict(
            zip(
                ('in-degree', 'out-degree'),
                _degrees('plot_degrees', 'graph', graph),
                strict=True,
            )
        )
    ax = make_axes('plot_degrees', ax, (9 if len(lines) > 4 else 6, 4))
    shades = sample_colors(len(lines))
    for (label, degree), color in zip(lines.items(), shades, strict=True):
        counts = DegreeCounts.of(degree)
        _draw(ax, counts, label=label, color=color)
    _finish(ax)
    if len(lines) > 4:  # they would hide the lines
        ax.legend(frameon=False, loc='center left', bbox_to_anchor=(1.0, 0.5))
    return ax


def plot_quality(original: Any, sampled: Any = None, ax: Any = None) -> Any:
    """Draws the degree distributions of a graph and a sample of it.

    Lines are as in :func:`plot_degrees`, dashed for the sample. The legend has
    the Kolmogorov-Smirnov distance, the largest difference of the distribution
    functions.

    Args:
        original (Data, CSC, SparseSample or SampleQuality): The whole graph,
            or a comparison of both, such as of a graph on a cluster.
        sampled (Data, CSC or SparseSample, optional): The sampled graph; not
            with a comparison.
        ax (matplotlib.axes.Axes, optional): The axes; default: new ones.

    Returns:
        matplotlib.axes.Axes: The axes; ``ax.figure`` is the picture.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If a graph or :obj:`ax` is of another type.
        ValueError: If a graph has no :obj:`edge_index`.

    Example:
        >>> from torch_gsample.datasets import power_law
        >>> graph = power_law(1_000, 5_000, 200)
        >>> ax = plot_quality(graph, graph)
        >>> ax.get_legend().get_texts()[1].get_text()
        'in-degree, sampled (distance 0.000)'
    """
    if isinstance(original, SampleQuality):
        if sampled is not None:
            raise TypeError(
                "plot_quality: 'sampled' must not be given with a comparison"
            )
        both = original.original, original.sampled
        graphs = [(g.in_degrees, g.out_degrees) for g in both]
    else:
        graphs = [
            (DegreeCounts.of(inner), DegreeCounts.of(outer))
            for inner, outer in (
                _degrees('plot_quality', 'original', original),
                _degrees('plot_quality', 'sampled', sampled),
            )
        ]
    ax = make_axes('plot_quality', ax, (6, 4))
    names = 'in-degree', 'out-degree'
    for name, color, whole, part in zip(
        names, sample_colors(2), *graphs, strict=True
    ):
        distance = whole.distance(part)
        _draw(ax, whole, label=f'{name}, original', color=color)
        label = f'{name}, sampled (distance {distance:.3f})'
        _draw(ax, part, label=label, color=color, linestyle='--')
    _finish(ax)
    return ax


def _degrees(name: str, argument: str, graph: Any) -> tuple[Tensor, Tensor]:
    """In-degrees and out-degrees, [num_nodes] each."""
    if isinstance(graph, CSC):
        out = torch.bincount(graph.indices, minlength=graph.num_rows)
        return graph.indptr.diff(), out
    if isinstance(graph, SparseSample):
        return graph.degree(dim=0), graph.degree(dim=1)
    if isinstance(graph, Data):
        return _degree(name, graph, argument, 1), _degree(
            name, graph, argument, 0
        )
    raise TypeError(
        f"{name}: '{argument}' must be a Data, CSC or SparseSample"
        f'{" or HeteroData" * (name == "plot_degrees")} (got '
        f'{type(graph).__name__})'
    )


def _degree(name: str, store: Any, key: Any, end: int) -> Tensor:
    """Counts the edges at their sources (0) or destinations (1)."""
    if 'edge_index' not in store:
        raise ValueError(f"{name}: {key!r} must have an 'edge_index'")
    size = store.size(end) if not isinstance(store, Data) else store.num_nodes
    return torch.bincount(store.edge_index[end], minlength=int(size or 0))


def _draw(ax: Any, counts: DegreeCounts, **style: Any) -> None:
    """Draws the share of nodes with at least each number of edges."""
    least = torch.cat([torch.ones(1).long(), counts.degree]).unique()
    least = least[(least > 0) & (least <= counts.degree[-1:].sum())]
    share = 1 - counts.share_below(least)
    ax.plot(least.numpy(), share.numpy(), **style)


def _finish(ax: Any) -> None:
    ax.set(
        xscale='log',
        yscale='log',
        xlabel='edges of a node',
        ylabel='share of nodes with at least as many',
    )
    if not any(line.get_xdata().size for line in ax.get_lines()):
        ax.set(xlim=(1, 10), ylim=(0.1, 1))  # logarithmic axes need some
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
