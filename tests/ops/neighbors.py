"""sample_neighbors as tests call it: a graph is a few loose tensors."""

from typing import NamedTuple

import torch

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.ops._check import STRATEGIES

NONE = torch.empty(0, dtype=torch.int64)


class Sampled(NamedTuple):
    """A sample: of each relation or node type, or of the only one."""

    row: list
    col: list
    node: list
    edge: list
    batch: list
    num_nodes: torch.Tensor
    num_edges: torch.Tensor


def typed(out):
    """A sample by relation and node type."""
    return Sampled(
        *out.by_relation(out.row, out.col),
        *out.by_type(out.node),
        *out.by_relation(out.edge),
        *out.by_type(out.batch),
        out.num_nodes,
        out.num_edges,
    )


def make_graph(
    indptr, indices, relations, num_nodes, cum_weight=None, edge_time=None
):
    """A graph that nobody has checked."""
    none = [None] * len(relations)
    fields = indptr, indices, cum_weight or none, edge_time or none
    return Graph(
        tuple(range(len(num_nodes))),
        tuple((src, r, dst) for r, (src, dst) in enumerate(relations)),
        tuple(num_nodes),
        tuple(
            CSC(p, i, num_nodes[src], None, weight, time, checked=True)
            for p, i, weight, time, (src, _) in zip(
                *fields, relations, strict=True
            )
        ),
    )


def sample_typed(
    indptr,
    indices,
    relations,
    num_nodes,
    seeds,
    fanouts,
    *,
    key,
    call_id=0,
    cum_weight=None,
    edge_time=None,
    seed_time=None,
    max_edges=None,
    **options,
):
    """Samples by the Python wrapper."""
    return typed(
        ops.sample_neighbors(
            make_graph(
                *(indptr, indices, relations, num_nodes),
                *(cum_weight, edge_time),
            ),
            seeds,
            fanouts,
            key,
            call_id=call_id,
            sampling=ops.Sampling(**options),
            seed_time=seed_time,
            max_edges=max_edges,
        )
    )


def sample_one(indptr, indices, seeds, fanouts, *, key, call_id=0, **options):
    """Likewise, of one node type and one relation."""
    fields = [options.pop(name, None) for name in ('cum_weight', 'edge_time')]
    seed_time = options.pop('seed_time', None)
    columns = CSC(
        indptr, indices, indptr.numel() - 1, None, *fields, checked=True
    )
    out = typed(
        ops.sample_neighbors(
            Graph.from_csc(columns),
            seeds,
            fanouts,
            key,
            call_id=call_id,
            sampling=ops.Sampling(**options),
            seed_time=seed_time,
        )
    )
    return Sampled(*(of_all[0] for of_all in out))


def operator_arguments(
    graph, seeds, fanouts, key, call_id=0, seed_time=None, max_edges=None, **of
):
    """The arguments of the operator, by position."""
    options = ops.Sampling(**of)
    return (
        list(graph.tensors),
        list(graph.ends),
        list(graph.num_nodes),
        seeds,
        fanouts,
        key,
        call_id,
        options.replace,
        options.disjoint,
        options.temporal_strategy == 'last',
        options.time_window,
        options.return_edge_id,
        options.num_threads,
        seed_time,
        max_edges,
    )


def call_one(
    operator,
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
    max_edges=None,
    temporal_strategy=0,
    **options,
):
    """Calls the operator itself with one node type and one relation."""
    graph = [indptr, indices]
    if cum_weight is not None or edge_time is not None:
        none = indptr.new_empty(0, dtype=torch.int64)
        graph += [none if cum_weight is None else cum_weight]
        graph += [none if edge_time is None else edge_time]
    return operator(
        graph,
        [0, 0],
        [max(indptr.numel() - 1, 0)],
        [seeds],
        fanouts,
        key,
        call_id,
        last=temporal_strategy in (1, STRATEGIES[1]),
        seed_time=None if seed_time is None else [seed_time],
        max_edges=None if max_edges is None else [max_edges],
        **options,
    )
