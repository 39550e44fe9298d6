"""What the tests of operators share."""

import pytest
import torch


@pytest.fixture(params=[1, 2, 4], ids='threads{}'.format)
def threads(request):
    torch.set_num_threads(request.param)
    return request.param
