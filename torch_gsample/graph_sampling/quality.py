"""How much a sampled graph looks like the whole one."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data


@dataclass(frozen=True)
class DegreeCounts:
    """How many vertices have each degree.

    Args:
        degree (torch.Tensor): Distinct degrees in ascending order, int64.
        count (torch.Tensor): How many vertices have each, int64.
    """

    degree: Tensor
    count: Tensor

    @classmethod
    def of(cls, degrees: Tensor) -> 'DegreeCounts':
        """Counts the degrees of all vertices."""
        return cls(*degrees.cpu().long().unique(return_counts=True))

    def share_below(self, degree: Tensor) -> Tensor:
        """Returns the share of vertices that have less edges, float64.

        Args:
            degree (torch.Tensor): Numbers of edges, int64.
        """
        below = torch.nn.functional.pad(self.count.cumsum(0), (1, 0))
        place = torch.searchsorted(self.degree, degree)
        return below[place].double() / max(int(self.count.sum()), 1)

    def distance(self, other: 'DegreeCounts') -> float:
        """Returns the Kolmogorov-Smirnov distance of two distributions.

        It is the greatest difference of their cumulative distributions.
        """
        if not self.degree.numel() or not other.degree.numel():
            return float(self.degree.numel() != other.degree.numel())
        above = torch.cat([self.degree, other.degree]) + 1
        shares = self.share_below(above) - other.share_below(above)
        return float(shares.abs().max())


@dataclass(frozen=True)
class GraphProperties:
    """The properties of a graph that :func:`sample_quality` compares.

    Edges are taken without direction, duplicates and self-loops for
    clustering and components, and without duplicates and self-loops for
    reciprocity: the share of edges whose reverse exists.
    """

    num_vertices: int
    num_edges: int
    in_degrees: DegreeCounts
    out_degrees: DegreeCounts
    max_degree: int  # in both directions
    reciprocity: float
    average_clustering: float
    transitivity: float  # the global clustering coefficient
    num_components: int
    largest_component: float  # its share of the vertices

    @property
    def mean_degree(self) -> float:
        """Edges a vertex."""
        return self.num_edges / max(self.num_vertices, 1)

    @property
    def density(self) -> float:
        """Edges over pairs of different vertices, in both directions."""
        pairs = self.num_vertices * (self.num_vertices - 1)
        return self.num_edges / max(pairs, 1)


@dataclass(frozen=True)
class SampleQuality:
    """A comparison of two graphs, see :func:`sample_quality`."""

    original: GraphProperties
    sampled: GraphProperties

    @property
    def in_degree_distance(self) -> float:
        """Kolmogorov-Smirnov distance of the in-degree distributions."""
        return self.original.in_degrees.distance(self.sampled.in_degrees)

    @property
    def out_degree_distance(self) -> float:
        """Kolmogorov-Smirnov distance of the out-degree distributions."""
        return self.original.out_degrees.distance(self.sampled.out_degrees)

    def rows(self) -> list[tuple[str, float, float]]:
        """Returns the name and the two values of each property."""
        a, b = self.original, self.sampled
        return [
            ('vertices', a.num_vertices, b.num_vertices),
            ('edges', a.num_edges, b.num_edges),
            ('density', a.density, b.density),
            ('mean degree', a.mean_degree, b.mean_degree),
            ('greatest degree', a.max_degree, b.max_degree),
            ('reciprocity', a.reciprocity, b.reciprocity),
            ('average clustering', a.average_clustering, b.average_clustering),
            ('transitivity', a.transitivity, b.transitivity),
            ('components', a.num_components, b.num_components),
            ('largest component', a.largest_component, b.largest_component),
            ('in-degree distance', 0.0, self.in_degree_distance),
            ('out-degree distance', 0.0, self.out_degree_distance),
        ]

    def table(self) -> str:
        """Returns the comparison as a Markdown table."""
        lines = ['| property | original | sampled |', '|---|---|---|']
        for name, *values in self.rows():
            a, b = map(_cell, values)
            lines.append(f'| {name} | {a} | {b} |')
        return '\n'.join(lines)


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
    return SampleQuality(graph_properties(original), graph_properties(sampled))


def graph_properties(data: Data) -> GraphProperties:
    """Returns the properties that :func:`sample_quality` compares.

    Args:
        data (Data): The graph.

    Raises:
        ImportError: If SciPy is not installed.
        TypeError: If ``data`` is not a ``Data``.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> graph_properties(data).mean_degree
        1.0
    """
    try:
        from scipy import sparse
    except ImportError as error:
        raise ImportError(
            'sample_quality: SciPy is needed: `pip install '
            "'torch_gsample[viz]'`"
        ) from error
    if not isinstance(data, Data):
        raise TypeError(
            "graph_properties: 'data' must be a Data (got "
            f'{type(data).__name__})'
        )
    size = int(data.num_nodes or 0)
    src, dst = data.edge_index
    if size == 0:
        none = DegreeCounts.of(torch.empty(0))
        return GraphProperties(0, 0, none, none, 0, 0.0, 0.0, 0.0, 0, 0.0)
    ends = data.edge_index[:, src != dst].numpy()
    ones = torch.ones(ends.shape[1], dtype=torch.int64).numpy()
    matrix = sparse.csr_matrix((ones, (*ends,)), shape=(size, size))
    matrix = matrix.astype(bool).astype('int64')
    links = (matrix + matrix.T).astype(bool).astype('int64')
    degrees = [torch.bincount(end, minlength=size) for end in (dst, src)]
    num_components, component = sparse.csgraph.connected_components(links)
    sizes = torch.bincount(torch.from_numpy(component).long())
    average, transitivity = _clustering(links)
    return GraphProperties(
        num_vertices=size,
        num_edges=src.numel(),
        in_degrees=DegreeCounts.of(degrees[0]),
        out_degrees=DegreeCounts.of(degrees[1]),
        max_degree=int((degrees[0] + degrees[1]).max()),
        reciprocity=int(matrix.multiply(matrix.T).sum()) / max(matrix.nnz, 1),
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


def _cell(value: float) -> str:
    if not isinstance(value, float):
        return f'{value:,}'
    return f'{value:.3f}' if value >= 0.001 or not value else f'{value:.1e}'
