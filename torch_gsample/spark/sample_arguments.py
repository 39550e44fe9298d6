"""Checks the arguments of neighbor_sample: types, columns, seeds, batches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch_gsample.ops import _check
from torch_gsample.spark.batch_types import BatchTypes, EdgeType
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    checked_frame,
    checked_relation,
    digest_columns,
)
from torch_gsample.storage import ChunkedGraph

_OP = 'neighbor_sample'


@dataclass(frozen=True)
class SampleArguments:
    """Arguments of a sample that were checked without a job.

    Args:
        types (BatchTypes): Of the graph.
        fanouts (List[List[int]]): For each relation, those of all hops.
        frames (List[DataFrame]): The edges of each relation; none of a stored
            graph.
        input_type (int): The type of the seeds.
        seeds (DataFrame): ``position``, ``id`` and, with times, ``time``.
    """

    types: BatchTypes
    fanouts: list[list[int]]
    frames: list[DataFrame]
    input_type: int
    seeds: DataFrame


def checked_arguments(
    op: str,
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    seeds: DataFrame | tuple[str, DataFrame],
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
    *,
    batch_size: int,
    weighted: bool = False,
    timed: bool = False,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    split: str = 'batches',
    batches: range | None = None,
    **others: bool,
) -> SampleArguments:
    """Checks all arguments that need no job; see :func:`neighbor_sample`.

    Args:
        op (str): The function, for errors.
        edges (DataFrame or Dict or ChunkedGraph): The graph.
        seeds (DataFrame or Tuple): The seeds.
        fanouts (List[int] or Dict): Neighbours to sample at each hop.
        batch_size (int): Number of seeds per batch.
        weighted (bool, optional): Whether edges are drawn by weight.
        timed (bool, optional): Whether edges and seeds have times.
        time_window (int, optional): Width of the window.
        temporal_strategy (str, optional): ``'uniform'`` or ``'last'``.
        split (str, optional): ``'batches'`` or ``'nodes'``.
        batches (range, optional): The batches to sample.
        **others (bool): Not checked.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        ValueError: If a column is missing, or an argument is out of range.
    """
    _check.count(op, 'batch_size', batch_size)
    _check.strategy(op, temporal_strategy)
    _check.time_window(op, time_window)
    if split not in ('batches', 'nodes'):
        raise ValueError(
            f"{op}: 'split' must be 'batches' or 'nodes' (got {split!r})"
        )
    if time_window is not None and not timed:
        raise ValueError(f"{op}: 'time_window' needs 'timed'")
    if batches is not None and not _is_contiguous(batches):
        raise ValueError(
            f"{op}: 'batches' must be a contiguous range (got {batches})"
        )
    types, all_fanouts = checked_relations(op, edges, fanouts)
    frames = checked_edges(op, edges, weighted, timed)
    input_type, frame = checked_seeds(op, types, seeds, timed)
    return SampleArguments(types, all_fanouts, frames, input_type, frame)


def checked_relations(
    op: str,
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
) -> tuple[BatchTypes, list[list[int]]]:
    """Returns types, and the fan-outs of each relation.

    Args:
        op (str): The function, for errors.
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
                f"{op}: 'fanouts' must be a list for a homogeneous graph "
                f'(got a dictionary)'
            )
        each = [_checked_fanouts(op, fanouts)]
        return BatchTypes.of(None), each
    check_edge_types(op, 'edges', known)
    by_type = (
        fanouts
        if isinstance(fanouts, Mapping)
        else dict.fromkeys(known, fanouts)
    )
    if set(by_type) != set(known):
        raise ValueError(
            f"{op}: 'fanouts' must have the edge types {known} "
            f'(got {list(by_type)})'
        )
    each = [_checked_fanouts(op, by_type[t]) for t in known]
    if len({len(fanout) for fanout in each}) > 1:
        raise ValueError(
            f"{op}: 'fanouts' must have the same number of hops for each "
            f'edge type (got {each})'
        )
    return BatchTypes.of(known), each


def _checked_fanouts(op: str, fanouts: Sequence[int]) -> list[int]:
    """Returns plain integers; those of NumPy are accepted, as in PyG."""
    if isinstance(fanouts, Iterable):
        fanouts = [_check.plain_number(fanout) for fanout in fanouts]
    return _check.fanouts(op, 'fanouts', fanouts)


def checked_edges(
    op: str,
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    weighted: bool,
    timed: bool,
) -> list[DataFrame]:
    """Returns the frame of each relation; none for a stored graph.

    Args:
        op (str): The function, for errors.
        edges (DataFrame or Dict or ChunkedGraph): Of :func:`neighbor_sample`.
        weighted (bool): Likewise.
        timed (bool): Likewise.

    Raises:
        TypeError: If a column has the wrong type.
        ValueError: If a column is missing, or not stored.
    """
    if isinstance(edges, ChunkedGraph):
        _check_stored(op, edges, weighted, timed)
        return []
    frames = edges.values() if isinstance(edges, Mapping) else [edges]
    return [checked_relation(op, frame, weighted, timed) for frame in frames]


