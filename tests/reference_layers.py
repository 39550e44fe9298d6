"""Layers of graphs with node and edge types: plain loops."""

from tests.reference_columns import Options, make_relations, sample_column
from tests.reference_core import Stream, stream_key

EPOCH_SCOPE = -1
NODES = 1  # of the rules of a frontier


def hetero_sample_hops(
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
    call_id,
    *,
    frontier=1,
    return_frontier=False,
    **options,
):
    options = Options(**options)
    relations = make_relations(
        indptr, indices, src, dst, fanouts, cum_weight, edge_time
    )
    columns, tree_time = [], []  # (node, tree); a tree for each seed
    for t, of_type in enumerate(seeds):
        columns.append([])
        for i, seed in enumerate(of_type):
            columns[t].append((seed, len(tree_time) * options.disjoint))
            tree_time.append(seed_time[t][i] if seed_time else None)
    out = [], [], [], [], []
    for hop in range(len(key)):
        after = [list(c) if frontier == NODES else [] for c in columns]
        for r, relation in enumerate(relations):
            stream = stream_key(key[hop][0], call_id[hop], r)
            begin, row, edge = [0], [], []
            for v, tree in columns[relation.dst]:
                root = 0 if key[hop][0][2] == EPOCH_SCOPE else tree
                for e in sample_column(
                    relation,
                    v,
                    relation.fanouts[hop],
                    tree_time[tree],
                    Stream(stream, root, v),
                    options,
                ):
                    row.append(relation.indices[e])
                    edge.append(e)
                    after[relation.src].append((row[-1], tree))
                begin.append(len(edge))
            for items, item in zip(out, (begin, row, edge), strict=False):
                items.append(item)
        if return_frontier or hop + 1 < len(key):
            columns = [list(dict.fromkeys(of_type)) for of_type in after]
            for of_type in columns:
                out[3].append([node for node, _ in of_type])
                out[4].append([t for _, t in of_type if options.disjoint])
    return out
