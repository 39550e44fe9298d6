"""
Every neighbour is equally likely
=================================

A uniform sample of ``k`` of ``d`` neighbours contains each with probability
``k / d``. This page counts.
"""

# %%
# A node with 20 neighbours is sampled 20,000 times: once for each of as many
# seeds in a batch, in which each seed has a sample of its own
# (``disjoint=True``).
import matplotlib.pyplot as plt
import torch
from torch_geometric.data import Data

from torch_gsample.loader import NeighborLoader

degree, fanout, times = 20, 5, 20_000
source = torch.arange(1, degree + 1)
edge_index = torch.stack([source, torch.zeros_like(source)])
data = Data(edge_index=edge_index, num_nodes=degree + 1)
loader = NeighborLoader(
    data,
    [fanout],
    input_nodes=torch.zeros(times, dtype=torch.long),
    batch_size=times,
    disjoint=True,
    seed=12,
)
count = next(iter(loader)).e_id.bincount(minlength=degree)
share = count / times
print(f'expected {fanout / degree:.3f}')
print(f'observed {share.min():.3f} to {share.max():.3f}')

# %%
# Dotted lines are three standard deviations of a binomial away.
probability = fanout / degree
deviation = (probability * (1 - probability) / times) ** 0.5
fig, ax = plt.subplots(figsize=(6, 2.6))
ax.plot(share, 'o', color='#2a788e')
for offset, style in ((0, '-'), (-3 * deviation, ':'), (3 * deviation, ':')):
    ax.axhline(probability + offset, color='#7a7a7a', linestyle=style)
ax.set(xlabel='neighbour', ylabel='share of samples', xticks=[])
assert float((share - probability).abs().max()) < 4 * deviation
