"""
Your own sampler
================

A sampler is a function of a sparse matrix. This one is LADIES without its
weights. A loader takes it as it is.
"""

# %%
# Columns are destinations, rows are sources. ``A[:, seeds]`` has the in-edges
# of the seeds. Rows are drawn in proportion to their sum of squared weights.
import matplotlib.pyplot as plt
import torch

import torch_gsample as gsample
from torch_gsample import viz
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader


def ladies(A, seeds, sizes):
    """Returns a sampled matrix a hop."""
    layers = []
    for size in sizes:
        sub = A[:, seeds]
        weight = (sub**2).sum(dim=1)
        sample = sub.collective_sample(size, weight)
        seeds = sample.row()
        layers.append(sample)
    return layers


# %%
# Run it once. A scope names the draw: (seed, epoch, batch).
data = DebianPackages(homogeneous=True)[0]
A = gsample.SparseSample.from_data(data)
seeds = torch.arange(64)
with gsample.rng.program_scope(gsample.rng.make_key(12, 0, 0)):
    first, second = ladies(A, seeds, [256, 256])
print(len(first.row()), 'and', len(second.row()), 'rows')

# %%
# In a loader:
sampler = gsample.ProgramSampler(data, ladies, [256, 256], seed=12)
loader = NeighborLoader(
    data, sampler=sampler, input_nodes=data.train_mask, batch_size=64
)
print(next(iter(loader)))

# %%
# A smaller batch in rings of hops. A layer has at most 8 rows, however many
# neighbours the seeds have.
sampler = gsample.ProgramSampler(data, ladies, [8, 8], seed=12)
loader = NeighborLoader(
    data, sampler=sampler, input_nodes=data.train_mask, batch_size=16
)
fig, ax = plt.subplots(figsize=(6, 5))
viz.plot_batch(next(iter(loader)), ax)
