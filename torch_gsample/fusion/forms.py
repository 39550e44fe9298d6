"""Forms in which a layer computes the rows of a block.

A form narrows the arguments of a call to a block; the layer's result begins
with the rows of the block. A layer's form is found by trial, by comparison
with its rows on the whole batch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from torch_gsample.block import Block, Blocks, HeteroBlock
from torch_gsample.fusion.rows import FirstRows, plain
from torch_gsample.fusion.sized_rows import sized_rows
from torch_gsample.loader.batch_edge_index import BatchEdgeIndex, plain_edges
from torch_gsample.vertex.kernels.layouts import known_block
from torch_gsample.vertex.nn.fusible import both_ends


class PlanError(Exception):
    """A call that cannot use blocks."""


class UntestedError(PlanError):
    """A call whose blocks the trial of its plan did not test."""


Arguments = dict[str, Any]


def edges_of(values: Arguments) -> Any:
    """Returns the edges of a call, if they are those of a batch.

    Args:
        values (Dict[str, Any]): The arguments of a layer by name.

    Returns:
        BatchEdgeIndex or Dict[EdgeType, BatchEdgeIndex], optional: The edges;
        a dict for layers that take those of all relations. Layers of users
        may give them another name.
    """
    edges = values.get('edge_index', values.get('edge_index_dict'))
    if edges is None:
        found = [x for x in values.values() if isinstance(x, BatchEdgeIndex)]
        edges = found[0] if len(found) == 1 else None
    if not isinstance(edges, dict):
        return edges if knows_blocks(edges) else None
    batches = {
        id(x.batch) if knows_blocks(x) and x.edge_type == key else None
        for key, x in edges.items()
    }
    return edges if len(batches) == 1 and None not in batches else None


def knows_blocks(edges: Any) -> bool:
    """Whether edges carry blocks, and were not changed."""
    return isinstance(edges, BatchEdgeIndex) and edges.is_known


def blocks_of(edges: Any) -> Blocks:
    """Returns all blocks of the batch that edges are of.

    Args:
        edges (Any): The result of :func:`edges_of`.
    """
    one = next(iter(edges.values())) if isinstance(edges, dict) else edges
    return one.batch.on(one.device)


def block_at(edges: Any, level: int) -> Any:
    """Returns the block of a layer that computes the nodes of a hop.

    Args:
        edges (Any): The result of :func:`edges_of`.
        level (int): The hop; 0 is that of the seeds.

    Returns:
        Block or HeteroBlock: The block; of all relations for a dict.
    """
    if isinstance(edges, dict):
        return blocks_of(edges).level(level)
    return edges.block(level)


class Beyond(NamedTuple):
    """Parts of a batch beyond the block of a layer, which a trial detects.

    Args:
        nodes (bool): Nodes that the layer does not compute.
        edges (bool): Edges that it does not read.
        out_edges (bool): Among these, edges from nodes that it computes. A
            disjoint batch has none, nor has a relation of two node types.
    """

    nodes: bool = True
    edges: bool = True
    out_edges: bool = True


def beyond(edges: Any, level: int, num_hops: int) -> Beyond:
    """Returns what a batch has beyond a layer's block.

    Args:
        edges (Any): The result of :func:`edges_of`.
        level (int): The last hop whose nodes the layer computes.
        num_hops (int): The hops that it reads.
    """
    parts = edges.values() if isinstance(edges, dict) else [edges]
    shown = [_beyond(part, level, num_hops) for part in parts]
    return Beyond(*map(any, zip(*shown, strict=True)))


def _beyond(edges: BatchEdgeIndex, level: int, num_hops: int) -> Beyond:
    computed, read = edges.block(level), edges.block(level + num_hops - 1)
    rest = read.edges.edge_index[0, read.num_edges :]
    kind = edges.edge_type
    return Beyond(
        computed.num_dst < computed.edges.num_dst[-1],
        rest.numel() > 0,
        (kind is None or kind[0] == kind[2])
        and bool((rest < computed.num_dst).any()),
    )


def as_block(values: Arguments, block: Any) -> Arguments:
    """For layers of :mod:`torch_gsample.vertex.nn`, which accept blocks."""
    if isinstance(block, HeteroBlock):
        out = as_dicts(values, block)
        for name, value in values.items():
            if value is edges_of(values):
                parts = {key: block[key] for key in value}
                out[name] = HeteroBlock(parts, block.num_src, block.num_dst)
        return out
    out = dict(values)
    for name, value in values.items():
        if isinstance(value, FirstRows):
            out[name] = plain(value)
    x = values['x']
    if isinstance(x, Tensor):
        _check_rows(x, block.num_src)  # the layer selects the first rows
    else:
        out['x'] = _ends(x, block)
    out['edge_index'] = block
    if 'size' in out:
        out['size'] = None
    return out


def as_pair(values: Arguments, block: Block) -> Arguments:
    """For layers that accept a pair of sources and destinations."""
    out = _of_edges(values, block, lambda x: _ends(x, block))
    if isinstance(values.get('x'), (tuple, list)):
        out['x'] = _ends(values['x'], block)
    if 'size' in values:
        out['size'] = block.size
    return out


def as_square(values: Arguments, block: Block) -> Arguments:
    """For layers with one feature tensor, which compute all sources."""
    if isinstance(values.get('x'), (tuple, list)):
        raise PlanError('x is not a tensor')
    return _of_edges(values, block, lambda x: first(x, max(block.size)))


def as_square_of_all_edges(values: Arguments, block: Block) -> Arguments:
    """For layers that read all edges, as degrees do, or make others."""
    if isinstance(values.get('x'), (tuple, list)):
        raise PlanError('x is not a tensor')
    rows, total = max(block.size), block.edges.num_src[-1]

    def sized(x: Tensor) -> Tensor:
        return sized_rows(first(x, rows), total)

    return _of_edges(values, block, sized, is_cut=False)


def as_dicts(values: Arguments, block: HeteroBlock) -> Arguments:
    """For layers with dicts of all types, which compute all sources."""
    out = dict(values)
    for name, value in values.items():
        if isinstance(value, Tensor) and value.dim():
            raise PlanError(f"argument '{name}' belongs to no type")
        if isinstance(value, dict):
            out[name] = {
                key: _of_type(key, x, block) for key, x in value.items()
            }
    return out


#: The forms by name; the first one that is right is taken. In ``rows``
#: and ``all_edges``, each propagation has a block of :class:`Hops`.
FORMS: dict[str, Callable[[Arguments, Any], Arguments]] = {
    'block': as_block,
    'pair': as_pair,
    'all_edges': as_square_of_all_edges,
    'rows': as_square,
    'square': as_square,
    'dicts': as_dicts,
}


def forms_for(edges: Any, is_fused: bool) -> list[str]:
    """Returns the forms that a layer may have, in the order of preference.

    Args:
        edges (Any): The result of :func:`edges_of`.
        is_fused (bool): Whether the layer is one of ours.
    """
    others = ['dicts']
    if not isinstance(edges, dict):
        others = ['pair', 'rows', 'square', 'all_edges']
    return ['block', *others] if is_fused else others


def first(x: Tensor, count: int) -> Tensor:
    """Returns the first rows of a tensor, which may itself be a part."""
    _check_rows(x, count)
    x = plain(x)
    # The gradient of a slice copies all rows.
    return x if x.shape[0] == count else x[:count]


def _check_rows(x: Tensor, count: int) -> None:
    partial = isinstance(x, FirstRows)
    known = x.num_rows if partial else x.shape[0]  # type: ignore[attr-defined]
    if known < count:
        layer = f' of {x.origin.layer}' if partial else ''  # type: ignore
        raise PlanError(
            f'it reads {count} rows{layer}, of which {known} were computed'
        )


def _ends(x: Any, block: Block) -> Any:
    if isinstance(x, Tensor):
        return both_ends(first(x, block.num_src), block.num_dst)
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise PlanError('x is neither a tensor nor a pair')
    return tuple(
        None if end is None else first(end, count)
        for end, count in zip(x, block.size, strict=True)
    )


def _of_edges(
    values: Arguments,
    block: Block,
    narrowed: Callable[[Tensor], Any],
    is_cut: bool = True,
) -> Arguments:
    """Narrows what belongs to edges or nodes: other tensors are unknown.

    Args:
        values (Dict[str, Any]): The arguments of the layer.
        block (Block): The block.
        narrowed (Callable): Returns what the layer gets for a tensor with a
            row for each node.
        is_cut (bool, optional): Whether it gets only the block's edges.
    """
    out, edges = dict(values), edges_of(values)
    num_edges, num_nodes = block.edges.num_edges[-1], block.edges.num_src[-1]
    for name, value in values.items():
        if not isinstance(value, Tensor) or not value.dim():
            continue
        if value is edges:
            out[name] = known_block(block) if is_cut else plain_edges(edges)
        elif value.shape[0] == num_edges and (
            name.startswith('edge_') or num_edges != num_nodes
        ):
            out[name] = value[: block.num_edges] if is_cut else value
        elif name == 'x' or _has_rows(value, num_nodes):
            out[name] = narrowed(value)
        else:
            raise PlanError(
                f"argument '{name}' has no row for each edge or node"
            )
    return out


def _has_rows(x: Tensor, count: int) -> bool:
    """Whether a tensor has a row for each node, computed or not."""
    if isinstance(x, FirstRows):
        return x.row_dim == 0 and x.origin.num_rows == count
    return x.shape[0] == count


def _of_type(key: Any, x: Any, block: HeteroBlock) -> Any:
    """Narrows what belongs to a node type or an edge type."""
    if not isinstance(x, Tensor) or not x.dim():
        return x
    if isinstance(key, str):
        return first(x, block.num_src[key])
    part = block[key]
    if isinstance(x, BatchEdgeIndex):
        return x.plain[:, : part.num_edges]
    if x.shape[0] != part.edges.num_edges[-1]:
        raise PlanError(
            f"a tensor of edge type '{key}' has no row for each edge"
        )
    return x[: part.num_edges]
