"""Graph types of programs that units do not have."""

from collections.abc import Iterable

from torch_gsample.codegen.unit import DESTINATION, PARAMETER, join

#: The graph type of a vertex's edges of one type, between edge and vertex.
RELATION = 'T'

#: The graph types of an out-neighbour and an out-edge: in the unit that
#: aggregates them, over edges in the other direction, sources and edges.
OUT_NEIGHBOR, OUT_EDGE = 'O', 'F'

MIXED = (
    'values of in-edges and of out-edges cannot be combined: aggregate those '
    'of one direction first'
)


def joined(kinds: Iterable[str]) -> str | None:
    """Returns the graph type of a value computed from others.

    In-edges and out-edges have no common type.
    """
    found = set(kinds) - {PARAMETER}
    if not found & {OUT_NEIGHBOR, OUT_EDGE}:
        return join(found)
    if found - {OUT_NEIGHBOR, OUT_EDGE, DESTINATION}:
        return None
    return OUT_NEIGHBOR if found == {OUT_NEIGHBOR} else OUT_EDGE
