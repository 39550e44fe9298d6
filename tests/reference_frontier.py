"""One hop of one relation for columns that lie elsewhere: plain loops."""

from tests.reference_columns import Options, Relation, sample_column
from tests.reference_core import Stream, stream_key


def sample_frontier(
    indptr,
    start,
    id,
    k,
    key,
    call_id=0,
    relation=0,
    *,
    root=None,
    cum_weight=None,
    edge_time=None,
    column_time=None,
    time_window=None,
    temporal_strategy=0,
    replace=False,
    num_threads=0,
):
    columns = Relation(indptr, [], 0, 0, [k], cum_weight, edge_time)
    options = Options(time_window, temporal_strategy, replace)
    stream = stream_key(key[0], call_id, relation)
    begin, edge = [0], []
    for i, node in enumerate(id):
        draw = Stream(stream, root[i] if root else 0, node)
        time = column_time[i] if column_time else None
        for e in sample_column(columns, i, k, time, draw, options):
            edge.append(start[i] + e - indptr[i])
        begin.append(len(edge))
    return begin, edge
