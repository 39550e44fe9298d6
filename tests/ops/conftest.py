"""Fixtures of the tests of operators."""

import pytest
import torch


@pytest.fixture(params=[1, 2, 4], ids='threads{}'.format)
def threads(request):
    torch.set_num_threads(request.param)
    return request.param
