"""One thread draws thousands of tiny samples fastest; weights are seeded."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread_and_one_seed():
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
