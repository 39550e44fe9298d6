"""The rows of a batch that each layer reads and computes.

The nodes and the edges of a sampled batch are in the order of hops, so what a
layer needs of it is a prefix: to compute the nodes of ``k`` hops, a layer
reads those of ``k + 1`` hops and the edges between them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from torch_gsample.batch_edges import BatchEdges
from torch_gsample.csc import CSC

#: Edges of a batch from which its columns are made where the batch is.
EAGER = 1 << 14


class Block:
    """The edges of a layer, with its sources and destinations.

    Sources are the first ``num_src`` nodes of the batch, and destinations the
    first ``num_dst`` of them.

    Args:
        edges (BatchEdges): The edges of the batch.
        level (int): The last hop whose nodes the layer computes.
    """

    def __init__(self, edges: BatchEdges, level: int):
        self.edges, self.level = edges, level
        hops = len(edges.num_edges) - 1
        last = min(level + 1, hops)
        self.num_src = edges.num_src[last]
        self.num_dst = edges.num_dst[min(level, hops)]
        self.num_edges = edges.num_edges[last]

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of sources and destinations, as in PyG's layers."""
        return self.num_src, self.num_dst

    @cached_property
    def edge_index(self) -> Tensor:
        """Sources and destinations, int64 ``[2, num_edges]``: no copy."""
        return self.edges.edge_index[:, : self.num_edges]

    @cached_property
    def csc(self) -> CSC:
        """The edges by destination; ``edge_id`` is None if this is theirs."""
        return self.edges.columns(*self.size, self.num_edges)

    @cached_property
    def tensors(self) -> list[Tensor]:
        """Its columns, by which is known what is made of it."""
        csc = self.csc
        columns = csc.indptr, csc.indices, csc.edge_id
        return [x.detach() for x in columns if x is not None]

    @property
    def transposed(self) -> CSC:
        """The edges by source, for gradients of features."""
        return self.edges.transposed(*self.size, self.num_edges)

    def in_degree(
        self, weight: Tensor | None = None, loop: float | None = None
    ) -> Tensor:
        """Returns the in-edges of each source in the whole batch.

        Layers that normalise by degrees need it, as the block itself lacks
        in-edges of its sources.

        Args:
            weight (torch.Tensor, optional): ``[num_edges]`` of the whole
                batch: weights to sum instead of counting edges.
            loop (float, optional): Weight of the one self-loop that replaces
                those of each node. If a node has self-loops, the last one
                keeps its weight.

        Returns:
            torch.Tensor: ``[num_src]``, int32 without weights.

        Raises:
            ValueError: If the weights are not of the whole batch.
        """
        edges = self.edges
        if weight is not None and weight.shape != (edges.num_edges[-1],):
            raise ValueError(
                f"Block.in_degree: 'weight' must have a value for each of the "
                f'{edges.num_edges[-1]} edges of the batch (got shape '
                f'{list(weight.shape)})'
            )
        total = edges.degree(weight, loop)[: self.num_src]
        return total.clone() if weight is None else total

    def pair(self, x: Any) -> tuple[Tensor, Any]:
        """Returns the features of sources and of destinations.

        Args:
            x (torch.Tensor or Tuple): ``[>= num_src, ...]``, features of the
                nodes in the order of the batch, or a pair for the node types
                of sources and destinations.

        Raises:
            ValueError: If the features have too few rows, for example if
                layers get blocks in the wrong order.
        """
        first, second = x if isinstance(x, (tuple, list)) else (x, x)
        self._check_rows('sources', first, self.num_src)
        if second is not None:
            self._check_rows('destinations', second, self.num_dst)
            second = _first(second, self.num_dst)
        return _first(first, self.num_src), second

    def _check_rows(self, name: str, x: Tensor, count: int) -> None:
        if x.shape[0] < count:
            raise ValueError(
                f"Block.pair: 'x' must have a row for each of the {count} "
                f'{name} of the block (got {x.shape[0]}); the first layer '
                f'takes the first block of its batch'
            )

    def __repr__(self) -> str:
        return (
            f'Block(num_src={self.num_src}, num_dst={self.num_dst}, '
            f'num_edges={self.num_edges})'
        )


