"""Checks the arguments of neighbor_sample: types, columns, seeds, batches."""

from collections.abc import Mapping, Sequence

from torch_gsample.ops import _check
from torch_gsample.spark.batches import BatchTypes, EdgeType
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    checked_frame,
    checked_relation,
)
from torch_gsample.storage import ChunkedGraph

_OP = 'neighbor_sample'


def check_split(split: str) -> None:
    """Checks the option ``split``.

    Raises:
        ValueError: If it is neither ``'batches'`` nor ``'nodes'``.
    """
    if split not in ('batches', 'nodes'):
        raise ValueError(
            f"{_OP}: 'split' must be 'batches' or 'nodes' (got {split!r})"
        )


def checked_relations(
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
) -> tuple[BatchTypes, list[list[int]]]:
    """Returns types, and the fan-outs of each relation.

    Args:
        edges (DataFrame or Dict or ChunkedGraph): Of :func:`neighbor_sample`.
        fanouts (List[int] or Dict): Likewise.

    Raises:
        ValueError: If they do not match.
    """
    known: list[EdgeType] | None
    if isinstance(edges, ChunkedGraph):
        names = [relation.edge_type for relation in edges.meta.relations]
        known = [t for t in names if t is not None] or None
    else:
        known = [*edges] if isinstance(edges, Mapping) else None
    if known is None:
        if isinstance(fanouts, Mapping):
            raise ValueError(
                f"{_OP}: 'fanouts' must be a list for a homogeneous graph "
                f'(got a dictionary)'
            )
        each = [_check.fanouts(_OP, 'fanouts', fanouts)]
        return BatchTypes.of(None), each
    if not known:
        raise ValueError(f"{_OP}: 'edges' must have an edge type (got none)")
    by_type = (
        fanouts
        if isinstance(fanouts, Mapping)
        else dict.fromkeys(known, fanouts)
    )
    if set(by_type) != set(known):
        raise ValueError(
            f"{_OP}: 'fanouts' must have the edge types {known} "
            f'(got {list(by_type)})'
        )
    each = [_check.fanouts(_OP, 'fanouts', by_type[t]) for t in known]
    if len({len(fanout) for fanout in each}) > 1:
        raise ValueError(
            f"{_OP}: 'fanouts' must have the same number of hops for each "
            f'edge type (got {each})'
        )
    return BatchTypes.of(known), each


def checked_edges(
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    weighted: bool,
    timed: bool,
) -> list[DataFrame]:
    """Returns the frame of each relation; none for a stored graph.

    Args:
        edges (DataFrame or Dict or ChunkedGraph): Of :func:`neighbor_sample`.
        weighted (bool): Likewise.
        timed (bool): Likewise.

    Raises:
        TypeError: If a column has the wrong type.
        ValueError: If a column is missing, or not stored.
    """
    if isinstance(edges, ChunkedGraph):
        _check_stored(edges, weighted, timed)
        return []
    frames = edges.values() if isinstance(edges, Mapping) else [edges]
    return [checked_relation(_OP, frame, weighted, timed) for frame in frames]


def _check_stored(graph: ChunkedGraph, weighted: bool, timed: bool) -> None:
    """Checks that a stored graph has the required weights and times.

    With times, the edges of a node are stored by time, which changes positions
    and so samples.
    """
    for relation in graph.meta.relations:
        widths = relation.widths
        if weighted and not widths['weight']:
            raise ValueError(
                f"{_OP}: 'weighted' needs weights in {str(graph.path)!r}"
            )
        if timed != bool(widths['time']):
            raise ValueError(
                f"{_OP}: 'timed' must be {bool(widths['time'])} for "
                f'{str(graph.path)!r}, as it was prepared (got {timed})'
            )


def checked_seeds(
    types: BatchTypes,
    seeds: DataFrame | tuple[str, DataFrame],
    timed: bool,
) -> tuple[int, DataFrame]:
    """Returns the type of the seeds, and their frame.

    Args:
        types (BatchTypes): Of the graph.
        seeds (DataFrame or Tuple): Of :func:`neighbor_sample`.
        timed (bool): Whether they have times.

    Raises:
        TypeError: If a column has the wrong type.
        ValueError: If a column is missing, or the type is unknown.
    """
    node_type = None
    if isinstance(seeds, tuple):
        node_type, seeds = seeds
    if node_type not in types.nodes:
        raise ValueError(
            f"{_OP}: the node type of 'seeds' must be one of {types.nodes} "
            f'(got {node_type!r})'
        )
    columns = ['position', 'id'] + ['time'] * timed
    frame = checked_frame(_OP, 'seeds', seeds, columns).select(*columns)
    return types.nodes.index(node_type), frame


def checked_batches(batches: range | None, count: int) -> range:
    """Returns the batches to sample: all if none are given.

    Args:
        batches (range, optional): Of :func:`neighbor_sample`.
        count (int): The number of all batches.

    Raises:
        TypeError: If it is not a range.
        ValueError: If they are not a contiguous part.
    """
    every = range(count)
    if batches is None:
        return every
    if not isinstance(batches, range):
        raise TypeError(
            f"{_OP}: 'batches' must be a range (got {type(batches).__name__})"
        )
    within = len(batches) > 0 and batches[0] >= 0 and batches[-1] < count
    if batches.step != 1 or not within:
        raise ValueError(
            f"{_OP}: 'batches' must be a contiguous part of {every} "
            f'(got {batches})'
        )
    return batches


def count_seeds(seeds: DataFrame, num_nodes: int | None) -> tuple[int, int]:
    """Counts seeds, and checks that their positions are 0 to the count.

    Their largest id is returned, too.

    Args:
        seeds (DataFrame): Of :func:`checked_seeds`.
        num_nodes (int, optional): The upper bound of their ids.

    Raises:
        ValueError: If a position or an id is wrong, or there are no seeds.
    """
    place = F.col('position')
    count, distinct, least, greatest, largest = seeds.agg(
        F.count(F.lit(1)),
        F.countDistinct(place),
        F.min(place),
        F.max(place),
        F.max('id'),
    ).collect()[0]
    if count == 0:
        raise ValueError(f"{_OP}: 'seeds' must not be empty")
    if (distinct, least, greatest) != (count, 0, count - 1):
        raise ValueError(
            f"{_OP}: the column 'position' of 'seeds' must hold the numbers "
            f'from 0 to {count - 1}, each once (got {distinct} of them, from '
            f'{least} to {greatest})'
        )
    if num_nodes is not None and largest >= num_nodes:
        raise ValueError(
            f"{_OP}: the column 'id' of 'seeds' must hold nodes of the graph, "
            f'below {num_nodes} (got {largest})'
        )
    return count, largest
