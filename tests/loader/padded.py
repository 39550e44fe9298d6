"""Padded batches without their padding, to compare them."""

import torch

from torch_gsample.loader.blocks import add_blocks


def unpadded(batch):
    """The batch as it is without static shapes, as plain values."""
    batch = batch.clone()
    local = {
        store._key: store.node_mask.cumsum(0) - 1
        for store in batch.node_stores
    }
    for store in batch.edge_stores:
        key = store._key
        ends = (None, None) if key is None else key[::2]
        mask = store.edge_mask
        for end, index in zip(ends, store.edge_index, strict=True):
            nodes = batch._store if end is None else batch[end]
            assert bool((nodes.node_mask[index] == mask).all())
        drop(store, mask, 'edges')
        store.edge_index = torch.stack(
            [local[t][i] for t, i in zip(ends, store.edge_index, strict=True)]
        )
    for store in batch.node_stores:
        drop(store, store.node_mask, 'nodes')
    if 'blocks' in batch:
        del batch.blocks
        add_blocks(batch, is_known=False)
    return batch


def drop(store, mask, level):
    """Drops the padding of the nodes or edges of a store."""
    size = mask.numel()
    for key, value in list(store.items()):
        if isinstance(value, torch.Tensor):
            dim = -1 if key == 'edge_index' else 0
            if value.dim() > 0 and value.shape[dim] == size:
                store[key] = value[..., mask] if dim else value[mask]
    real = store.pop(f'num_real_{level}')
    if store.get(f'num_sampled_{level}') is not None:
        store[f'num_sampled_{level}'] = real
    if level == 'nodes' and 'num_nodes' in store:
        store.num_nodes = int(mask.sum())
    del store[f'{level[:-1]}_mask']
