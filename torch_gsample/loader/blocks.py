"""Adds the blocks of layers to batches."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData

from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import EAGER, Blocks
from torch_gsample.loader.late_values import stored
from torch_gsample.loader.prefetch import in_prefetch_thread
from torch_gsample.samplers.neighbor.node_wise import NeighborSampler


def add_blocks(
    batch: Any, is_known: bool, reads: set[Any] | None = None
) -> None:
    """Sets ``batch.blocks``, if its nodes and edges are in the order of hops.

    Args:
        batch (Data or HeteroData): A batch.
        is_known (bool): Whether the sampler guarantees the order; otherwise
            edges are checked.
        reads (Set, optional): Has :obj:`'blocks'` if a layer has read those
            of an earlier batch, which adds it.
    """
    if isinstance(batch, Data):
        own = batch._store
        node_stores = edge_stores = {None: own}
    elif isinstance(batch, HeteroData):
        own = batch._global_store
        node_stores, edge_stores = (
            batch._node_store_dict,
            batch._edge_store_dict,
        )
    else:
        return
    if own._mapping.get('blocks') is not None:
        return
    nodes: dict[Any, Any] = {
        t: stored(s._mapping, 'num_sampled_nodes')
        for t, s in node_stores.items()
    }
    counts = {
        t: stored(s._mapping, 'num_sampled_edges')
        for t, s in edge_stores.items()
    }
    if all(nodes.values()) and all(c is None for c in counts.values()):
        # All edges between the nodes: only the last layer reads a part.
        is_known = False
        nodes = {t: (n[0], sum(n[1:]), 0) for t, n in nodes.items()}
        counts = {
            t: _edges_of_seeds(s._mapping, nodes.get(t and t[2]))
            for t, s in edge_stores.items()
        }
    edges: dict[Any, BatchEdges] = {}
    lengths = {len(n or ()) for n in nodes.values()}
    for key, store in edge_stores.items():
        made = _edges(key, store._mapping, nodes, counts[key])
        if made is None or not (is_known or _is_in_order(made)):
            return
        edges[key] = made
        lengths.add(1 + len(made.counts[2]))
    if len(lengths) != 1:
        return
    blocks = Blocks(edges, nodes, reads)
    # In the training thread, the first layer that reads them computes them.
    # Workers do not know what layers read.
    ahead = in_prefetch_thread() and (reads is None or 'blocks' in reads)
    ahead = ahead or get_worker_info() is not None
    if ahead and sum(sum(e.counts[2]) for e in edges.values()) >= EAGER:
        blocks.prepare()
    # Its kind of attribute was not queried yet: nothing is cached.
    own._mapping['blocks'] = blocks


def knows_order(loader: Any) -> bool:
    """Whether a loader's samples keep the sampler's order, hop by hop."""
    sampler = getattr(loader, 'node_sampler', None)
    if sampler is None:
        sampler = getattr(loader, 'link_sampler', None)
    known = isinstance(sampler, NeighborSampler)
    return known and loader.transform_sampler_output is None


def _edges_of_seeds(store: Any, nodes: Any) -> tuple[int, int] | None:
    """Returns how many edges lead to seeds and to others, by column."""
    edge_index = store.get('edge_index')
    if type(edge_index) is not Tensor or nodes is None:
        return None
    first = int(torch.searchsorted(edge_index[1].contiguous(), nodes[0]))
    return first, edge_index.shape[1] - first


def _edges(
    key: Any, store: Any, nodes: dict[Any, Any], count: Any
) -> BatchEdges | None:
    """Returns the edges of a relation, if the counts of hops are known."""
    edge_index = stored(store, 'edge_index')
    src, dst = nodes.get(key and key[0]), nodes.get(key and key[2])
    if (
        type(edge_index) is not Tensor
        or count is None
        or src is None
        or dst is None
        or sum(count) != edge_index.shape[1]
    ):
        return None
    padded = stored(store, 'num_real_edges') is not None
    return BatchEdges(edge_index, src, dst, count, by_column=not padded)


def _is_in_order(edges: BatchEdges) -> bool:
    """Whether each hop has all edges of its columns, in order."""
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
    """Removes stale blocks after a transform.

    Args:
        batch (Data or HeteroData): The result of a user's transform.

    Raises:
        TypeError: If the transform returned nothing.
    """
    if isinstance(batch, Data):
        own, stores = batch._store, {None: batch._store}
    elif isinstance(batch, HeteroData):
        own, stores = batch._global_store, batch._edge_store_dict
    elif batch is None:
        raise TypeError("loader: 'transform' must return a batch (got None)")
    else:
        return batch
    blocks = own.get('blocks')
    if blocks is not None and not (
        stores.keys() == blocks.edges.keys()
        and all(
            blocks.edges[key].has(stored(store._mapping, 'edge_index'))
            for key, store in stores.items()
        )
    ):
        del own.blocks
    return batch
