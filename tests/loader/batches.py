"""Mini-batches as plain values, to compare passes over loaders."""

import multiprocessing

import torch
from torch_geometric.data import Data, HeteroData

from tests.samplers import graphs
from torch_gsample.loader import NeighborLoader


def graph(num_nodes=60, num_edges=900):
    """A graph with features that identify nodes and edges."""
    return graphs.homogeneous(num_nodes=num_nodes, num_edges=num_edges)


def loader_of(data=None, num_neighbors=(4, 3), **options):
    """A loader that is reproducible, unless the options say otherwise."""
    options = {'batch_size': 16, 'seed': 0} | options
    return NeighborLoader(data or graph(), list(num_neighbors), **options)


def values(batch):
    """All tensors and lists of a batch, as nested plain values."""
    if isinstance(batch, (Data, HeteroData)):
        return values(batch.to_dict())
    if isinstance(batch, dict):
        return {key: values(value) for key, value in batch.items()}
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def run(loader):
    """One pass over a loader."""
    return [values(batch) for batch in loader]


def end_workers():
    """Ends all workers at once.

    Where one fails, or a loader of PyG keeps it, the iterator is in a cycle:
    when the garbage collector finds that, torch waits for each for 5 s.
    """
    for worker in multiprocessing.active_children():
        worker.terminate()


def passes(loader, num_epochs=2):
    """Some passes over a loader."""
    return [run(loader) for _ in range(num_epochs)]
