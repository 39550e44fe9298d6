"""What all tests share."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption(
        '--update-golden',
        action='store_true',
        help='write golden files anew, to be reviewed like code',
    )


@pytest.fixture(autouse=True)
def _same_generator_state():
    """Tests draw the same whichever others ran before them."""
    torch.manual_seed(12345)
