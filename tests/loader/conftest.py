"""What all tests of loaders share."""

import threading
import warnings

import pytest


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    """No test leaves a thread that makes batches."""
    yield
    names = [t.name for t in threading.enumerate()]
    assert 'torch_gsample_prefetch' not in names


@pytest.fixture
def no_number_is_lost():
    """Fails if a batch has no index."""
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message='.*a batch has no index')
        yield
