"""
Reproducible samples
====================

A draw is a function of (seed, epoch, batch, hop, node, slot). Threads, workers
and the order of batches do not change it.
"""

# %%
# Two loaders of the same graph: one thread, and two threads.
import matplotlib.pyplot as plt
import torch

from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

data = DebianPackages(homogeneous=True)[0]
options = {'num_neighbors': [10, 5], 'batch_size': 256, 'seed': 12}
one = NeighborLoader(data, num_threads=1, **options)
two = NeighborLoader(data, num_threads=2, **options)


def first(loader: NeighborLoader, epoch: int) -> torch.Tensor:
    """Returns the edges of the first batch of an epoch."""
    loader.set_epoch(epoch)
    return next(iter(loader)).e_id


print('threads change nothing:', first(one, 0).equal(first(two, 0)))
print('epochs differ:         ', not first(one, 0).equal(first(one, 1)))
print('and can be repeated:   ', first(one, 1).equal(first(two, 1)))

# %%
# How much do two epochs share? Packages of low degree keep all of their
# neighbours, so some edges are in every sample.
a, b = first(one, 0), first(one, 1)
shared = torch.isin(a, b).double().mean()
print(f'{shared:.0%} of the edges of epoch 0 are in epoch 1, too')

# %%
# Different epochs show a model more of the graph: distinct edges that the
# first batch has seen, epoch by epoch.
seen, epochs = torch.tensor([], dtype=torch.long), range(10)
sizes = []
for epoch in epochs:
    seen = torch.cat([seen, first(one, epoch)]).unique()
    sizes.append(len(seen))
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(epochs, sizes, 'o-', color='#2a788e', label='distinct edges')
ax.axhline(len(a), color='#999999', label='edges of epoch 0')
ax.set(xlabel='epoch', xticks=epochs, ylim=(0, None))
ax.legend(frameon=False)
