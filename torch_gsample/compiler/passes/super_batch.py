"""Samples several batches in one run of a program.

Before (``seeds`` is marked as the input that differs between batches)::

    seeds: int64[?]
    indptr: int64[5]
    indices: int64[9]
    %3 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %4 = getitem(%3, 1): int64[?]
    return (%4)

After::

    seeds: int64[?]
    indptr: int64[5]
    indices: int64[9]
    batch_ptr: int64[?]
    %4 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %5 = getitem(%4, 0): int64[?]
    %6 = getitem(%4, 1): int64[?]
    %7 = !ptr_of_pointers(%5, batch_ptr): int64[?]
    %8 = !lengths(%7): NoneType
    %9 = !split(%6, %8): NoneType
    return (%9)

Values of the batches are concatenated, with the start of each batch in every
value (:mod:`.super_batch.values`), and each draw has a key per batch. A batch
has the results of its own run, whatever the other batches are. Small batches
then share the overhead of operators (gSampler, section 4.4).

A pure operator without a rule is called for each batch, and its results are
concatenated (:mod:`.super_batch.each_batch`). A second note names those.

Not when: a node draws by torch's generator, changes an argument or is no
operator, or something requires a gradient, as the model then changes the
sampling between two batches. The note names the node, and the batches run one
by one.
"""

import contextlib
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    example,
    is_part,
    is_pure,
    is_size,
    needs_gradient,
    placeholders,
)
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.super_batch import (  # rules register
    draw_rules,  # noqa: F401
    index_rules,  # noqa: F401
    matrix_rules,  # noqa: F401
    order_rules,  # noqa: F401
    segments,
    stored_rules,  # noqa: F401
)
from torch_gsample.compiler.super_batch.each_batch import (
    each_batch,
    each_number,
    split,
)
from torch_gsample.compiler.super_batch.torch_rules import (
    is_pointwise,
    pointwise,
    rule_of,
)
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Parts,
    Rewrite,
    Size,
    Value,
    args_of,
)
from torch_gsample.rng import current_program


def super_batch(graph: Graph) -> list[str] | None:
    """Rewrites a program if inputs request it; see :func:`is_super_batched`.

    ``node.meta['batched']`` of an input is whether batches differ in it.
    """
    asked = [n for n in placeholders(graph) if 'batched' in n.meta]
    if not asked or is_super_batched(graph):
        return None
    marked = [node for node in asked if node.meta['batched']]
    eliminate_dead(graph)  # needs no rules
    trained = next(filter(needs_gradient, graph.nodes), None)
    if trained is not None:
        return [f'{trained} is trained between batches: one by one']
    rewrite = Rewrite(graph)
    try:
        _begin(rewrite, marked)
        _rewrite(rewrite)
    except NoRule as error:
        for node in reversed(rewrite.made):
            graph.erase_node(node)
        return [f'no rule for {error}: batches run one by one']
    each = ', '.join(dict.fromkeys(rewrite.each))
    more = [f'called for each batch: {each}'] if each else []
    return ['several batches run together', *more]


def is_super_batched(graph: Graph) -> bool:
    """Whether a program takes several batches and returns lists of results.

    Its inputs are those of one batch, except for the marked one, which is
    concatenated, followed by int64 ``[B + 1]``, the start of each batch.
    """
    return any(n.name == 'batch_ptr' for n in placeholders(graph))


def _begin(rewrite: Rewrite, marked: list[Node]) -> None:
    """Records the values of the inputs."""
    graph = rewrite.graph
    if len(marked) > 1 or any(example(n).dim() != 1 for n in marked):
        raise NoRule(f'inputs {marked}')
    inputs = list(placeholders(graph))
    if not marked and any(map(is_size, inputs)):
        raise NoRule('a program that takes only the number of seeds')
    with graph.inserting_after(inputs[-1]):
        ptr = graph.placeholder('batch_ptr')
    rewrite.made.append(ptr)
    tensor = next(v for v in map(example, inputs) if isinstance(v, Tensor))
    like = tensor.new_empty(2, dtype=torch.int64)
    ptr.meta.update(example_value=like, is_argument=True)
    rewrite.first = Axis(ptr)
    sizes = {str(example(node).shape[0]) for node in marked}
    for node in inputs:
        if node in marked:
            rewrite.known[node] = Value(node, rewrite.first)
        elif is_size(node) and str(example(node)) in sizes:
            rewrite.known[node] = Size(rewrite.first)
        else:
            rewrite.known[node] = Value(node)


