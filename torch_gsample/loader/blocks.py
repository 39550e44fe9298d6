"""Gives batches the blocks of their layers."""

from typing import Any

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import EAGER, Blocks
from torch_gsample.samplers.neighbor.node_wise import NeighborSampler


def add_blocks(batch: Any, is_known: bool) -> None:
    """Sets ``batch.blocks``, if its nodes and edges are in the order of hops.

    Args:
        batch (Data or HeteroData): A batch.
        is_known (bool): Whether the sampler is known to give them so; if not,
            edges are looked at.
    """
    if not isinstance(batch, (Data, HeteroData)) or 'blocks' in batch:
        return
    nodes = {s._key: s.get('num_sampled_nodes') for s in batch.node_stores}
    edges: dict[Any, BatchEdges] = {}
    for store in batch.edge_stores:
        made = _edges(store, nodes)
        if made is None or not (is_known or _is_in_order(made)):
            return
        edges[store._key] = made
    lengths = {len(n or ()) for n in nodes.values()}
    lengths |= {len(e.num_edges) for e in edges.values()}
    if len(lengths) != 1:
        return
    blocks = Blocks(edges, nodes)
    if sum(e.num_edges[-1] for e in edges.values()) >= EAGER:
        blocks.prepare()
    batch.blocks = blocks


def knows_order(loader: Any) -> bool:
    """Whether a loader's samples are as its sampler made them, hop by hop."""
    sampler = getattr(loader, 'node_sampler', None)
    if sampler is None:
        sampler = getattr(loader, 'link_sampler', None)
    known = isinstance(sampler, NeighborSampler)
    return known and loader.transform_sampler_output is None


def _edges(store: Any, nodes: dict[Any, Any]) -> BatchEdges | None:
    """Returns the edges of a relation, if it says how many each hop has."""
    edge_index = store.get('edge_index')
    count = store.get('num_sampled_edges')
    ends = (None, None) if store._key is None else store._key[::2]
    src, dst = (nodes.get(t) for t in ends)
    if (
        type(edge_index) is not Tensor
        or any(n is None for n in (count, src, dst))
        or sum(count) != edge_index.shape[1]
    ):
        return None
    padded = 'num_real_edges' in store
    return BatchEdges(edge_index, src, dst, count, by_column=not padded)


def _is_in_order(edges: BatchEdges) -> bool:
    """Whether each hop has all edges of its columns, and these in order."""
    row, col = edges.edge_index
    if bool((col[1:] < col[:-1]).any()):
        return False
    for hop in range(1, len(edges.num_edges)):
        part = slice(edges.num_edges[hop - 1], edges.num_edges[hop])
        first = edges.num_dst[hop - 2] if hop > 1 else 0
        for index, low, high in (
            (row[part], 0, edges.num_src[hop]),
            (col[part], first, edges.num_dst[hop - 1]),
        ):
            if index.numel() and not (
                low <= index.min() and index.max() < high
            ):
                return False
    return True


def drop_stale(batch: Any) -> Any:
    """Returns a batch without blocks that a transform left behind.

    Args:
        batch (Data or HeteroData): What a user's transform returned.
    """
    if isinstance(batch, (Data, HeteroData)) and 'blocks' in batch:
        stores = {store._key: store for store in batch.edge_stores}
        known = batch.blocks.edges
        if stores.keys() != known.keys() or not all(
            known[key].has(store.get('edge_index'))
            for key, store in stores.items()
        ):
            del batch.blocks
    return batch
