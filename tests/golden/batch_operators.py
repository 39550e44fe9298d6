"""What golden tests call of operators on several batches."""

from typing import Any

from tests.golden.graphs import Graph, columns
from tests.golden.operators import KEYS, seeds_of
from torch_gsample import CSC, ops
from torch_gsample import Graph as SampledGraph


def sample_batches(graph: Graph, fanouts: list[int]) -> dict[str, Any]:
    """Samples of three batches of a graph of one relation."""
    csc = columns(graph)
    whole = CSC(csc.indptr, csc.indices, csc.indptr.numel() - 1, checked=True)
    [nodes] = seeds_of(graph, 9)
    seeds = [nodes, nodes[:0], nodes[:4]]
    outs = ops.sample_batches(
        SampledGraph.from_csc(whole), seeds, fanouts, KEYS
    )
    return {str(b): list(out[:6]) for b, out in enumerate(outs)}


def sample_layer_batches(graph: Graph, fanouts: list[int]) -> dict[str, Any]:
    """Layers of three batches of a graph of one relation."""
    csc = columns(graph)
    whole = CSC(csc.indptr, csc.indices, csc.indptr.numel() - 1, checked=True)
    [nodes] = seeds_of(graph, 9)
    outs = ops.sample_layer_batches(
        SampledGraph.from_csc(whole),
        [nodes, nodes[:0], nodes[:4]],
        fanouts,
        [KEYS] * len(fanouts),
    )
    return {str(b): list(out[:4]) for b, out in enumerate(outs)}