class HeteroBlock(dict[Any, Block]):
    """The :class:`Block` of each edge type.

    As an ``edge_index_dict`` it goes to PyG's ``HeteroConv`` over layers of
    :mod:`torch_gsample.vertex.nn`.

    Args:
        blocks (Mapping): The blocks.
        num_src (Dict[str, int]): The nodes of each type that a layer reads.
        num_dst (Dict[str, int]): Those that it computes.
    """

    def __init__(
        self,
        blocks: Mapping[Any, Block],
        num_src: dict[str, int],
        num_dst: dict[str, int],
    ):
        super().__init__(blocks)
        self.num_src, self.num_dst = num_src, num_dst

    @property
    def edge_index_dict(self) -> dict[Any, Tensor]:
        """The edges of each type, int64 ``[2, num_edges]``."""
        return {key: block.edge_index for key, block in self.items()}

    def pairs(self, x: Mapping[str, Tensor]) -> dict[Any, tuple[Tensor, Any]]:
        """Returns the features of both ends of each edge type.

        With :attr:`edge_index_dict`, what ``HeteroConv`` over PyG's own
        layers takes.

        Args:
            x (Dict[str, torch.Tensor]): Features of each node type.

        Raises:
            ValueError: If rows are missing.
        """
        return {
            key: block.pair((x[key[0]], x[key[2]]))
            for key, block in self.items()
        }


def _first(x: Tensor, count: int) -> Tensor:
    """Returns the first rows; the gradient of a slice would copy all rows."""
    return x if x.shape[0] == count else x[:count]


