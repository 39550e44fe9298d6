"""Multi-hop neighbour sampling of one relation or several: plain loops."""

from tests.reference_columns import Options, make_relations, sample_column
from tests.reference_core import Stream, stream_key

EPOCH_SCOPE = -1


class Nodes:
    """The sampled nodes of one type; a local id is a position in `items`."""

    def __init__(self):
        self.items = []  # (node, tree)
        self.first = {}  # (node, tree) -> local id of its first occurrence
        self.frontier = range(0)
        self.num_nodes = []

    def add(self, node, tree):
        self.first.setdefault((node, tree), len(self.items))
        self.items.append((node, tree))

    def local_id(self, node, tree):
        if (node, tree) not in self.first:
            self.add(node, tree)
        return self.first[node, tree]

    def end_hop(self):
        self.frontier = range(self.frontier.stop, len(self.items))
        self.num_nodes.append(len(self.frontier))


def hetero_neighbor_sample(
    indptr,
    indices,
    src,
    dst,
    num_nodes,
    seeds,
    fanouts,
    cum_weight,
    edge_time,
    seed_time,
    key,
    call_id=0,
    **options,
):
    options = Options(**options)
    hops = len(fanouts) // len(indptr) if indptr else 0
    relations = make_relations(
        indptr, indices, src, dst, fanouts, cum_weight, edge_time
    )
    nodes = [Nodes() for _ in num_nodes]
    tree_time = []  # a tree for each seed of any type
    for t, sample in enumerate(nodes):
        for i, seed in enumerate(seeds[t]):
            sample.add(seed, len(tree_time) if options.disjoint else 0)
            tree_time.append(seed_time[t][i] if seed_time else None)
        sample.end_hop()
    edges = [[] for _ in relations]  # (row, col, edge)
    num_edges = [[] for _ in relations]
    for hop in range(hops):
        for r, relation in enumerate(relations):
            stream = stream_key(key[0], call_id + hop, r)
            before = len(edges[r])
            for col in nodes[relation.dst].frontier:
                v, tree = nodes[relation.dst].items[col]
                root = 0 if key[0][2] == EPOCH_SCOPE else tree
                for e in sample_column(
                    relation,
                    v,
                    relation.fanouts[hop],
                    tree_time[tree],
                    Stream(stream, root, v),
                    options,
                ):
                    row = nodes[relation.src].local_id(
                        relation.indices[e], tree
                    )
                    edges[r].append((row, col, e))
            num_edges[r].append(len(edges[r]) - before)
        for sample in nodes:
            sample.end_hop()
    return sample_outputs(nodes, edges, num_edges, options)


def sample_outputs(nodes, edges, num_edges, options):
    return (
        [[row for row, _, _ in e] for e in edges],
        [[col for _, col, _ in e] for e in edges],
        [[node for node, _ in sample.items] for sample in nodes],
        [[e for _, _, e in rel if options.return_edge_id] for rel in edges],
        [
            [tree for _, tree in sample.items if options.disjoint]
            for sample in nodes
        ],
        [sample.num_nodes for sample in nodes],
        num_edges,
    )


def neighbor_sample(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    call_id=0,
    *,
    cum_weight=None,
    edge_time=None,
    seed_time=None,
    **options,
):
    """One node type and one relation."""
    out = hetero_neighbor_sample(
        [indptr],
        [indices],
        [0],
        [0],
        [len(indptr) - 1],
        [seeds],
        fanouts,
        [cum_weight],
        [edge_time],
        [seed_time] if seed_time is not None else [],
        key,
        call_id,
        **options,
    )
    return tuple(of_all[0] for of_all in out)


def hetero_neighbor_sample_padded(
    indptr,
    indices,
    src,
    dst,
    num_nodes,
    seeds,
    fanouts,
    cum_weight,
    edge_time,
    seed_time,
    key,
    max_edges,
    call_id=0,
    **options,
):
    """The same, with -1 where nothing is, and no fault."""
    graphs = indptr, indices, src, dst, num_nodes, seeds, fanouts
    row, col, node, edge, batch, *counts = hetero_neighbor_sample(
        *graphs, cum_weight, edge_time, seed_time, key, call_id, **options
    )
    disjoint = options.get('disjoint', False)
    edge_id = options.get('return_edge_id', True)
    max_nodes = []
    for t, known in enumerate(num_nodes):
        new = sum(max_edges[r] for r, rows in enumerate(src) if rows == t)
        new = new if disjoint else min(new, max(known, 1))
        max_nodes.append(len(seeds[t]) + new)

    def pad(lists, sizes, wanted=True):
        return [
            items + [-1] * (size - len(items)) if wanted else []
            for items, size in zip(lists, sizes, strict=True)
        ]

    return (
        pad(row, max_edges),
        pad(col, max_edges),
        pad(node, max_nodes),
        pad(edge, max_edges, edge_id),
        pad(batch, max_nodes, disjoint),
        *counts,
        [0, 0, 0, 0],
    )


def neighbor_sample_padded(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    max_edges,
    call_id=0,
    *,
    cum_weight=None,
    edge_time=None,
    seed_time=None,
    **options,
):
    """One node type and one relation."""
    *out, fault = hetero_neighbor_sample_padded(
        [indptr],
        [indices],
        [0],
        [0],
        [len(indptr) - 1],
        [seeds],
        fanouts,
        [cum_weight],
        [edge_time],
        [seed_time] if seed_time is not None else [],
        key,
        [max_edges],
        call_id,
        **options,
    )
    return *[of_all[0] for of_all in out], fault[:3]
