"""Plans the rows that layers compute: those that later layers read.

The autograd graph of a recorded call tells the number of layers between the
output of a layer and the model's.
"""

from typing import Any, NamedTuple

from torch import Tensor

from torch_gsample.fusion.calls import ALL, Layer, Step
from torch_gsample.fusion.forms import Beyond, PlanError, beyond, blocks_of
from torch_gsample.torch_private import tree_leaves


class Recorded(NamedTuple):
    """A recorded call of a layer: its form, and its autograd nodes."""

    layer: Layer
    nodes: list[Any]
    form: str | None
    note: str
    #: Its edges; None if they are not those of a batch.
    edges: Any
    #: Number of hops that the layer reads.
    depth: int = 1
    #: See `parts_of`.
    parts: tuple[Any, ...] = ()


def plans_of(
    calls: list[Recorded], whole: Any
) -> list[list[Step] | PlanError]:
    """Returns plans of calls, or why there is none; the smallest come first.

    Nothing is known of outputs that no path of the autograd graph reaches.
    Few models read them: the last `HeteroConv` computes all node types.
    """
    out: list[list[Step] | PlanError] = []
    for unreached in (0, ALL):
        try:
            plan: Any = _steps(calls, whole, unreached)
        except PlanError as error:
            plan = error
        if plan not in out:
            out.append(plan)
    return out


def tested_by_both(steps: list[Step], earlier: list[Step]) -> list[Step]:
    """Returns a plan, tested also by the batch of an equal earlier plan."""
    if [x._replace(tested=Beyond()) for x in steps] != [
        x._replace(tested=Beyond()) for x in earlier
    ]:
        return steps
    return [
        x._replace(
            tested=Beyond(*map(any, zip(x.tested, y.tested, strict=True)))
        )
        for x, y in zip(steps, earlier, strict=True)
    ]


def _steps(calls: list[Recorded], whole: Any, unreached: int) -> list[Step]:
    out = []
    levels = _levels(calls, whole, unreached)
    for call, level in zip(calls, levels, strict=True):
        name, form, note, depth = call.layer.name, *call[2:4], call.depth
        if call.edges is None:
            out.append(Step(name, None, form, note, depth, parts=call.parts))
            continue
        # The model was tested at the layer's level, the layer at each.
        shown = beyond(call.edges, level, depth)
        if form in ('block', None):  # ours need no test, others have no block
            tested = Beyond(shown.nodes)
        else:
            rest = [
                beyond(call.edges, hop, depth)[1:]
                for hop in range(blocks_of(call.edges).num_hops)
            ]
            tested = Beyond(shown.nodes, *map(any, zip(*rest, strict=True)))
        out.append(Step(name, level, form, note, depth, tested, call.parts))
    narrows = (
        step.level is not None and step.level < blocks_of(call.edges).num_hops
        for step, call in zip(out, calls, strict=True)
    )
    if not any(narrows):
        notes = [
            f'{call.layer}: {step.note}'
            for call, step in zip(calls, out, strict=True)
            if step.note
        ]
        raise PlanError('; '.join(notes) or 'all rows are read')
    return out


def _levels(calls: list[Recorded], whole: Any, unreached: int) -> list[int]:
    """Returns the number of hops up to which each layer's output is read.

    Of each node of the autograd graph, the most layers on a path from the
    outputs of the model, or from what no path reaches, with ``unreached`` hops
    of it read; layers that run on whole batches read all. A layer has one
    level for its outputs of all node types: that of those which are read.
    """
    roots = [
        x.grad_fn
        for x in tree_leaves(whole)
        if isinstance(x, Tensor) and x.grad_fn is not None
    ]
    costs: dict[Any, int] = {}
    level: dict[Any, int] = dict.fromkeys(roots, 0)
    reached = set(_order(roots))
    for call in calls:
        is_read = not reached.isdisjoint(call.nodes)
        for node in call.nodes:
            costs[node] = ALL if call.form is None else call.depth
            if not is_read:
                level[node] = unreached
    for node in reversed(_order([*roots, *costs])):
        below = level.get(node, 0) + costs.get(node, 0)
        for parent, _ in node.next_functions:
            if parent is not None:
                level[parent] = max(level.get(parent, 0), below)
    return [
        min(max((level.get(n, 0) for n in call.nodes), default=ALL), ALL)
        for call in calls
    ]


def _order(roots: list[Any]) -> list[Any]:
    """Returns the nodes of an autograd graph in topological order."""
    out, seen = [], set()
    stack = [(root, False) for root in roots]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            out.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [
                (p, False) for p, _ in node.next_functions if p is not None
            ]
    return out
