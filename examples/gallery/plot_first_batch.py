"""
A first batch
=============

A loader samples the neighbourhood of some seeds, hop by hop, and returns it as
a PyG ``Data``.
"""

# %%
# The nodes of this bundled graph are Debian's packages, and its edges are
# relations such as dependencies.
import matplotlib.pyplot as plt
import torch

from torch_gsample import viz
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

data = DebianPackages(homogeneous=True)[0]
print(data)

# %%
# Three seeds, at most four in-neighbours of each, and at most three of each of
# those. With ``seed=12`` everyone gets this batch, for any number of workers
# and threads.
loader = NeighborLoader(
    data,
    num_neighbors=[4, 3],
    batch_size=3,
    input_nodes=torch.tensor([40, 2_000, 30_000]),
    seed=12,
)
batch = next(iter(loader))
print(batch)

# %%
# Seeds come first, then the new nodes of each hop. ``n_id`` maps them to the
# graph.
print('new nodes a hop:', batch.num_sampled_nodes)
print('edges a hop:    ', batch.num_sampled_edges)
print('seeds:          ', batch.n_id[: batch.batch_size].tolist())

# %%
# Every sampled edge is an edge of the graph: ``e_id`` is its index.
sampled = batch.n_id[batch.edge_index]
assert sampled.equal(data.edge_index[:, batch.e_id])

# %%
# The picture shows the hops as rings around the seeds.
fig, ax = plt.subplots(figsize=(6, 5))
viz.plot_batch(batch, ax)
