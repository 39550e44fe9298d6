"""The selection of a column's edges by the operators: plain loops."""

from dataclasses import dataclass

from tests.reference_core import (
    select_weighted_with_replacement,
    select_weighted_without_replacement,
    select_with_replacement,
    select_without_replacement,
)


@dataclass
class Options:
    time_window: int | None = None
    temporal_strategy: int = 0  # 1 takes the latest edges
    replace: bool = False
    disjoint: bool = False
    return_edge_id: bool = True
    num_threads: int = 0


@dataclass
class Relation:
    indptr: list
    indices: list
    src: int
    dst: int
    fanouts: list
    cum_weight: list
    edge_time: list


def make_relations(indptr, indices, src, dst, fanouts, cum_weight, edge_time):
    """One `Relation` per relation, from lists that may be empty."""
    n = len(indptr)
    hops = len(fanouts) // n if n else 0
    fanouts = [fanouts[r * hops : (r + 1) * hops] for r in range(n)]
    columns = indptr, indices, src, dst, fanouts
    optional = cum_weight or [None] * n, edge_time or [None] * n
    return [
        Relation(*fields) for fields in zip(*columns, *optional, strict=True)
    ]


def candidate_edges(relation, v, fanout, seed_time, options):
    """The edges of column `v` allowed for a tree of this time."""
    edges = list(range(relation.indptr[v], relation.indptr[v + 1]))
    time = relation.edge_time
    if not time:
        return edges
    edges = [e for e in edges if time[e] <= seed_time]
    if options.time_window is not None:
        first = seed_time - options.time_window
        edges = [e for e in edges if time[e] >= first]
    if options.temporal_strategy == 1 and fanout >= 0:
        edges = edges[max(len(edges) - fanout, 0) :]
    return edges


def edge_weights(relation, v, edges):
    """The weights of some edges of column `v`, from their running sums."""
    cum, first = relation.cum_weight, relation.indptr[v]
    return [cum[e] - (cum[e - 1] if e > first else 0) for e in edges]


def sample_column(relation, v, fanout, seed_time, draw, options):
    """The sampled edges of column `v`, in slot order.

    If all edges are selected, they have the order of the graph.
    """
    edges = candidate_edges(relation, v, fanout, seed_time, options)
    n, weights, positive = len(edges), None, edges
    if relation.cum_weight:
        weights = edge_weights(relation, v, edges)
        positive = [edges[i] for i in range(n) if weights[i] > 0]
    if fanout < 0 or (not options.replace and len(positive) <= fanout):
        return positive
    if not positive:
        return []
    if weights and options.replace:
        picks = select_weighted_with_replacement(draw, weights, fanout)
    elif weights:
        picks = select_weighted_without_replacement(draw, weights, fanout)
    elif options.replace:
        picks = select_with_replacement(draw, n, fanout)
    else:
        picks = select_without_replacement(draw, n, fanout)
    return [edges[i] for i in picks]
