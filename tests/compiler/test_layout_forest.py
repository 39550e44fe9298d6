"""Layouts of a forest of matrices: the least cost is found."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_gsample.compiler.layout_forest import Item, assign

STATES = 'csc', 'csr', 'coo'
COST = st.integers(0, 20).map(float)


@st.composite
def forests(draw):
    items = []
    for i in range(draw(st.integers(1, 6))):
        states = STATES[: draw(st.integers(1, 3))]
        own = {s: draw(COST) for s in states}
        parent = draw(st.none() | st.integers(0, i - 1)) if i else None
        made = {}
        if parent is not None:
            pairs = itertools.product(items[parent].own, states)
            made = {p: draw(COST) for p in pairs if draw(st.integers(0, 4))}
        items.append(Item(str(i), own, parent, made))
    number = st.integers(0, len(items) - 1)
    allowed = draw(st.dictionaries(number, st.sets(st.sampled_from(STATES))))
    return items, allowed


def total(items, states):
    cost = 0.0
    for item, state in zip(items, states, strict=True):
        cost += item.own[state]
        if item.parent is not None:
            pair = states[item.parent], state
            cost += item.made.get(pair, math.inf)
    return cost


def every(items, allowed):
    """All assignments, and their costs."""
    choices = [
        [s for s in item.own if s in allowed.get(i, item.own)]
        for i, item in enumerate(items)
    ]
    return {x: total(items, x) for x in itertools.product(*choices)}


@settings(deadline=None, max_examples=500)
@given(forests())
def test_no_assignment_costs_less(forest):
    items, allowed = forest
    costs = every(items, allowed)
    least = min(costs.values(), default=math.inf)
    cost, states = assign(items, allowed)
    assert cost == least
    if cost < math.inf:
        assert costs[tuple(states)] == cost


@pytest.mark.parametrize('children', [1, 2])
def test_matrices_together_pay_for_one_conversion(children):
    """A greedy choice, matrix by matrix, would never convert."""
    graph = Item('graph', {'csc': 0.0, 'csc>csr': 10.0})
    made = {('csc', 'csc'): 8.0, ('csc>csr', 'csr'): 1.0}
    made['csc>csr', 'csc'] = 8.0
    rows = Item('rows', {'csc': 0.0, 'csr': 0.0}, 0, made)
    cost, states = assign([graph, *[rows] * children])
    assert (cost, states[0]) == ((8.0, 'csc'), (12.0, 'csc>csr'))[children - 1]
