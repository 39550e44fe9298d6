"""
How batches grow with hops
==========================

Node-wise samples multiply with each hop. Layer-wise samples (LADIES) draw a
fixed number of nodes a hop.
"""

# %%
# Count the nodes of a batch of 128 packages, for one to four hops.
import matplotlib.pyplot as plt
import torch_geometric.transforms as T

from torch_gsample import LadiesSampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

data = T.ToUndirected()(DebianPackages(homogeneous=True)[0])
hops = range(1, 5)


def num_nodes(sampler: LadiesSampler | None, sizes: list[int]) -> int:
    """Returns the nodes of the first batch."""
    loader = NeighborLoader(
        data,
        None if sampler else sizes,
        sampler=sampler,
        input_nodes=data.train_mask,
        batch_size=128,
        seed=None if sampler else 12,
    )
    return next(iter(loader)).num_nodes


node_wise = [num_nodes(None, [10] * n) for n in hops]
layer_wise = [
    num_nodes(LadiesSampler(data, [256] * n, seed=12), [256] * n) for n in hops
]
for n, a, b in zip(hops, node_wise, layer_wise, strict=True):
    print(f'{n} hops: {a:6,} nodes with fan-out 10, {b:5,} with LADIES')

# %%
# The memory of a batch is about proportional to its nodes.
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(hops, node_wise, 'o-', color='#999999', label='NeighborLoader')
ax.plot(hops, layer_wise, 'o-', color='#2a788e', label='LADIES, 256 a hop')
ax.set(xlabel='hops', ylabel='nodes of a batch', xticks=hops)
ax.legend(frameon=False)
assert layer_wise[-1] < node_wise[-1]