class Blocks:
    """The blocks of a batch, in the order of the layers.

    Args:
        edges (Dict[EdgeType, BatchEdges]): The edges of each edge type, or of
            ``None``.
        num_nodes (Dict[NodeType, Sequence[int]]): Number of new nodes of each
            hop.
        reads (Set, optional): Gets :obj:`'blocks'` when a layer reads them.

    Example:
        >>> from torch_gsample.vertex.nn import SAGEConv
        >>> edge_index = torch.tensor([[1, 2, 3], [0, 0, 1]])
        >>> edges = BatchEdges(edge_index, (1, 2, 1), (1, 2, 1), (2, 1))
        >>> blocks = Blocks({None: edges}, {None: (1, 2, 1)})
        >>> x = torch.eye(4)
        >>> for block in blocks:
        ...     x = SAGEConv(4, 4)(x, block)
        >>> list(blocks), x.shape
        ([Block(num_src=4, num_dst=3, num_edges=3), \
Block(num_src=3, num_dst=1, num_edges=2)], torch.Size([1, 4]))
    """

    # PyG would make a list of a registered sequence when a batch is moved.

    def __init__(
        self,
        edges: dict[Any, BatchEdges],
        num_nodes: Mapping[Any, Sequence[int]],
        reads: set[Any] | None = None,
    ):
        self.edges = edges
        self._reads = set() if reads is None else reads
        self._counts = {t: tuple(n) for t, n in num_nodes.items()}
        self._known: dict[int, Any] = {}

    @classmethod
    def of_relation(cls, edges: BatchEdges) -> 'Blocks':
        """Returns the blocks of the edges of the only node type."""
        return cls({None: edges}, {None: edges.counts[1]})

    @cached_property
    def _num_nodes(self) -> dict[Any, list[int]]:
        """The nodes of each type up to each hop."""
        return {t: list(accumulate(n)) for t, n in self._counts.items()}

    @property
    def num_hops(self) -> int:
        """Number of hops of the batch."""
        return max(len(n) for n in self._counts.values()) - 1

    def level(self, level: int) -> Any:
        """Returns the block of the layer that computes a hop's nodes.

        Args:
            level (int): The hop; 0 for the last layer, which computes the
                seeds. From the number of hops on, layers read and compute all
                nodes.

        Returns:
            Block or HeteroBlock: The cached block.
        """
        self._reads.add('blocks')
        level = min(level, self.num_hops)
        if level not in self._known:
            blocks = {t: Block(e, level) for t, e in self.edges.items()}
            self._known[level] = blocks.get(None)
            if None not in blocks:
                last = min(level + 1, self.num_hops)
                counts = [
                    {t: n[i] for t, n in self._num_nodes.items()}
                    for i in (last, level)
                ]
                self._known[level] = HeteroBlock(blocks, *counts)
        return self._known[level]

    def of(self, num_layers: int) -> list[Any]:
        """Returns the blocks for a model with any number of layers.

        Args:
            num_layers (int): Number of layers.

        Raises:
            ValueError: If ``num_layers`` is below 1.
        """
        if num_layers < 1:
            raise ValueError(
                f"Blocks.of: 'num_layers' must be positive (got {num_layers})"
            )
        return [self.level(i) for i in reversed(range(num_layers))]

    def __len__(self) -> int:
        return self.num_hops

    def __getitem__(self, layer: int) -> Any:
        if not -self.num_hops <= layer < self.num_hops:
            raise IndexError(
                f"Blocks: 'layer' must be in [-{self.num_hops}, "
                f'{self.num_hops}) for a batch of {self.num_hops} hops (got '
                f'{layer}); Blocks.of(num_layers) fits other models'
            )
        return self.level(self.num_hops - 1 - layer % self.num_hops)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.of(self.num_hops) if self.num_hops else [])

    def prepare(self) -> 'Blocks':
        """Computes in advance what layers would compute when called.

        These are the columns, and their transposed order for all layers but
        the first, whose input needs no gradient.
        """
        for edges in self.edges.values():
            _ = edges.csc
        for block in list(self)[1:]:
            parts = block.values() if isinstance(block, dict) else [block]
            for part in parts:
                _ = part.transposed
        return self

    def masked(self, edge_type: Any, edges: Tensor, mask: Tensor) -> 'Blocks':
        """Returns the blocks of the edges that a mask keeps.

        Args:
            edge_type (EdgeType, optional): Their type.
            edges (torch.Tensor): The kept edges, ``[2, num_kept]``.
            mask (torch.Tensor): bool ``[num_edges]``.
        """
        kept = self.edges[edge_type].masked(edges, mask)
        edges_of = {**self.edges, edge_type: kept}
        return Blocks(edges_of, self._counts, self._reads)

    def map(self, function: Callable[[Tensor], Tensor]) -> 'Blocks':
        """Returns the blocks with a function applied to their tensors."""
        edges = {t: e.map(function) for t, e in self.edges.items()}
        return Blocks(edges, self._counts, self._reads)

    def to(self, device: Any, *args: Any, **kwargs: Any) -> 'Blocks':
        """Returns the blocks on a device."""
        return self.map(lambda x: x.to(device, *args, **kwargs))

    def cpu(self) -> 'Blocks':
        """Returns the blocks in main memory."""
        return self.map(Tensor.cpu)

    def cuda(self, *args: Any, **kwargs: Any) -> 'Blocks':
        """Returns the blocks on a GPU."""
        return self.map(lambda x: x.cuda(*args, **kwargs))

    def pin_memory(self) -> 'Blocks':
        """Returns the blocks in pinned memory."""
        return self.map(Tensor.pin_memory)

    def clone(self) -> 'Blocks':
        """Returns a copy."""
        return self.map(Tensor.clone)

    def __getstate__(self) -> dict[str, Any]:
        # Other processes do not tell what they read.
        return {**self.__dict__, '_reads': set()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Blocks):
            return NotImplemented
        mine, others = self.edges, other.edges
        return mine.keys() == others.keys() and all(
            mine[t].counts == others[t].counts
            and torch.equal(mine[t].edge_index, others[t].edge_index)
            for t in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f'Blocks({self.num_hops})'
