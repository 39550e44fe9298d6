"""The rows and edges of a relation into a tile, as layers take them."""

from dataclasses import dataclass

from torch import Tensor

from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import Block


@dataclass
class Ends:
    """The rows and edges of a relation into a tile.

    Args:
        x (Tuple[torch.Tensor, torch.Tensor]): Rows of sources and of
            destinations; those of destinations are the first sources where
            both have one type.
        edge_index (torch.Tensor): int64 ``[2, num_edges]``.
        shared (bool): Whether both ends have one type.
        degree (Dict[bool, torch.Tensor]): The in-degrees of sources in the
            whole graph, without loops and with one each, where a layer needs
            them.
        features (torch.Tensor, optional): ``[num_edges, *]``, those of edges.
        last (bool, optional): Whether no more edges of the destinations
            follow, as in all but the first tiles of a hub.
    """

    x: tuple[Tensor, Tensor]
    edge_index: Tensor
    shared: bool
    degree: dict[bool, Tensor]
    features: Tensor | None = None
    last: bool = True

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of sources and destinations."""
        return len(self.x[0]), len(self.x[1])

    def block(self) -> Block:
        """Returns the edges as fused layers take them."""
        src, dst = self.size
        new = src - dst if self.shared else 0
        edges = BatchEdges(
            self.edge_index,
            (dst, new) if self.shared else (0, src),
            (dst, new),
            (self.edge_index.shape[1],),
        )
        return _TileBlock(edges, self.degree)


class _TileBlock(Block):
    """A block that knows the degrees of the whole graph."""

    def __init__(self, edges: BatchEdges, degree: dict[bool, Tensor]):
        super().__init__(edges, 0)
        self._degree = degree

    def in_degree(
        self, weight: Tensor | None = None, loop: float | None = None
    ) -> Tensor:
        """See :meth:`Block.in_degree`; edges of a tile have no weights."""
        assert weight is None
        return self._degree[loop is not None]
