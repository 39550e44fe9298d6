"""Deprecated attributes of a ``SparseSample``."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample.sparse_sample import (
    arithmetic,
    convert,
    extract,
    ids,
    select,
)
from torch_gsample.sparse_sample.parts import Parts

_Class = TypeVar('_Class', bound=type[Parts])

#: For each old name, its replacement and its value.
OLD_NAMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    'nnz': ('num_edges', lambda A: A.num_edges),
    't': ('T', lambda A: lambda: A.T),
    'to_coo': (
        'coo() and values()',
        lambda A: lambda: (*A.coo(), A.values()),
    ),
    'row_of_edge': ('edges()[0]', lambda A: lambda: A.edges()[0]),
    'column_of_edge': ('edges()[1]', lambda A: lambda: A.edges()[1]),
    'apply': (
        'with_value(function(A.values()))',
        lambda A: partial(arithmetic.apply, A),
    ),
    'by_column': ('to_csc()', lambda A: partial(extract.by_column, A)),
    'column': ('T.row()', lambda A: partial(ids.column, A)),
    'pow': ('__pow__ (A ** x)', lambda A: partial(arithmetic.pow, A)),
    'random_walk_step': (
        'T.random_walk(nodes, 1)',
        lambda A: partial(select.random_walk_step, A),
    ),
    'to_dgl_block': (
        'to_dgl(block=True)',
        lambda A: partial(convert.to_dgl, A, block=True),
    ),
    'to_dgl_graph': ('to_dgl()', lambda A: partial(convert.to_dgl, A)),
}


def with_old_names(cls: _Class) -> _Class:
    """Adds the old names to a class of matrices.

    They are properties, because a ``__getattr__`` slows every attribute down.
    """
    for name, (instead, read) in OLD_NAMES.items():
        setattr(cls, name, _old_name(name, instead, read))
    return cls


def _old_name(name: str, instead: str, read: Callable[[Any], Any]) -> property:
    text = f'SparseSample.{name} is deprecated: use SparseSample.{instead}'

    def old(matrix: Any) -> Any:
        if not is_compiling():  # Dynamo cannot capture a warning
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        return read(matrix)

    return property(old, doc=f'Deprecated: use ``{instead}``.')
