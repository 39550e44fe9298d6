"""The bodies of loops and branches of torch: graphs of their own.

What they return may decide a draw of the program, whatever it is there, so
that their values keep each bit.
"""

from collections.abc import Iterator

from torch.fx import GraphModule

from torch_gsample.compiler.ir import needs_gradient, placeholders

#: The passes that need to know nothing of the program around a body.
BODY_PASSES = (
    'eliminate_common',
    'eliminate_dead',
    'fuse_edge_map',
    'fuse_edge_map_reduce',
)


def bodies(module: GraphModule) -> Iterator[GraphModule]:
    """Yields the graphs that a program calls, and those that these call."""
    for part in module.modules():
        if isinstance(part, GraphModule) and part is not module:
            yield part


def may_rewrite(body: GraphModule) -> bool:
    """Whether a body runs as it is: torch traces one that needs a gradient."""
    return not any(map(needs_gradient, placeholders(body.graph)))


def mark_decisive(body: GraphModule) -> None:
    """Notes that all bits of what a body returns count."""
    body.graph.output_node().meta['is_decisive'] = True
