"""Says whether a sampler's output is right, in plain loops over the graph.

Nothing of the package is used: edges are looked up in the original
``edge_index``, and candidates are found by looking at every edge.
"""

import torch
from scipy.stats import chisquare
from torch_geometric.sampler import HeteroSamplerOutput


def edge_lists(data):
    """Returns {edge type: [(src, dst), ...]} of PyG's data."""
    if not hasattr(data, 'edge_types'):
        return {None: list(zip(*data.edge_index.tolist(), strict=True))}
    return {
        t: list(zip(*store.edge_index.tolist(), strict=True))
        for t, store in data.edge_items()
    }


def by_type(out):
    """Returns a homogeneous output's fields as those of one type."""
    hetero = isinstance(out, HeteroSamplerOutput)

    def lists(value):
        if value is None:
            return None
        value = value if hetero else {None: value}
        return {
            t: v if isinstance(v, list) or v is None else v.tolist()
            for t, v in value.items()
        }

    return {
        name: lists(getattr(out, name))
        for name in (
            'node',
            'row',
            'col',
            'edge',
            'num_sampled_nodes',
            'num_sampled_edges',
            'batch',
        )
    }


def original_edges(sampler, out):
    """Returns {edge type: [edge of the original graph, ...]}."""
    perm = sampler.edge_permutation
    perm = perm if isinstance(perm, dict) else {None: perm}
    edges = by_type(out)['edge']
    return {
        t: [int(e if perm[t] is None else perm[t][e]) for e in ids]
        for t, ids in edges.items()
    }


def assert_consistent(sampler, out, edges):
    """Asserts that local ids, edge ids and the graph's edges agree."""
    fields, ids = by_type(out), original_edges(sampler, out)
    for t, pairs in edges.items():
        src, dst = (None, None) if t is None else (t[0], t[2])
        rows, cols = fields['row'][t], fields['col'][t]
        assert len(rows) == len(cols) == len(ids[t])
        for row, col, e in zip(rows, cols, ids[t], strict=True):
            ends = fields['node'][src][row], fields['node'][dst][col]
            assert pairs[e] == ends
            if fields['batch'] is not None:
                batch = fields['batch']
                assert batch[src][row] == batch[dst][col]
    return fields, ids


def assert_valid(
    sampler,
    out,
    edges,
    seeds,
    fanouts,
    *,
    allowed=lambda edge_type, edge, tree: True,
    replace=False,
    backward=False,
):
    """Asserts all that must hold of a directional sample.

    Args:
        sampler (NeighborSampler): What sampled.
        out (SamplerOutput or HeteroSamplerOutput): What it sampled.
        edges (Dict): From :func:`edge_lists`.
        seeds (Dict[NodeType, List[int]]): The seeds of each type.
        fanouts (Dict[EdgeType, List[int]]): Fan-outs of each edge type.
        allowed (Callable): Whether an edge may be drawn in a tree.
        replace (bool): Whether an edge may be drawn twice by a node.
        backward (bool): Whether a node draws among its out-edges.
    """
    fields, ids = assert_consistent(sampler, out, edges)
    node, batch = fields['node'], fields['batch']
    trees = iter(range(10**6))
    for t in node:
        assert node[t][: len(seeds.get(t, []))] == seeds.get(t, [])
        assert fields['num_sampled_nodes'][t][0] == len(seeds.get(t, []))
        assert sum(fields['num_sampled_nodes'][t]) == len(node[t])
        if batch is not None:
            own = [next(trees) for _ in seeds.get(t, [])]
            assert batch[t][: len(own)] == own
        _assert_unique(node[t], batch and batch[t], len(seeds.get(t, [])))
    num_hops = len(next(iter(fanouts.values()), []))
    begin = {t: 0 for t in edges}
    frontier = {t: (0, len(seeds.get(t, []))) for t in node}
    for hop in range(num_hops):
        met = {t: set() for t in node}
        for t, pairs in edges.items():
            src, dst = (None, None) if t is None else (t[0], t[2])
            near, far = (src, dst) if backward else (dst, src)
            end = begin[t] + fields['num_sampled_edges'][t][hop]
            drawn = {}
            for i in range(begin[t], end):
                ends = fields['col'][t][i], fields['row'][t][i]
                column, other = ends[::-1] if backward else ends
                drawn.setdefault(column, []).append(ids[t][i])
                met[far].add(other)
            begin[t] = end
            assert list(drawn) == sorted(drawn), 'not in canonical order'
            for column in range(*frontier[near]):
                tree = batch[near][column] if batch else None
                candidates = [
                    e
                    for e, pair in enumerate(pairs)
                    if pair[0 if backward else 1] == node[near][column]
                    and allowed(t, e, tree)
                ]
                _assert_drawn(
                    drawn.pop(column, []), candidates, fanouts[t][hop], replace
                )
            assert not drawn, f'hop {hop} draws for nodes of another hop'
        for t in node:
            last = frontier[t][1]
            size = fields['num_sampled_nodes'][t][hop + 1]
            assert met[t] >= set(range(last, last + size))
            assert max(met[t], default=-1) < last + size
            frontier[t] = last, last + size
    return fields, ids


def _assert_unique(node, batch, num_seeds):
    """A node occurs once (a tree), but for seeds that are given twice."""
    keys = list(zip(node, batch or [0] * len(node), strict=True))
    later = keys[num_seeds:]
    assert len(set(later)) == len(later)
    assert not set(later) & set(keys[:num_seeds])


def _assert_drawn(drawn, candidates, fanout, replace):
    assert set(drawn) <= set(candidates)
    if fanout < 0:
        assert sorted(drawn) == candidates
    elif replace:
        assert len(drawn) == (fanout if candidates else 0)
    else:
        assert len(drawn) == min(fanout, len(candidates))
        assert len(set(drawn)) == len(drawn)


def fields_of(out):
    """Returns all of an output as plain values, to compare two of them."""
    metadata = [
        m.tolist() if hasattr(m, 'tolist') else m for m in out.metadata
    ]
    return by_type(out), metadata


def assert_fits(counts, weight=None):
    """Asserts by chi-square that counts are proportional to a weight."""
    counts = torch.as_tensor(counts).double()
    weight = torch.ones_like(counts) if weight is None else weight
    weight = torch.as_tensor(weight).double()
    assert bool((counts[weight == 0] == 0).all())
    counts, weight = counts[weight > 0], weight[weight > 0]
    if counts.numel() > 1:
        expected = counts.sum() * weight / weight.sum()
        assert chisquare(counts, expected).pvalue > 0.001
