r"""The cheapest assignment of layouts to derived matrices.

Matrices come in, layouts go out. A matrix is extracted from at most one other,
so matrices form a forest, and dynamic programming from the leaves finds the
least total

.. math::
    \sum_m own_m(x_m) + \sum_{m \text{ of } p} made_m(x_p, x_m)

exactly, in time linear in the number of matrices, and quadratic in the states
of one.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Item:
    """A matrix, and its cost in each state.

    Args:
        name (str): Its name.
        own (Dict[str, float]): Costs of its uses, by state.
        parent (int, optional): Index of the earlier item from which it is
            built.
        made (Dict[Tuple[str, str], float], optional): Cost to build it, by
            the state of its parent and its own. Missing pairs are infeasible.
    """

    name: str
    own: Mapping[str, float]
    parent: int | None = None
    made: Mapping[tuple[str, str], float] = field(default_factory=dict)


def assign(
    items: Sequence[Item],
    allowed: Mapping[int, Collection[str]] | None = None,
) -> tuple[float, list[str]]:
    """Returns the states of least total cost; ties go to the first.

    Args:
        items (Sequence[Item]): Parents before their children.
        allowed (Dict[int, Collection[str]], optional): Allowed states of some
            items, by index.

    Returns:
        Tuple[float, List[str]]: The cost, infinite if infeasible, and the
        state of each item.

    Example:
        >>> whole = Item('graph', {'csc': 0.0, 'csc>csr': 3.0})
        >>> costs = {('csc', 'csc'): 9.0, ('csc>csr', 'csr'): 1.0}
        >>> rows = Item('rows', {'csc': 0.0, 'csr': 0.0}, 0, costs)
        >>> assign([whole, rows])
        (4.0, ['csc>csr', 'csr'])
    """
    allowed = allowed or {}
    # The cost of each item by state, including all derived items.
    total = [
        {s: c for s, c in item.own.items() if s in allowed.get(i, item.own)}
        for i, item in enumerate(items)
    ]
    for i in reversed(range(len(items))):
        over = items[i].parent
        if over is not None:
            for state in total[over]:
                total[over][state] += _least(items[i], state, total[i])[0]
    cost, found = 0.0, list[str]()
    for item, costs in zip(items, total, strict=True):
        outer = None if item.parent is None else found[item.parent]
        least, chosen = _least(item, outer, costs)
        cost += least if item.parent is None else 0.0
        found.append(chosen)
    return cost, found


def _least(
    item: Item, outer: str | None, costs: Mapping[str, float]
) -> tuple[float, str]:
    """Returns the least cost of an item for its parent's state."""
    least = (math.inf, '')
    for state, cost in costs.items():
        if outer is not None:
            cost += item.made.get((outer, state), math.inf)
        if cost < least[0]:
            least = cost, state
    return least
