"""How much a sampled graph looks like the whole one."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data


@dataclass(frozen=True)
class GraphProperties:
    """What :func:`sample_quality` compares of a graph.

    Edges are taken without direction, duplicates and self-loops for
    clustering and components.
    """

    num_vertices: int
    num_edges: int
    in_degree: Tensor  # [num_vertices]
    out_degree: Tensor  # [num_vertices]
    average_clustering: float
    transitivity: float
    num_components: int
    largest_component: float  # its share of the vertices

    @property
    def mean_degree(self) -> float:
        """Edges a vertex."""
        return self.num_edges / max(self.num_vertices, 1)

    @property
    def max_degree(self) -> int:
        """The greatest number of edges at a vertex, in both directions."""
        degree = self.in_degree + self.out_degree
        return int(degree.max()) if self.num_vertices else 0


@dataclass(frozen=True)
class SampleQuality:
    """A comparison of two graphs, see :func:`sample_quality`."""

    original: GraphProperties
    sampled: GraphProperties

    @property
    def in_degree_distance(self) -> float:
        """Kolmogorov-Smirnov distance of the in-degree distributions."""
        return degree_distance(self.original.in_degree, self.sampled.in_degree)

    @property
    def out_degree_distance(self) -> float:
        """Kolmogorov-Smirnov distance of the out-degree distributions."""
        return degree_distance(
            self.original.out_degree, self.sampled.out_degree
        )

    def table(self) -> str:
        """Returns the comparison as a Markdown table."""
        a, b = self.original, self.sampled
        rows = [
            ('vertices', a.num_vertices, b.num_vertices),
            ('edges', a.num_edges, b.num_edges),
            ('mean degree', a.mean_degree, b.mean_degree),
            ('greatest degree', a.max_degree, b.max_degree),
            ('average clustering', a.average_clustering, b.average_clustering),
            ('transitivity', a.transitivity, b.transitivity),
            ('components', a.num_components, b.num_components),
            ('largest component', a.largest_component, b.largest_component),
            ('in-degree distance', 0.0, self.in_degree_distance),
            ('out-degree distance', 0.0, self.out_degree_distance),
        ]
        lines = ['| property | original | sampled |', '|---|---|---|']
        return '\n'.join(
            lines + [f'| {n} | {_cell(x)} | {_cell(y)} |' for n, x, y in rows]
        )


def sample_quality(original: Data, sampled: Data) -> SampleQuality:
    """Compares degrees, clustering and components of two graphs.

    Counting triangles takes the time of a sparse matrix product: take care
    with graphs of many millions of edges or with great hubs.

    Args:
        original (Data): The whole graph.
        sampled (Data): What was sampled of it.

    Raises:
        ImportError: If SciPy is not installed.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> quality = sample_quality(data, data)
        >>> quality.in_degree_distance, quality.sampled.num_components
        (0.0, 1)
    """
    return SampleQuality(_properties(original), _properties(sampled))


def _properties(data: Data) -> GraphProperties:
    try:
        from scipy import sparse
    except ImportError as error:
        raise ImportError(
            'sample_quality: SciPy is needed: `pip install '
            "'torch_gsample[viz]'`"
        ) from error
    size = int(data.num_nodes or 0)
    src, dst = data.edge_index
    if size == 0:
        none = torch.empty(0, dtype=torch.int64)
        return GraphProperties(0, 0, none, none, 0.0, 0.0, 0, 0.0)
    ends = data.edge_index[:, src != dst].numpy()
    ones = torch.ones(ends.shape[1], dtype=torch.int64).numpy()
    matrix = sparse.csr_matrix((ones, (*ends,)), shape=(size, size))
    links = (matrix + matrix.T).astype(bool).astype('int64')
    num_components, component = sparse.csgraph.connected_components(links)
    sizes = torch.bincount(torch.from_numpy(component).long())
    average, transitivity = _clustering(links)
    return GraphProperties(
        num_vertices=size,
        num_edges=src.numel(),
        in_degree=torch.bincount(dst, minlength=size),
        out_degree=torch.bincount(src, minlength=size),
        average_clustering=average,
        transitivity=transitivity,
        num_components=int(num_components),
        largest_component=int(sizes.max()) / size,
    )


def _clustering(links: Any) -> tuple[float, float]:
    """Average local clustering, and closed over all pairs of neighbours."""
    degree = torch.from_numpy(links.sum(axis=1)).view(-1)
    closed = torch.from_numpy(links.multiply(links @ links).sum(axis=1))
    closed, pairs = closed.view(-1), degree * (degree - 1)
    local = closed / pairs.clamp(min=1)
    return float(local.mean()), float(closed.sum() / pairs.sum().clamp(min=1))


def degree_distance(a: Tensor, b: Tensor) -> float:
    """Returns the Kolmogorov-Smirnov distance of two lists of degrees.

    It is the greatest difference of their cumulative distributions.

    Args:
        a (torch.Tensor): Degrees, int64.
        b (torch.Tensor): Degrees, int64; as many or not.
    """
    if a.numel() == 0 or b.numel() == 0:
        return float(a.numel() != b.numel())
    size = int(max(a.max(), b.max())) + 1
    shares = [
        torch.bincount(x, minlength=size).cumsum(0) / x.numel() for x in (a, b)
    ]
    return float((shares[0] - shares[1]).abs().max())


def _cell(value: float) -> str:
    return f'{value:.3f}' if isinstance(value, float) else f'{value:,}'
