"""Sampling programs for the tests: functions of a module, to be picklable."""

import torch

from torch_gsample import SparseSample


def sage(A, seeds, fanouts, replace=False):
    """Neighbour sampling: each node draws once, at its first visit."""
    layers, known = [], seeds
    for k in fanouts:
        layers.append(A[:, seeds].individual_sample(k, replace=replace))
        rows = layers[-1].row()
        seeds = rows[~torch.isin(rows, known)]
        known = torch.cat([known, seeds])
    return layers


def sage_again(A, seeds, fanouts):
    """As in the papers: nodes draw again at each visit."""
    layers = []
    for k in fanouts:
        layers.append(A[:, seeds].individual_sample(k))
        seeds = layers[-1].nodes()
    return layers


def joined(A, seeds, fanouts):
    """The same, as the output of a sampler."""
    return SparseSample.to_sampler_output(sage_again(A, seeds, fanouts))


def typed_sage(A, seeds, fanouts):
    """The same on relations, with different draws."""
    layers, known = [], dict(seeds)
    for hop in range(len(next(iter(fanouts.values())))):
        layer = {
            t: A[t][:, seeds[t[2]]].individual_sample(fanouts[t][hop])
            for t in fanouts
        }
        layers.append(layer)
        for node_type in seeds:
            rows = [m.row() for t, m in layer.items() if t[0] == node_type]
            rows = torch.cat([known[node_type][:0], *rows]).unique()
            seeds[node_type] = rows[~torch.isin(rows, known[node_type])]
            known[node_type] = torch.cat([known[node_type], seeds[node_type]])
    return layers


def layer_wise(A, seeds, fanouts):
    """Rows that all columns share, and values that add up to 1."""
    layers = []
    for k in fanouts:
        matrix = A[:, seeds]
        weight = (matrix**2).sum(dim=1)
        sample = matrix.collective_sample(k, weight)
        sample = sample.div(sample.sum(dim=0), dim=0)
        layers.append(sample)
        seeds = sample.nodes()
    return layers


def by_row(A, seeds, fanouts):
    """All in-edges, stored row by row."""
    rows = A[:, seeds].row()
    return [A.T[seeds, :][:, rows].T]


def induced(A, seeds, fanouts):
    """All edges between the nodes of a neighbourhood."""
    for k in fanouts:
        seeds = A[:, seeds].individual_sample(k).nodes()
    return A[seeds, seeds]


def typed_induced(A, seeds, fanouts):
    """All edges between the seeds of each type and node 0."""
    nodes = {
        t: torch.cat([s, torch.zeros(1).long()]) for t, s in seeds.items()
    }
    nodes = {t: ids.unique() for t, ids in nodes.items()}
    return {t: m[nodes[t[0]], nodes[t[2]]] for t, m in A.items()}


def with_degree(A, seeds, fanouts):
    """Layers, and how many in-edges each node has."""
    return sage(A, seeds, fanouts), {'degree': A.degree(dim=0)}


def typed_with_number(A, seeds, fanouts):
    """Layers, and the number of each item."""
    number = torch.arange(15.0)
    return typed_sage(A, seeds, fanouts), {'item': {'number': number}}


def ring(A, seeds, num_nodes):
    """Edges that the graph need not have: each node from the next one."""
    cols = torch.arange(seeds.numel())
    rows = (seeds + 1) % num_nodes
    value = torch.full((seeds.numel(),), 0.5)
    matrix = type(A).from_coo(rows, cols, value, (num_nodes, seeds.numel()))
    matrix.col_ids = seeds
    return [matrix]