def check_edge_types(op: str, name: str, types: Sequence[EdgeType]) -> None:
    """Checks that there are edge types, which are triples of names.

    Args:
        op (str): The function, for errors.
        name (str): The argument.
        types (List[Tuple[str, str, str]]): The edge types.

    Raises:
        TypeError: If one is something else.
        ValueError: If there is none.
    """
    if not types:
        raise ValueError(f"{op}: '{name}' must have an edge type (got none)")
    for kind in types:
        is_triple = isinstance(kind, tuple) and len(kind) == 3
        if not is_triple or not all(isinstance(part, str) for part in kind):
            raise TypeError(
                f"{op}: edge types of '{name}' must be triples of strings "
                f'(got {kind!r})'
            )


def _check_stored(
    op: str, graph: ChunkedGraph, weighted: bool, timed: bool
) -> None:
    """Checks that a stored graph has the required weights and times.

    With times, the edges of a node are stored by time, which changes positions
    and so samples.
    """
    for relation in graph.meta.relations:
        widths = relation.widths
        if weighted and not widths['weight']:
            raise ValueError(
                f"{op}: 'weighted' needs weights in {str(graph.path)!r}"
            )
        if timed != bool(widths['time']):
            raise ValueError(
                f"{op}: 'timed' must be {bool(widths['time'])} for "
                f'{str(graph.path)!r}, as it was prepared (got {timed})'
            )


def checked_seeds(
    op: str,
    types: BatchTypes,
    seeds: DataFrame | tuple[str, DataFrame],
    timed: bool,
) -> tuple[int, DataFrame]:
    """Returns the type of the seeds, and their frame.

    Args:
        op (str): The function, for errors.
        types (BatchTypes): Of the graph.
        seeds (DataFrame or Tuple): Of :func:`neighbor_sample`.
        timed (bool): Whether they have times.

    Raises:
        TypeError: If a column has the wrong type.
        ValueError: If a column is missing, or the type is unknown.
    """
    node_type = None
    if isinstance(seeds, tuple):
        if len(seeds) != 2:
            raise TypeError(
                f"{op}: 'seeds' must be a pair of a node type and a frame "
                f'(got {len(seeds)} items)'
            )
        node_type, seeds = seeds
    if node_type not in types.nodes:
        raise ValueError(
            f"{op}: the node type of 'seeds' must be one of {types.nodes} "
            f'(got {node_type!r})'
        )
    columns = ['position', 'id'] + ['time'] * timed
    frame = checked_frame(op, 'seeds', seeds, columns).select(*columns)
    return types.nodes.index(node_type), frame


def checked_batches(batches: range | None, count: int) -> range:
    """Returns the batches to sample: all if none are given.

    Args:
        batches (range, optional): Of :func:`neighbor_sample`.
        count (int): The number of all batches.

    Raises:
        ValueError: If they are not a contiguous part.
    """
    every = range(count)
    if batches is None:
        return every
    if not _is_contiguous(batches) or batches[-1] >= count:
        raise ValueError(
            f"{_OP}: 'batches' must be a contiguous part of {every} "
            f'(got {batches})'
        )
    return batches


def _is_contiguous(batches: range) -> bool:
    """Whether a range could be a part of all batches."""
    return len(batches) > 0 and batches[0] >= 0 and batches.step == 1


class SeedCounts(NamedTuple):
    """The number of seeds, their largest id, and a hash of their rows."""

    size: int
    largest: int
    digest: int


def count_seeds(
    checked: SampleArguments, stored: ChunkedGraph | None
) -> SeedCounts:
    """Counts seeds, and checks that their positions are 0 to the count.

    Counting distinct positions would shuffle them, and cost half of a small
    sample. So only their sum is compared, and :func:`seeds_of` finds all
    others that occur twice.

    Args:
        checked (SampleArguments): With the seeds.
        stored (ChunkedGraph, optional): The graph that bounds their ids.

    Raises:
        ValueError: If a position or an id is wrong, or there are no seeds.
    """
    seeds, place, num_nodes = checked.seeds, F.col('position'), None
    if stored is not None:
        num_nodes = stored.num_nodes[checked.types.nodes[checked.input_type]]
    count, hashed, total, least, greatest, largest = seeds.agg(
        *digest_columns(seeds, ['position', 'id', 'time']),
        F.try_sum(place),
        F.min(place),
        F.max(place),
        F.max('id'),
    ).collect()[0]
    if count == 0:
        raise ValueError(f"{_OP}: 'seeds' must not be empty")
    expected = count * (count - 1) // 2, 0, count - 1
    if (total, least, greatest) != expected:
        distinct = seeds.select(place).distinct().count()
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
    return SeedCounts(count, largest, int(hashed))
