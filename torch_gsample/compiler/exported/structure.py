"""The structure of arguments and results: nested tensors and matrices.

A value comes in; its tensors and its *spec* go out, nested tuples of plain
values that a file can contain:

==========================  ===============================================
``('tensor', i)``           tensor ``i``
``('size', i)``             an integer of a result, which may vary
``('length', i)``           one less than the length of tensor ``i``
``('constant', value)``     None, a number or a string
``('list', items)``         also ``'tuple'``, with the spec of each item
``('dict', keys, items)``   the keys as constants and tuples
``('named', name, items)``  a ``NamedTuple`` of this package
``('matrix', items)``       a ``SparseSample``
``('columns', items)``      a ``CSC``
``('sample', items)``       a ``SamplerOutput`` of layers and seeds (results)
==========================  ===============================================

Dynamo captures :func:`take_apart` and :func:`assemble` with the program.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.sparse_sample import SparseSample, convert

#: A spec as in the table of this module.
Spec = tuple[Any, ...]

_MATRIX = 'csc csr num_rows num_cols value edge_id row_ids col_ids'.split()
_COLUMNS = (
    'indptr indices num_rows edge_id cum_weight edge_time checked'.split()
)
_PACKAGE = 'torch_gsample.'
#: No matrix or sample has this dtype.
INTEGER = torch.uint16


@dataclass
class Found:
    """Tensors and conditions found in the arguments of a call.

    Args:
        tensors (List[torch.Tensor]): The tensors.
        lengths (List[Tuple[str, int, int]]): Integers that must be one less
            than the length of a tensor: their names, the tensor, the value.
    """

    tensors: list[Tensor] = field(default_factory=list)
    lengths: list[tuple[str, int, int]] = field(default_factory=list)

    def check_lengths(self) -> None:
        """Checks the integers.

        Raises:
            ValueError: If one differs.
        """
        for name, i, value in self.lengths:
            if value != self.tensors[i].shape[0] - 1:
                rule = f'must be {self.tensors[i].shape[0] - 1}, as exported'
                _wrong(name, f'{rule} of a square matrix', value)


def take_apart(
    value: Any, tensors: list[Tensor], of_result: bool = False
) -> Spec:
    """Returns the spec of a value, and appends its tensors to a list.

    Args:
        value (Any): Tensors, matrices and constants, nested in lists, tuples
            and dictionaries.
        tensors (List[torch.Tensor]): The list to extend.
        of_result (bool, optional): Whether integers may vary. A tensor
            ``[integer, 0]`` of dtype :data:`INTEGER` stands for each integer,
            so that it becomes an output of the graph.

    Raises:
        TypeError: If a part has another type.
    """
    if isinstance(value, SparseSample):
        parts = _parts_of(value)
        return 'matrix', _each(parts, tensors, of_result)
    if isinstance(value, CSC):
        columns = [getattr(value, name) for name in _COLUMNS]
        return 'columns', _each(columns, tensors, of_result)
    if of_result and isinstance(value, convert.LayeredOutput):
        parts = [list(value.layers), value.seeds]
        return 'sample', _each(parts, tensors, of_result)
    if isinstance(value, Tensor):
        tensors.append(value)
        return 'tensor', len(tensors) - 1
    if value is None or isinstance(value, (bool, float, str)):
        return 'constant', value
    if isinstance(value, int):
        if not of_result:
            return 'constant', value
        tensors.append(torch.empty((value, 0), dtype=INTEGER))
        return 'size', len(tensors) - 1
    if isinstance(value, dict):
        keys = tuple([_spelled(key) for key in value])
        return 'dict', keys, _each(list(value.values()), tensors, of_result)
    if isinstance(value, list):
        return 'list', _each(value, tensors, of_result)
    if isinstance(value, tuple):
        items = _each(list(value), tensors, of_result)
        if hasattr(value, '_fields'):
            return 'named', name_of(type(value)), items
        return 'tuple', items
    raise TypeError(
        'must be of tensors, matrices, numbers and strings, in lists, tuples '
        f'and dictionaries (got {type(value).__name__})'
    )


def assemble(spec: Spec, tensors: Sequence[Any]) -> Any:
    """Returns the value of a spec.

    Args:
        spec (Spec): The result of :func:`take_apart`.
        tensors (List[torch.Tensor or int]): The tensors, and varying
            integers.
    """
    kind = spec[0]
    if kind in ('tensor', 'size'):
        return tensors[spec[1]]
    if kind == 'constant':
        return spec[1]
    if kind == 'length':
        return tensors[spec[1]].shape[0] - 1
    items = [assemble(item, tensors) for item in spec[-1]]
    if kind in ('list', 'tuple'):
        return items if kind == 'list' else tuple(items)
    if kind == 'dict':
        keys = [_key(key) for key in spec[1]]
        return dict(zip(keys, items, strict=True))
    if kind == 'matrix':
        csc, csr, num_rows, num_cols, *ids = items
        return SparseSample(csc, csr, (num_rows, num_cols), *ids)
    if kind == 'columns':
        *parts, checked = items
        return CSC(*parts, checked=checked)
    if kind == 'sample':
        return convert.to_sampler_output(*items)
    return named(spec[1])(*items)


def match(spec: Spec, value: Any, found: Found, name: str) -> None:
    """Finds the tensors of a value that must have a spec.

    Args:
        spec (Spec): The spec.
        value (Any): The value.
        found (Found): The findings to extend.
        name (str): The name of the value in errors.

    Raises:
        ValueError: If it has another spec; the error has the part, the rule
            and the value.
    """
    kind = spec[0]
    if kind == 'tensor':
        if not isinstance(value, Tensor) or isinstance(value, SparseSample):
            _wrong(name, 'must be a tensor', value)
        found.tensors.append(value)
    elif kind == 'length':
        found.lengths.append((name, spec[1], value))
    elif kind == 'constant':
        if type(value) is not type(spec[1]) or value != spec[1]:
            _wrong(name, f'must be {spec[1]!r}, as at export', value)
    elif kind == 'matrix':
        if not isinstance(value, SparseSample):
            _wrong(name, 'must be a SparseSample', value)
        _match_parts(_MATRIX, spec, _parts_of(value, spec), found, name)
    elif kind == 'columns':
        if not isinstance(value, CSC):
            _wrong(name, 'must be a CSC', value)
        parts = [getattr(value, part) for part in _COLUMNS[:-1]]
        # Whether a layout was checked does not affect samples.
        _match_parts(_COLUMNS, spec, [*parts, spec[1][-1][1]], found, name)
    elif kind == 'dict':
        keys = [_key(key) for key in spec[1]]
        if not isinstance(value, dict) or list(value) != keys:
            _wrong(name, f'must be a dictionary of {keys}', value)
        for key, item in zip(keys, spec[2], strict=True):
            match(item, value[key], found, f'{name}[{key!r}]')
    else:
        want: Any = {'list': list, 'tuple': tuple}.get(kind)
        want = want or named(spec[1])
        if type(value) is not want or len(value) != len(spec[-1]):
            rule = f'must be a {want.__name__} of {len(spec[-1])}'
            _wrong(name, rule, value)
        for i, item in enumerate(spec[-1]):
            match(item, value[i], found, f'{name}[{i}]')


def has_tensors(spec: Spec) -> bool:
    """Whether a value has parts other than constants."""
    if spec[0] in ('list', 'tuple', 'named', 'dict', 'sample'):
        return any(has_tensors(item) for item in spec[-1])
    return spec[0] != 'constant'


def names_of(spec: Spec, name: str) -> list[str]:
    """Returns the name of each tensor of a value, in order."""
    if spec[0] == 'tensor':
        return [name]
    if spec[0] in ('constant', 'size', 'length'):
        return []
    fields = {'matrix': _MATRIX, 'columns': _COLUMNS}.get(spec[0])
    labels = [f'.{field}' for field in fields or ()]
    if spec[0] == 'dict':
        labels = [f'[{_key(key)!r}]' for key in spec[1]]
    elif fields is None:
        labels = [f'[{i}]' for i in range(len(spec[-1]))]
    return [
        part
        for label, item in zip(labels, spec[-1], strict=True)
        for part in names_of(item, name + label)
    ]


def with_lengths(spec: Spec) -> Spec:
    """Turns numbers of rows and columns into lengths where possible."""
    if spec[0] in ('list', 'tuple', 'named', 'dict'):
        return *spec[:-1], tuple([with_lengths(item) for item in spec[-1]])
    if spec[0] != 'matrix':
        return spec
    csc, csr, rows, cols, *others = spec[1]
    is_square = rows == cols
    if csc[0] == 'columns':
        cols = 'length', csc[1][0][1]
    if csr[0] == 'columns':
        rows = 'length', csr[1][0][1]
    if is_square:
        rows, cols = (rows, rows) if rows[0] == 'length' else (cols, cols)
    layouts = [
        ('columns', (*x[1][:2], n, *x[1][3:])) if x[0] == 'columns' else x
        for x, n in ((csc, rows), (csr, cols))
    ]
    return 'matrix', (*layouts, rows, cols, *others)


def sizes_of(
    spec: Spec, tensors: Sequence[Tensor], sizes: set[int], own: set[int]
) -> None:
    """Adds the rows, columns and edges of matrices, and their tensors."""
    if spec[0] == 'matrix':
        csc, csr, num_rows, num_cols, *_ = spec[1]
        layout = csr if csc[0] == 'constant' else csc
        indices = tensors[layout[1][1][1]]
        sizes.update((num_rows[1], num_cols[1], indices.shape[0]))
    if spec[0] in ('tensor', 'constant'):
        return
    for item in spec[-1]:
        if spec[0] in ('matrix', 'columns') and item[0] == 'tensor':
            own.add(item[1])
        sizes_of(item, tensors, sizes, own)


def name_of(kind: type) -> str:
    """Returns the name of a ``NamedTuple`` of this package.

    Raises:
        TypeError: If it is of another package.
    """
    if not kind.__module__.startswith(_PACKAGE):
        raise TypeError(
            'must be plain tuples, or those of torch_gsample (got '
            f'{kind.__name__})'
        )
    return f'{kind.__module__}.{kind.__name__}'


def named(name: str) -> Any:
    """Returns the ``NamedTuple`` of a name.

    Raises:
        ValueError: If this package has none.
    """
    module, _, attribute = name.rpartition('.')
    found = None
    # Contains the results of programs; no other name of a file is imported.
    import_module('torch_gsample.algorithms')
    if module.startswith(_PACKAGE):
        found = vars(sys.modules.get(module, sys)).get(attribute)
    if not isinstance(found, type) or not issubclass(found, tuple):
        raise ValueError(f'torch_gsample has no NamedTuple {name!r}')
    return found


def _each(values: list[Any], tensors: list[Tensor], of_result: bool) -> Spec:
    return tuple([take_apart(item, tensors, of_result) for item in values])


def _parts_of(A: SparseSample, spec: Spec | None = None) -> list[Any]:
    """Returns the parts of a matrix, with only the layouts of a spec."""
    if A._disk is not None:
        raise ValueError(
            'export: arguments must be in memory (got a matrix on disk); '
            'compile the program instead'
        )
    csc, csr = A._csc, A._csr
    if spec is not None:
        wanted = [part[0] == 'columns' for part in spec[1][:2]]
        csc, csr = A.csc if wanted[0] else None, A.csr if wanted[1] else None
    parts = csc, csr, *A.shape, A.value, A._known_ids(), A.row_ids, A.col_ids
    return list(parts)


def _match_parts(
    names: Sequence[str],
    spec: Spec,
    parts: Sequence[Any],
    found: Found,
    name: str,
) -> None:
    for part, item, value in zip(names, spec[1], parts, strict=True):
        match(item, value, found, f'{name}.{part}')


def _wrong(name: str, rule: str, value: Any) -> None:
    """Raises the error of a part that violates a rule."""
    got = f'a {type(value).__name__}'
    if isinstance(value, (list, tuple)) and len(value) > 8:
        got += f' of {len(value)}'
    elif value is None or isinstance(value, (int, float, str, list, tuple)):
        got = repr(value)
    elif isinstance(value, dict):
        got = f'keys {list(value)}'
    raise ValueError(f"'{name}' {rule} (got {got})")


def _spelled(key: Any) -> Any:
    """Returns the spec of a dictionary key."""
    if isinstance(key, tuple):
        return 'tuple', tuple([_spelled(item) for item in key])
    if key is None or isinstance(key, (bool, int, str)):
        return 'constant', key
    raise TypeError(
        'must have keys that are None, integers, strings or tuples of them '
        f'(got {type(key).__name__})'
    )


def _key(spec: Any) -> Any:
    kind, value = spec
    return value if kind == 'constant' else tuple(map(_key, value))


def read_spec(value: Any, count: int) -> Spec:
    """Returns a spec from a file's lists after checks.

    Args:
        value (List): The spec.
        count (int): Number of tensors.

    Raises:
        TypeError or ValueError: If it is invalid.
    """
    kind, *rest = value
    if kind in ('tensor', 'size', 'length'):
        [number] = rest
        if type(number) is not int or not 0 <= number < count:
            raise ValueError(f'an id must be below {count} (got {number!r})')
        return kind, number
    if kind == 'constant':
        [number] = rest
        if number is not None and not isinstance(number, (int, float, str)):
            raise ValueError(f'a constant must be plain (got {number!r})')
        return kind, number
    items = tuple([read_spec(item, count) for item in rest[-1]])
    if kind == 'dict':
        keys = tuple([_read_key(key) for key in rest[0]])
        if len(keys) == len(items) and len(rest) == 2:
            return kind, keys, items
    elif kind == 'named' and len(rest) == 2:
        if len(named(rest[0])._fields) == len(items):
            return kind, rest[0], items
    elif len(rest) == 1:
        sizes = {'matrix': len(_MATRIX), 'columns': len(_COLUMNS)}
        sizes |= {'list': len(items), 'tuple': len(items), 'sample': 2}
        if sizes.get(kind) == len(items):
            return kind, items
    raise ValueError(f'a value is not of the kind {kind!r}')


def _read_key(value: Any) -> Spec:
    kind, inner = value
    if kind == 'tuple':
        return kind, tuple([_read_key(item) for item in inner])
    return read_spec(('constant', inner), 0)
