"""The operators of several batches again: those of one, batch by batch."""

import itertools

from tests.reference_matrix import sample_nodes, slice_rows, unique_nodes


def spans(ptr):
    return itertools.pairwise(ptr)


def joined(parts):
    return list(itertools.chain.from_iterable(parts))


def pointers(parts):
    return [0, *itertools.accumulate(map(len, parts))]


def slice_rows_segments(
    indptr,
    indices,
    num_rows,
    rows,
    row_ptr,
    cols,
    col_ptr,
    whole=True,
    *,
    num_threads=0,
):
    begin, index, edge = [0], [], []
    for (r, r_end), (c, c_end) in zip(
        spans(row_ptr), spans(col_ptr), strict=True
    ):
        if cols is None:
            part = range(len(indptr) - 1) if whole else range(c, c_end)
        else:
            part = cols[c:c_end]
        out = slice_rows(indptr, indices, num_rows, rows[r:r_end], part)
        begin += [begin[-1] + place for place in out[0][1:]]
        index += [r + place for place in out[1]]
        edge += out[2]
    return begin, index, edge


def sample_nodes_segments(
    num_nodes,
    k,
    key,
    call_id=0,
    *,
    ptr=None,
    cum_weight=None,
    replace=False,
    device_of=None,
):
    parts = []
    for batch, row in enumerate(key):
        first, end = (0, num_nodes) if ptr is None else ptr[batch : batch + 2]
        weight = None
        if cum_weight is not None:
            place = 0 if ptr is None else batch
            word = cum_weight[num_nodes + place // 64]
            weight = [*cum_weight[first:end], word >> place % 64 & 1]
        part = sample_nodes(
            end - first,
            k,
            [row],
            call_id,
            cum_weight=weight,
            replace=replace,
        )
        parts.append([first + node for node in part])
    return joined(parts), pointers(parts)


def unique_nodes_segments(id, ptr, num_nodes, sorted=False):
    nodes, local = [], []
    for first, end in spans(ptr):
        before = sum(map(len, nodes))
        node, places = unique_nodes(id[first:end], num_nodes, sorted)
        nodes.append(node)
        local += [before + place for place in places]
    return joined(nodes), local, pointers(nodes)


def positive_weights_segments(weight, ptr):
    from tests.reference import cumulate_weights

    parts = [
        [i for i in range(first, end) if weight[i] > 0]
        for first, end in spans(ptr)
    ]
    index, out = joined(parts), pointers(parts)
    return index, cumulate_weights(out, [weight[i] for i in index]), out
