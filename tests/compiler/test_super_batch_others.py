"""A batch of several that are sampled together, whatever the others are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.programs import PROGRAMS, graph
from tests.compiler.test_programs import assert_same
from tests.compiler.test_super_batch import keys, together
from torch_gsample.rng import make_key, program_scope

CACHED = {}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(0, 39), max_size=6, unique=True),
        min_size=2,
        max_size=5,
    ),
    st.integers(0, 4),
)
@pytest.mark.parametrize('name', ['graphsage', 'ladies', 'fastgcn', 'shadow'])
def test_a_batch_does_not_see_the_others(name, nodes, place):
    """Whatever the others are, and wherever they stand."""
    if name not in CACHED:
        CACHED[name] = together(name)
    function, A = CACHED[name], graph()
    mine, key = torch.tensor([3, 17, 30]), make_key(5, 1, 2)
    others = [torch.tensor(n, dtype=torch.int64) for n in nodes]
    place = min(place, len(others))
    seeds = [*others[:place], mine, *others[place:]]
    key_of_others = keys(len(others))
    rows = [key_of_others[:place], key, key_of_others[place:]]
    with program_scope(torch.cat(rows)):
        got = function(A, seeds)[place]
    with program_scope(key):
        assert_same(got, PROGRAMS[name](A, mine))
