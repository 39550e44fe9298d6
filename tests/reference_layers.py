"""References of layers: plain loops."""

from itertools import accumulate, chain

from tests.reference_columns import Options, make_relations, sample_column
from tests.reference_core import Stream, stream_key

EPOCH_SCOPE = -1


def next_columns(rule, columns, seen, rows):
    """The columns of the next hop, and the nodes of all hops."""
    before = {'row': [], 'unseen': seen}.get(rule, columns)
    seen = list(dict.fromkeys(before + rows))
    skipped = len(before) if rule in ('new', 'unseen') else 0
    return seen[skipped:], seen


def joined(batches):
    """The layers of all batches, and where the columns of each begin."""
    indptr, row, edge, node, begins = [], [], [], [], []
    for of_batches in zip(*(out[0] for out in batches), strict=True):
        indptr.append([0])
        for begin in of_batches:
            first = indptr[-1][-1]
            indptr[-1] += [first + i for i in begin[1:]]
    for field, joint in ((1, row), (2, edge), (3, node)):
        for of_batches in zip(*(out[field] for out in batches), strict=True):
            joint.append([*chain(*of_batches)])
            if field == 3:
                begins.append([0, *accumulate(map(len, of_batches))])
    return indptr, row, edge, node, begins


def sample_layers(
    graph,
    ends,
    num_nodes,
    seeds,
    fanouts,
    key,
    call_id,
    frontier=1,
    sorted=False,
    replace=False,
    disjoint=False,
    last=False,
    time_window=None,
    return_frontier=False,
    num_threads=0,
    seed_time=None,
    ptr=None,
):
    if ptr is not None:
        batches = [
            sample_layers(
                *(graph, ends, num_nodes),
                [s[p[b] : p[b + 1]] for s, p in zip(seeds, ptr, strict=True)],
                *(fanouts, [[k[b]] for k in key], call_id, frontier, sorted),
                *(replace, disjoint, last, time_window, return_frontier),
            )
            for b in range(len(ptr[0]) - 1)
        ]
        return joined(batches)
    options = Options(time_window, int(last), replace, disjoint)
    rule = ('row', 'nodes', 'new', 'unseen', 'edges', 'walk')[frontier]
    fields = len(graph) // max(len(ends) // 2, 1)
    of_field = [graph[i::fields] for i in range(fields)]
    indptr, indices, cum_weight, edge_time = ([*of_field] + [[]] * 4)[:4]
    relations = make_relations(
        indptr, indices, ends[::2], ends[1::2], fanouts, cum_weight, edge_time
    )
    columns, tree_time = [], []  # (node, tree); a tree for each seed
    for t, of_type in enumerate(seeds):
        columns.append([])
        for i, seed in enumerate(of_type):
            columns[t].append((seed, len(tree_time) * disjoint))
            tree_time.append(seed_time[t][i] if seed_time else None)
    out, seen = ([], [], [], [], []), [list(c) for c in columns]
    hops = len(fanouts) // max(len(relations), 1)
    for hop in range(hops):
        rows, moved = [[] for _ in columns], [*chain(*columns)]
        for r, relation in enumerate(relations):
            own = len(key) != hops  # a relation draws as if it were alone
            i = hop * len(relations) + r if own else hop
            stream = stream_key(key[i][0], call_id[i], 0 if own else r)
            begin, row, edge = [0], [], []
            for v, tree in columns[relation.dst]:
                root = 0 if key[i][0][2] == EPOCH_SCOPE else tree
                for e in sample_column(
                    relation,
                    v,
                    relation.fanouts[hop],
                    tree_time[tree] if seed_time else None,
                    Stream(stream, root, v),
                    options,
                ):
                    row.append(relation.indices[e])
                    edge.append(e)
                    rows[relation.src].append((row[-1], tree))
                begin.append(len(edge))
                if rule == 'walk' and len(edge) > begin[-2]:
                    moved[len(begin) - 2] = (row[-1], tree)
            for items, item in zip(out, (begin, row, edge), strict=False):
                items.append(item)
        if return_frontier or hop + 1 < hops:
            for t, of_type in enumerate(columns):
                if rule in ('edges', 'walk'):
                    columns[t] = rows[t] if rule == 'edges' else moved
                else:
                    columns[t], seen[t] = next_columns(
                        rule, of_type, seen[t], rows[t]
                    )
                columns[t].sort() if sorted else None
                out[3].append([node for node, _ in columns[t]])
                if disjoint:
                    out[4].append([tree for _, tree in columns[t]])
    return out
