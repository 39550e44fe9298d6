"""What all tests of loaders share."""

import warnings

import pytest


@pytest.fixture
def no_number_is_lost():
    """Fails if a batch has no index."""
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message='.*a batch has no index')
        yield
