"""sample_layers as tests call it: a graph is a few loose tensors."""

from tests.ops.neighbors import NONE, make_graph
from torch_gsample import ops
from torch_gsample.ops._check import STRATEGIES
from torch_gsample.ops.sample_layers import FRONTIERS

_OF_HOPS = ('call_id', 'frontier', 'sorted', 'return_frontier')


def sample_typed_layers(
    indptr,
    indices,
    relations,
    num_nodes,
    seeds,
    fanouts,
    *,
    key,
    cum_weight=None,
    edge_time=None,
    seed_time=None,
    **options,
):
    """Samples by the Python wrapper; nobody checks the graph."""
    graph = indptr, indices, relations, num_nodes, cum_weight, edge_time
    return ops.sample_layers(
        make_graph(*graph),
        seeds,
        fanouts,
        key,
        seed_time=seed_time,
        **{k: options.pop(k) for k in _OF_HOPS if k in options},
        sampling=ops.Sampling(**options),
    )


def sample_plain_layers(
    indptr, indices, seeds, fanouts, *, cum_weight=None, **options
):
    """Likewise, of one node type and one relation."""
    out = sample_typed_layers(
        *([indptr], [indices], [(0, 0)], [indptr.numel() - 1], [seeds]),
        [fanouts],
        cum_weight=None if cum_weight is None else [cum_weight],
        **options,
    )
    return out._replace(
        **{
            name: [of_one for [of_one] in part]
            for name, part in out._asdict().items()
        }
    )


def _graph(*fields):
    """Tensors of each relation; None and nothing at all are missing."""
    given = [of for of in fields if of and any(x is not None for x in of)]
    if fields[3] and not fields[2]:
        given = [*fields[:2], [None] * len(fields[0]), fields[3]]
    return [
        NONE if tensor is None else tensor
        for relation in zip(*given, strict=True)
        for tensor in relation
    ]


def typed_call(
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
    temporal_strategy=0,
    **options,
):
    """The arguments of the operator, of lists by relation and by type."""
    if isinstance(frontier, str):
        frontier = FRONTIERS.index(frontier)
    graph = _graph(indptr, indices, cum_weight, edge_time)
    ends = [end for pair in zip(src, dst, strict=True) for end in pair]
    args = graph, ends, num_nodes, seeds, fanouts, key, call_id, frontier
    options['last'] = temporal_strategy in (1, STRATEGIES[1])
    if seed_time:
        options['seed_time'] = seed_time
    return args, options


def plain_call(
    indptr, indices, seeds, fanouts, key, call_id, cum_weight=None, **options
):
    """Likewise, of one node type and one relation."""
    weights = [] if cum_weight is None else [cum_weight]
    return typed_call(
        *([indptr], [indices], [0], [0], [max(indptr.numel() - 1, 0)]),
        *([seeds], fanouts, weights, [], [], key, call_id),
        **options,
    )
