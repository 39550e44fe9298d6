"""Public names of the last release that are called otherwise now."""

import importlib
import warnings
from typing import Any

#: Old names of each module, and the new ones.
OLD_NAMES = {
    'torch_gsample.formats': {'CSC': 'torch_gsample.CSC'},
    'torch_gsample.ops': {
        'check_csc': 'torch_gsample.ops.formats.check_csc',
        'index_widths': 'torch_gsample.ops.formats.index_widths',
        'labor_scale': 'torch_gsample.ops.labor.labor_scale',
        'positive_weights': 'torch_gsample.ops.formats.positive_weights',
        'sample_cols': 'torch_gsample.ops.sample_columns',
    },
    'torch_gsample.sparse_sample': {
        'RowProbs': 'torch_gsample.sparse_sample.NodeProbs',
    },
}
#: Modules with what was replaced by something else: ``NAMES`` has what to use
#: instead, and what the name was.
REPLACED = {
    'torch_gsample.ops': (
        'torch_gsample._deprecated_sampling',
        'torch_gsample._deprecated_layers',
    ),
}


def find(module: str, name: str) -> Any:
    """Returns what a name of the last release was, with a warning.

    Raises:
        AttributeError: If the module had no such name.
    """
    found = None if name.startswith('_') else _find(module, name)
    if found is None:
        raise AttributeError(f'module {module!r} has no attribute {name!r}')
    new, value = found
    text = f'{module}.{name} is deprecated: use {new}'
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return value


def _find(module: str, name: str) -> tuple[str, Any] | None:
    """Returns what to use instead of a name, and what it was."""
    new = OLD_NAMES.get(module, {}).get(name)
    if new is not None:
        home, _, attribute = new.rpartition('.')
        return new, getattr(importlib.import_module(home), attribute)
    for home in REPLACED.get(module, ()):
        names = importlib.import_module(home).NAMES
        if name in names:
            new, value = names[name]
            return f'{module}.{new}', value
    return None
