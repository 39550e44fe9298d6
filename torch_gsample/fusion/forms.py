"""Forms in which a layer computes the rows of a block.

A form narrows the arguments of a call to a block; the layer's result begins
with the rows of the block. A layer's form is found by trial, by comparison
with its rows on the whole batch.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torch_gsample.block import Block
from torch_gsample.fusion.rows import FirstRows, plain
from torch_gsample.vertex.nn.fusible import both_ends


class PlanError(Exception):
    """A call that cannot use blocks."""


Arguments = dict[str, Any]


def as_block(values: Arguments, block: Block) -> Arguments:
    """For layers of :mod:`torch_gsample.vertex.nn`, which accept blocks."""
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
    out = _of_edges(values, block)
    out['x'] = _ends(values['x'], block)
    if 'size' in values:
        out['size'] = block.size
    return out


def as_square(values: Arguments, block: Block) -> Arguments:
    """For layers with one feature tensor, which compute all sources."""
    out = _of_edges(values, block)
    if not isinstance(values['x'], Tensor):
        raise PlanError('x is not a tensor')
    out['x'] = first(values['x'], max(block.size))
    return out


#: The forms by name, in the order of trial. In ``rows``, messages go to
#: destinations only (:func:`to_destinations`).
FORMS: dict[str, Callable[[Arguments, Block], Arguments]] = {
    'block': as_block,
    'pair': as_pair,
    'rows': as_square,
    'square': as_square,
}


def to_destinations(
    layer: Any, size: Any, values: Arguments, block: Block
) -> Arguments:
    """Returns the arguments of ``propagate`` for a block's destinations.

    Vertex values that messages read become pairs, with the first rows as
    destinations. Other values do not change: if that is wrong, the layer fails
    its trial, by an error or a difference.

    Args:
        layer (MessagePassing): The layer.
        size (Tuple[int, int], optional): The argument ``size``.
        values (Dict[str, Any]): The other arguments.
        block (Block): The block.

    Raises:
        PlanError: If ``size`` is not that of the block's sources.
    """
    rows = block.num_src
    if size is not None and tuple(size) != (rows, rows):
        raise PlanError(f'messages go from {size[0]} to {size[1]} rows')
    out: Arguments = dict(values, size=block.size)
    for name, value in values.items():
        ends = {f'{name}_i', f'{name}_j'} & set(layer._user_args)
        if ends and isinstance(value, Tensor):
            dim = layer.node_dim % value.dim()
            first = value.narrow(dim, 0, block.num_dst)
            shared = both_ends(value, block.num_dst) if dim == 0 else None
            out[name] = shared or (value, first)
    return out


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


def _of_edges(values: Arguments, block: Block) -> Arguments:
    """Narrows features of edges; other tensors are not supported."""
    out = dict(values)
    total = block.edges.num_edges[-1]
    for name, value in values.items():
        if name in ('x', 'size') or not isinstance(value, Tensor):
            continue
        if name == 'edge_index':
            out[name] = value.plain[:, : block.num_edges]  # type: ignore
        elif name.startswith('edge_') and value.shape[:1] == (total,):
            out[name] = value[: block.num_edges]
        else:
            raise PlanError(f"argument '{name}' is not of its edges")
    return out
