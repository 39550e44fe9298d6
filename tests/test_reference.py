import inspect

import pytest
import torch

from tests import reference
from tests.ops.compare import operator_names

# What has no result to compare: a hint to the operating system, and what opens
# and closes libraries.
EXEMPT = {'advise_huge_pages', 'load_kernel', 'unload_kernel'}


def test_the_schemas_are_found():
    assert len(operator_names()) >= 8
    assert set(operator_names()) >= EXEMPT | {'sample_neighbors', 'check_csc'}


@pytest.mark.parametrize('name', sorted(set(operator_names()) - EXEMPT))
def test_operators_have_a_reference_with_their_arguments(name):
    arguments = getattr(torch.ops.gsample, name).default._schema.arguments
    function = inspect.signature(getattr(reference, name))
    inspect_args = [a.name for a in arguments]
    function.bind(**dict.fromkeys(inspect_args))
