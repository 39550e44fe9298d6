import pytest
import torch

import tests.vertex.first_layers  # noqa: F401  (before any other)


@pytest.fixture(autouse=True, scope='package')
def _one_thread():
    """Batches are small: threads would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def double():
    """Makes models in double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    yield
    torch.set_default_dtype(before)
