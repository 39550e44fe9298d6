"""What all tests share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _same_generator_state():
    """Tests draw the same whichever others ran before them."""
    torch.manual_seed(12345)
