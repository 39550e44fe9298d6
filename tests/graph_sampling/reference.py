"""The operators of graph_sampling again: plain loops over edge lists."""

import math

import torch

from tests import reference

KEEP, EDGE_ORDER, JUMP_ORDER, JUMP = range(4)
MASK = 2**64 - 1


def uniform(id, seed, call_id):
    return reference.random_uniform([id], [[seed, 0, 0]], call_id)[0]


def mix(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def edge_id(src, dst):
    return mix((mix(src) + dst) & MASK)


def induced(edges, kept, keep_isolated):
    chosen = [e for e, (u, v) in enumerate(edges) if u in kept and v in kept]
    if not keep_isolated:
        kept = {v for e in chosen for v in edges[e]}
    return sorted(kept), chosen


def random_vertex(edges, size, fraction, seed, keep_isolated=False):
    kept = {v for v in range(size) if uniform(v, seed, KEEP) < fraction}
    return induced(edges, kept, keep_isolated)


def random_edge(edges, size, fraction, seed, ids=None):
    chosen = []
    for e, (u, v) in enumerate(edges):
        number = uniform(ids[e] if ids else edge_id(u, v), seed, KEEP)
        if number < fraction:
            chosen.append(e)
    return sorted({v for e in chosen for v in edges[e]}), chosen


def random_vertex_neighborhood(
    edges,
    size,
    fraction,
    direction,
    seed,
    keep_edges='incident',
    keep_isolated=False,
):
    drawn = {v for v in range(size) if uniform(v, seed, KEEP) < fraction}
    touched = [
        e
        for e, (u, v) in enumerate(edges)
        if (direction != 'in' and u in drawn)
        or (direction != 'out' and v in drawn)
    ]
    ends = {v for e in touched for v in edges[e]}
    if keep_edges == 'induced':
        return induced(edges, drawn | ends, keep_isolated)
    return sorted(drawn | ends if keep_isolated else ends), touched


def random_walk(
    edges,
    size,
    fraction,
    walkers,
    jump_probability,
    seed,
    keep_isolated=False,
):
    """One walker after the other; edges that were followed are taken out."""
    target = math.ceil(fraction * size)
    unused = {v: [] for v in range(size)}
    for u, v in edges:
        number = uniform(edge_id(u, v), seed, EDGE_ORDER)
        unused[u].append((number, v))
    for out in unused.values():
        out.sort()
    targets = sorted(
        range(size), key=lambda v: (uniform(v, seed, JUMP_ORDER), v)
    )
    walkers = min(walkers, size)
    place, targets = targets[:walkers], targets[walkers:]
    visited = place[:target]
    step = 0
    while len(visited) < target:
        stuck = []
        for w in range(walkers):
            if uniform(step * walkers + w, seed, JUMP) < jump_probability:
                stuck.append(w)
            elif unused[place[w]]:
                place[w] = unused[place[w]].pop(0)[1]
            else:
                stuck.append(w)
        for w in stuck:
            if targets:
                place[w] = targets.pop(0)
        for v in place:
            if v not in visited and len(visited) < target:
                visited.append(v)
        step += 1
    return induced(edges, set(visited), keep_isolated)


def as_lists(data):
    """The fields of a sampled ``Data``, checked for consistency."""
    node, edge = data.n_id.tolist(), data.e_id.tolist()
    assert data.num_nodes == len(node)
    assert data.edge_index.dtype == torch.int64
    return node, edge
