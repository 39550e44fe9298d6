"""Numbers that no graph has, in each argument of each operator.

Sums and products of them must not wrap around, and nothing may end the
process: a sanitizer or the death of the tests says so.
"""

import pytest
import torch

from tests.ops.test_opcheck import KEY, SAMPLES

GSAMPLE = torch.ops.gsample

#: Multiplied by the size of an item, the middle ones wrap to small numbers.
EXTREMES = (2**63 - 1, 2**62 + 2**20, 2**61 + 2**14, -1, -(2**63))
NUMBERS = ('int', 'SymInt', 'Optional[int]', 'Optional[SymInt]')
LISTS = ('List[int]', 'List[SymInt]', 'Optional[List[int]]')


def variants(argument, value):
    """Values of an argument with one number that is extreme."""
    kind = str(argument.type)
    if kind in NUMBERS:
        yield from EXTREMES
    elif kind in LISTS:
        for i in range(len(value or [])):
            for number in EXTREMES:
                yield [*value[:i], number, *value[i + 1 :]]


def calls(name):
    """Arguments of an operator, one of them extreme."""
    schema = getattr(torch.ops.gsample, name).default._schema
    for args, kwargs in SAMPLES[name]:
        for i, argument in enumerate(schema.arguments):
            known = args[i] if i < len(args) else kwargs.get(argument.name)
            for value in variants(argument, known):
                if i < len(args):
                    yield (*args[:i], value, *args[i + 1 :]), kwargs
                else:
                    yield args, {**kwargs, argument.name: value}


@pytest.mark.parametrize('name', sorted(SAMPLES))
def test_extreme_numbers_are_refused_or_do_no_harm(name):
    operator = getattr(torch.ops.gsample, name).default
    for args, kwargs in calls(name):
        try:
            operator(*args, **kwargs)
        except (RuntimeError, ValueError, IndexError, MemoryError):
            continue


#: Results with sizes in bytes that wrap around to small numbers.
TOO_LARGE = {
    'gather_rows': lambda: GSAMPLE.gather_rows(
        torch.empty(0, 2**40, 2**21), torch.zeros(2**5 + 1, dtype=torch.int64)
    ),
    'gather_rows of pages': lambda: GSAMPLE.gather_rows(
        torch.empty(0, 2**61 + 2**14), torch.zeros(2, dtype=torch.int64)
    ),
    'sample_columns': lambda: GSAMPLE.sample_columns(
        torch.tensor([0, 2**61 + 2**14]), -1, KEY
    ),
}


@pytest.mark.parametrize('name', TOO_LARGE)
def test_results_that_no_memory_holds_are_refused(name):
    with pytest.raises((MemoryError, RuntimeError)):
        TOO_LARGE[name]()