def _rewrite(rewrite: Rewrite) -> None:
    graph = rewrite.graph
    nodes = [n for n in graph.nodes if n.op != 'placeholder']
    for node in nodes:
        with graph.inserting_before(node):
            if node.op == 'output':
                results = _results(rewrite, node)
            else:
                try:
                    rewrite.known[node] = _become(rewrite, node)
                except NoRule as error:
                    raise NoRule(f'{node.format_node()} ({error})') from None
    graph.output_node().args = (results,)
    kept = {v.node for v in rewrite.known.values() if isinstance(v, Value)}
    for node in reversed(nodes[:-1]):
        if node not in kept or not node.users:
            graph.erase_node(node)
    for node in reversed(rewrite.made):
        kept_always = (
            node.op == 'placeholder',
            node.target is current_program,
        )
        if not node.users and not any(kept_always):
            graph.erase_node(node)


def _become(rewrite: Rewrite, node: Node) -> Any:
    """Returns the value of a node. In-place changes have no rule."""
    inputs = [rewrite.known[n] for n in node.all_input_nodes]
    if is_part(node):
        return _part(rewrite, node)
    constant = all(isinstance(v, Value) and v.is_constant for v in inputs)
    draws = constant and any(v.node in rewrite.numbers for v in inputs)
    rule = rule_of(node.target)
    if is_size(node) and not constant:
        return _size(rewrite, node, rule)
    is_fixed = (
        is_pure(node) or is_pointwise(node) or node.target is torch.tensor
    )
    if constant and not draws and is_fixed:
        same = all(rewrite[n].node is n for n in node.all_input_nodes)
        return Value(node if same else rewrite.copy(node))
    try:
        if rule is not None:
            return rule(rewrite, node)
        if is_pointwise(node):
            return pointwise(rewrite, node)
        raise NoRule('its operator is unknown')
    except NoRule as error:
        with contextlib.suppress(NoRule):
            return each_batch(rewrite, node)
        raise error


def _size(rewrite: Rewrite, node: Node, rule: Any) -> Any:
    """Returns a size, by its rule or by a vector of that length."""
    try:
        if rule is not None:
            return rule(rewrite, node)
    except NoRule:
        pass
    axis = rewrite.axis_of(example(node))
    if axis is not None:
        return Size(axis)
    try:
        return each_number(rewrite, node)
    except NoRule:
        return Parts(())  # raises an error at its use


def _part(rewrite: Rewrite, node: Node) -> Any:
    source: Any = node.args[0]
    value = rewrite.known[source]
    if not isinstance(value, Parts):
        same = value.node is source
        return Value(node if same else rewrite.copy(node))
    return value.values[node.args[1]]  # type: ignore[index]


# Results #####################################################################


def _results(rewrite: Rewrite, node: Node) -> tuple[Any, ...]:
    """Replaces the results with lists of one element per batch."""
    [returned] = args_of(node)
    return tuple(_result(rewrite, item) for item in returned)


def _result(rewrite: Rewrite, item: Any) -> Node:
    ptr = rewrite.pointers
    if not isinstance(item, Node):
        return rewrite.call(segments.give, item, ptr)
    value = rewrite.known[item]
    if isinstance(value, Value) and value.is_constant:
        given = item.op == 'placeholder'
        share = segments.give if given else segments.share
        return rewrite.call(share, value.node, ptr)
    try:
        return split(rewrite, value)
    except NoRule:
        raise NoRule(f'{item} (it is returned)') from None
