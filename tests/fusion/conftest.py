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


@pytest.fixture(scope='module')
def all_double():
    """Makes the models and data of a file in double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def double(all_double):
    """Makes the same models in double precision for each test."""
    torch.manual_seed(1)
