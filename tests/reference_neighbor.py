"""Multi-hop neighbour sampling of one or several relations: plain loops."""

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


def _part(values, ptr, batch):
    """The part of a batch in the values of each type."""
    return [
        of_type[start[batch] : start[batch + 1]]
        for of_type, start in zip(values, ptr, strict=True)
    ]


def sample_neighbors(
    graph,
    ends,
    num_nodes,
    seeds,
    fanouts,
    key,
    call_id=0,
    replace=False,
    disjoint=False,
    last=False,
    time_window=None,
    return_edge_id=True,
    num_threads=0,
    seed_time=None,
    max_edges=None,
    seed_ptr=None,
):
    if seed_ptr is not None:
        batches = [
            sample_neighbors(
                *(graph, ends, num_nodes, _part(seeds, seed_ptr, b), fanouts),
                *([key[b]], call_id, replace, disjoint, last, time_window),
                *(return_edge_id, num_threads),
                seed_time=seed_time and _part(seed_time, seed_ptr, b),
            )
            for b in range(len(seed_ptr[0]) - 1)
        ]
        return tuple(map(joined, zip(*batches, strict=True)))
    options = Options(time_window, int(last), replace, disjoint)
    src, dst = ends[::2], ends[1::2]
    fields = len(graph) // len(src) if src else 2
    columns = [graph[field::fields] for field in range(fields)]
    cum_weight, edge_time = columns[2:] or ([], [])
    hops = len(fanouts) // len(src) if src else 0
    relations = make_relations(
        *columns[:2], src, dst, fanouts, cum_weight, edge_time
    )
    nodes = [Nodes() for _ in num_nodes]
    tree_time = []  # a tree for each seed of any type
    for t, sample in enumerate(nodes):
        for i, seed in enumerate(seeds[t]):
            sample.add(seed, len(tree_time) if disjoint else 0)
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
                repeated = nodes[relation.dst].first[v, tree] != col
                root = tree or (col if hop == 0 and repeated else 0)
                root = 0 if key[0][2] == EPOCH_SCOPE else root
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
    counts = joined([s.num_nodes for s in nodes] + num_edges)
    items = [sample.items for sample in nodes]
    if max_edges is not None:
        counts += [0, 0, 0, 0]
        edges = pad(edges, max_edges, (-1, -1, -1))
        items = pad(
            items,
            most_nodes(src, num_nodes, seeds, max_edges, disjoint),
            (-1, -1),
        )
    edges, items = joined(edges), joined(items)
    return (
        [row for row, _, _ in edges],
        [col for _, col, _ in edges],
        [node for node, _ in items],
        [e for _, _, e in edges if return_edge_id],
        [tree for _, tree in items if disjoint],
        counts,
    )


def joined(lists):
    return [item for items in lists for item in items]


def most_nodes(src, num_nodes, seeds, max_edges, disjoint):
    """The most nodes of each type."""
    sizes = []
    for t, known in enumerate(num_nodes):
        new = sum(max_edges[r] for r, rows in enumerate(src) if rows == t)
        new = new if disjoint else min(new, max(known, 1))
        sizes.append(len(seeds[t]) + new)
    return sizes


def pad(lists, sizes, item):
    """Pads lists to given sizes with an item."""
    return [
        items + [item] * (size - len(items))
        for items, size in zip(lists, sizes, strict=True)
    ]
