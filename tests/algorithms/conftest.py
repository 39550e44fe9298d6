"""One thread draws thousands of tiny samples fastest; weights are seeded."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread_and_one_seed():
    torch.manual_seed(0)
    torch.set_num_threads(1)
