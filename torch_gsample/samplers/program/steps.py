"""The steps from the seeds of a batch to its sample.

The steps of a batch stop at the run of the program, and continue with its
output. So the programs of several batches can run together.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from torch_gsample import ops, rng
from torch_gsample.graph import Graph
from torch_gsample.samplers.output.attributes import (
    AttributedOutput,
    HeteroAttributedOutput,
    SampledAttributes,
)
from torch_gsample.samplers.program.disjoint import join_subgraphs
from torch_gsample.samplers.program.layers import (
    Edges,
    Nodes,
    check_edges,
    join_layers,
    repeat_seeds,
)
from torch_gsample.samplers.program.returned import Returned


class Run(NamedTuple):
    """Input of one run of a program: seeds by node type, and a key."""

    seeds: Any
    key: Tensor


#: Yields a run, receives the program's output, and returns a sample.
Steps: TypeAlias = Generator[Run, Returned, Any]


def finish(
    batches: Sequence[Steps],
    run: Callable[[list[Run]], list[Returned]],
    numbers: Sequence[rng.BatchNumber] | None = None,
) -> list[Any]:
    """Runs the steps of some batches, whose programs run together.

    Args:
        batches (List[Steps]): The steps of each.
        run (Callable): Runs the program.
        numbers (List[BatchNumber], optional): Their ids; default: that of the
            current scope.
    """
    scopes = [
        nullcontext() if numbers is None else rng.batch_scope(*numbers[i])
        for i in range(len(batches))
    ]
    runs = []
    for steps, scope in zip(batches, scopes, strict=True):
        with scope:
            runs.append(next(steps))
    return [
        _rest(steps, returned)
        for steps, returned in zip(batches, run(runs), strict=True)
    ]


def _rest(steps: Steps, returned: Returned) -> Any:
    try:
        steps.send(returned)
    except StopIteration as end:
        return end.value
    raise AssertionError('a batch runs its program once')


def layer_steps(
    name: str,
    graph: Graph,
    own_edges: bool,
    checks: bool,
    seeds: dict[Any, Tensor],
    key: Tensor,
) -> Steps:
    """Samples layers, or an induced subgraph, from distinct seeds.

    Args:
        name (str): The sampler, for errors.
        graph (Graph): The graph.
        own_edges (bool): Whether the program creates edges of its own.
        checks (bool): Whether to check that edges are the graph's, unless it
            does.
        seeds (Dict[NodeType, torch.Tensor]): int64 ``[num_seeds]`` by type.
        key (torch.Tensor): int64 ``[1, 3]``.
    """
    none = torch.empty(0, dtype=torch.int64)
    seeds = {t: seeds.get(t, none) for t in graph.node_types}
    distinct, place = {}, {}
    for t, ids in seeds.items():
        distinct[t], place[t] = ops.unique_nodes(ids, graph.counts[t])
    returned = yield Run(dict(distinct), key)
    nodes, edges = join_layers(
        name, graph, distinct, returned.layers, returned.induced
    )
    if checks and not own_edges:
        check_edges(name, graph, nodes, edges)
    if any(s.numel() > distinct[t].numel() for t, s in seeds.items()):
        repeat_seeds(graph, seeds, place, nodes, edges)
    induced = returned.induced is not None
    return _output(graph, nodes, edges, returned, own_edges, induced)


def disjoint_steps(
    name: str,
    graph: Graph,
    own_edges: bool,
    checks: bool,
    seeds: dict[Any, Tensor],
    key: Tensor,
) -> Steps:
    """Samples a subgraph for each seed of a homogeneous graph.

    Arguments are those of :func:`layer_steps`.
    """
    ids = seeds[None]
    returned = yield Run({None: ids}, key)
    assert returned.subgraphs is not None
    nodes, edges, batch = join_subgraphs(name, graph, ids, returned.subgraphs)
    if checks and not own_edges:
        check_edges(name, graph, {None: nodes}, {None: edges})
    out = _output(
        graph, {None: nodes}, {None: edges}, returned, own_edges, True
    )
    out.batch = batch
    return out


def _output(
    graph: Graph,
    nodes: dict[Any, Nodes],
    edges: dict[Any, Edges],
    returned: Returned,
    own_edges: bool,
    induced: bool,
) -> Any:
    attributes = SampledAttributes(
        {
            t: {name: value[nodes[t].ids] for name, value in named.items()}
            for t, named in returned.node_attributes.items()
        },
        {
            t: {'edge_weight': e.value}
            for t, e in edges.items()
            if e.value is not None
        },
    )
    fields: dict[str, Any] = dict(
        node={t: n.ids for t, n in nodes.items()},
        row={t: e.row for t, e in edges.items()},
        col={t: e.col for t, e in edges.items()},
        edge={t: e.edge for t, e in edges.items()},
        num_sampled_nodes={t: n.counts for t, n in nodes.items()},
        num_sampled_edges={t: e.counts for t, e in edges.items()},
    )
    if own_edges:
        fields['edge'] = dict.fromkeys(edges)
    if induced:  # induced edges belong to no hop
        fields['num_sampled_edges'] = dict.fromkeys(edges)
    if not graph.is_hetero:
        fields = {name: value[None] for name, value in fields.items()}
        return AttributedOutput(**fields, attributes=attributes)
    if induced:
        fields['num_sampled_edges'] = None
    return HeteroAttributedOutput(**fields, attributes=attributes)
