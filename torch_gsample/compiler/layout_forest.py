"""The cheapest assignment of layouts to matrices that are made of each other.

Matrices in, layouts out. A matrix is extracted from at most one other, so they
are a forest, and dynamic programming from its leaves finds the least total

.. math::
    \\sum_m own_m(x_m) + \\sum_{m \\text{ of } p} made_m(x_p, x_m)

exactly, in time linear in matrices, and quadratic in the states of one.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Item:
    """A matrix, and what it costs in each state.

    Args:
        name (str): What it is called.
        own (Dict[str, float]): Costs of its uses, by state.
        parent (int, optional): The number of an item before it, which it is
            made of.
        made (Dict[Tuple[str, str], float], optional): What it costs to make
            it, by the state of its parent and its own. Pairs that are left
            out are impossible.
    """

    name: str
    own: Mapping[str, float]
    parent: int | None = None
    made: Mapping[tuple[str, str], float] = field(default_factory=dict)


def assign(
    items: Sequence[Item],
    allowed: Mapping[int, Collection[str]] | None = None,
) -> tuple[float, list[str]]:
    """Finds the states of least total cost; of equal ones, the first.

    Args:
        items (Sequence[Item]): Parents before what is made of them.
        allowed (Dict[int, Collection[str]], optional): The only states that
            some items may have, by number.

    Returns:
        Tuple[float, List[str]]: The cost, infinite where nothing is possible,
        and the state of each item.

    Example:
        >>> whole = Item('graph', {'csc': 0.0, 'csc>csr': 3.0})
        >>> costs = {('csc', 'csc'): 9.0, ('csc>csr', 'csr'): 1.0}
        >>> rows = Item('rows', {'csc': 0.0, 'csr': 0.0}, 0, costs)
        >>> assign([whole, rows])
        (4.0, ['csc>csr', 'csr'])
    """
    allowed = allowed or {}
    below: list[dict[str, float]] = []
    for i, item in enumerate(items):
        states = allowed.get(i, item.own)
        below.append({s: c for s, c in item.own.items() if s in states})
    best: list[dict[str | None, tuple[float, str]]] = [{} for _ in items]
    for i in reversed(range(len(items))):
        item = items[i]
        over = [None] if item.parent is None else list(items[item.parent].own)
        for outer in over:
            costs = {
                s: cost + (0.0 if outer is None else _made(item, outer, s))
                for s, cost in below[i].items()
            }
            state = min(costs, key=costs.__getitem__, default='')
            best[i][outer] = costs.get(state, math.inf), state
            if outer in (kept := _of_parent(below, item)):
                kept[outer] += best[i][outer][0]
    found: list[str] = []
    for i, item in enumerate(items):
        outer = None if item.parent is None else found[item.parent]
        found.append(best[i].get(outer, (math.inf, ''))[1])
    roots = [i for i, item in enumerate(items) if item.parent is None]
    return sum(best[i][None][0] for i in roots), found


def _of_parent(
    below: list[dict[str, float]], item: Item
) -> dict[str | None, float]:
    """The costs of what an item is made of, which hold those of the item."""
    return {} if item.parent is None else below[item.parent]  # type: ignore


def _made(item: Item, outer: str, state: str) -> float:
    return item.made.get((outer, state), math.inf)
