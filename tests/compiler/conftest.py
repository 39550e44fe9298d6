"""What the tests of the compiler leave behind: nothing."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _forget_compilations():
    yield
    torch._dynamo.reset()
