"""Edges that a model makes of those of its batch, as by ``add_self_loops``.

They have blocks if each source is at most one hop further than its
destination. Sorted by destination, they and their features go to layers.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import Blocks
from torch_gsample.loader.batch_edge_index import (
    BatchBlocks,
    BatchEdgeIndex,
    marked_in,
)
from torch_gsample.torch_private import version_of, without_functorch


class _Made(NamedTuple):
    """Known properties of edges, stored with them.

    Args:
        batch (BatchBlocks): The batch.
        version (int): Their version counter.
        edges (BatchEdgeIndex, optional): The sorted edges, if they have
            blocks.
        order (torch.Tensor, optional): Their positions before sorting.
    """

    batch: BatchBlocks
    version: int
    edges: Any = None
    order: Any = None


def edges_of_call(args: Any, kwargs: dict[str, Any]) -> Any:
    """Returns the edges of the batch of a model's call, of one relation.

    Args:
        args (Tuple): The positional arguments of the call.
        kwargs (Dict[str, Any]): Its keyword arguments.
    """
    found = marked_in(args, kwargs)
    return found if found is not None and found.edge_type is None else None


def with_blocks(
    values: dict[str, Any], batch: Any = None
) -> dict[str, Any] | None:
    """Returns the arguments of a layer, with edges that know their blocks.

    Nothing is returned if the edges are not plain, or have no blocks.

    Args:
        values (Dict[str, Any]): The arguments by name.
        batch (BatchEdgeIndex, optional): The edges of the batch; by default,
            only what is known of the edges already is used.
    """
    edges = values.get('edge_index')
    if type(edges) is not Tensor or edges.is_inference():
        return None
    made: Any = getattr(edges, '_gsample_made', None)
    if (
        made is None
        or made.version != version_of(edges)
        or (batch is not None and made.batch is not batch.batch)
    ):
        if batch is None:
            return None
        made = edges._gsample_made = _made(edges, batch)  # type: ignore
    if made.edges is None:
        return None
    out, count = dict(values), edges.shape[1]
    is_clear = count != made.edges.batch.num_nodes
    for name, x in values.items():
        if x is edges:
            out[name] = made.edges
        elif (
            isinstance(x, Tensor)
            and x.shape[:1] == (count,)
            and (is_clear or name.startswith('edge_'))
        ):
            out[name] = x.index_select(0, made.order)
    return out


def _made(edges: Tensor, batch: BatchEdgeIndex) -> _Made:
    without = _Made(batch.batch, version_of(edges))
    known = batch.batch.on(batch.device).edges[None]
    if (
        edges.device != batch.device
        or edges.dtype != torch.int64
        or edges.dim() != 2
        or edges.shape[0] != 2
        or known.num_src != known.num_dst
    ):
        return without
    with torch.inference_mode(False), without_functorch():
        try:
            made, order = known.made(edges)
        except IndexError:
            return without
        if not _are_in_hops(made):
            return without
        blocks = Blocks.of_relation(made)
        on = BatchBlocks(blocks, edges.device, batch.batch.num_nodes)
        marked = BatchEdgeIndex.of(made.edge_index, on, None)
        return without._replace(edges=marked, order=order)


def _are_in_hops(edges: BatchEdges) -> bool:
    """Whether each source is at most one hop further than its destination."""
    hops = len(edges.num_edges) - 1
    return all(
        edges.csc.indices[: edges.num_edges[hop + 1]].max()
        < edges.num_src[hop + 1]
        for hop in range(hops)
        if edges.num_edges[hop + 1]
    )
