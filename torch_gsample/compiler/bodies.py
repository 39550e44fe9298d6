"""Bodies of torch's loops and branches: graphs of their own.

Their results may decide a draw of the program, so their values must not change
in any bit.
"""

from collections.abc import Iterator

from torch.fx import GraphModule

from torch_gsample.compiler.ir import needs_gradient, placeholders

#: Passes that need no knowledge of the program around a body.
BODY_PASSES = (
    'eliminate_common',
    'eliminate_dead',
    'fuse_edge_map',
    'fuse_edge_map_reduce',
)


def bodies(module: GraphModule) -> Iterator[GraphModule]:
    """Yields the graphs that a program calls, directly or indirectly."""
    for part in module.modules():
        if isinstance(part, GraphModule) and part is not module:
            yield part


def may_rewrite(body: GraphModule) -> bool:
    """Whether a body runs unchanged: torch traces one with gradients."""
    return not any(map(needs_gradient, placeholders(body.graph)))


def mark_decisive(body: GraphModule) -> None:
    """Marks a body whose results must not change in any bit."""
    body.graph.output_node().meta['is_decisive'] = True
