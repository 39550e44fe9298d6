"""The relations of a typed graph as one graph, for attention over all."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.block import Block
from torch_gsample.vertex.kernels.graph_cache import known_of

#: The cache key of merged relations.
_MERGED = 'merged'


class Merged(NamedTuple):
    """One graph of several relations.

    Its sources are those of each relation, one relation after another: a node
    is one for each relation in which it has edges. Its destinations are the
    nodes of each type, one type after another.

    Args:
        edge_index (torch.Tensor): int64 ``[2, num_edges]``.
        size (Tuple[int, int]): Numbers of sources and destinations.
        sources (List[Tuple[EdgeType, torch.Tensor, optional]]): Of each
            relation, also of those without edges, the nodes that are sources;
            all if None. Relations with the same type of sources are
            neighbours.
    """

    edge_index: Tensor
    size: tuple[int, int]
    sources: list[tuple[Any, Tensor | None]]

    def rows_of(
        self, x_dict: Mapping[str, Tensor]
    ) -> Iterator[tuple[Any, Tensor]]:
        """Returns the features of the sources of each relation.

        Args:
            x_dict (Dict[str, torch.Tensor]): Those of the nodes of each type.
        """
        taken: dict[str, list[Tensor]] = {}
        for key, rows in self.sources:
            if rows is not None:
                taken.setdefault(key[0], []).append(rows)
        # One gather for each type, as each gradient has all rows.
        parts = {
            kind: iter(
                x_dict[kind]
                .index_select(0, torch.cat(rows))
                .split([len(r) for r in rows])
            )
            for kind, rows in taken.items()
        }
        for key, rows in self.sources:
            yield key, x_dict[key[0]] if rows is None else next(parts[key[0]])


def merged_relations(
    layer: str,
    edges: Mapping[Any, Any],
    num_src: Mapping[str, int],
    num_dst: Mapping[str, int],
) -> Merged:
    """Returns the relations of a graph as one, cached with their edges.

    Args:
        layer (str): The name of the layer, for errors.
        edges (Dict[EdgeType, torch.Tensor or Block]): Of each relation.
        num_src (Dict[str, int]): The nodes of each type.
        num_dst (Dict[str, int]): The destinations of each type, in order.

    Raises:
        IndexError: If an edge has a node out of range.
    """
    tensors = [
        x
        for part in edges.values()
        for x in (part.tensors if isinstance(part, Block) else (part,))
    ]
    known = known_of(tensors)
    key = _MERGED, *edges, *num_src.items(), 'to', *num_dst.items()
    found: Merged | None = known.get(key)
    if found is None:
        with torch.inference_mode(False):  # training may use it later
            found = _merged(layer, edges, num_src, num_dst)
        known[key] = found
    return found


def _merged(
    layer: str,
    edges: Mapping[Any, Any],
    num_src: Mapping[str, int],
    num_dst: Mapping[str, int],
) -> Merged:
    starts: dict[str, int] = {}
    count = 0
    for kind in num_dst:
        starts[kind], count = count, count + num_dst[kind]
    ends: list[Tensor] = []
    sources: list[tuple[Any, Tensor | None]] = []
    total = 0
    for key in sorted(edges, key=lambda key: list(num_src).index(key[0])):
        part = edges[key]
        edge_index = part.edge_index if isinstance(part, Block) else part
        if not isinstance(part, Block) and edge_index.shape[1]:
            _check(layer, key, edge_index, num_src[key[0]], num_dst[key[2]])
        row, col = edge_index
        rows, row = _distinct(row, num_src[key[0]])
        ends.append(torch.stack([row + total, col + starts[key[2]]]))
        sources.append((key, rows))
        total += num_src[key[0]] if rows is None else len(rows)
    merged = torch.cat(ends, dim=1) if ends else torch.empty(2, 0).long()
    return Merged(merged, (total, count), sources)


def _distinct(row: Tensor, count: int) -> tuple[Tensor | None, Tensor]:
    """Returns the distinct values, and the place of each among them.

    None where most of the values below ``count`` would be there.
    """
    if len(row) >= count:
        return None, row
    place = row.new_zeros(count)
    place[row] = 1
    rows = place.nonzero().view(-1)
    place[rows] = torch.arange(len(rows), device=row.device)
    return rows, place[row]


def _check(
    layer: str, key: Any, edge_index: Tensor, num_src: int, num_dst: int
) -> None:
    for name, ids, count in (
        ('sources', edge_index[0], num_src),
        ('destinations', edge_index[1], num_dst),
    ):
        least, most = (int(x) for x in ids.aminmax())
        if least < 0 or most >= count:
            raise IndexError(
                f"{layer}: 'edge_index_dict' must have {name} in [0, {count}) "
                f'for relation {key} (got {least if least < 0 else most})'
            )
