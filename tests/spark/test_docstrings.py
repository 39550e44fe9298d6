"""The examples of docstrings run, in the session of the tests."""

import doctest
import importlib
import pkgutil

import pytest

from torch_gsample import spark as on_spark

MODULES = [
    module.name
    for module in pkgutil.iter_modules(
        on_spark.__path__, on_spark.__name__ + '.'
    )
]


@pytest.mark.parametrize('name', MODULES)
def test_examples_of_docstrings_run(spark, name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
