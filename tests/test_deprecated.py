"""Names of the last release work, and warn by the name to use."""

import importlib

import pytest

from torch_gsample._deprecated import OLD_NAMES


@pytest.mark.parametrize(
    ('module', 'name', 'new'),
    [
        (module, name, new)
        for module, names in OLD_NAMES.items()
        for name, new in names.items()
    ],
)
def test_old_names_are_the_new_ones(module, name, new):
    text = f'{module}.{name} is deprecated: use {new}'
    with pytest.warns(DeprecationWarning, match=text) as caught:
        old = getattr(importlib.import_module(module), name)
    assert caught[0].filename == __file__
    home, _, name = new.rpartition('.')
    assert old is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize('module', OLD_NAMES)
def test_other_names_are_not_there(module):
    with pytest.raises(AttributeError, match=f"'{module}' has no attribute"):
        importlib.import_module(module).no_such_name  # noqa: B018
