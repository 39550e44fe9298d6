"""The functions that a program in a file may call.

A name comes in, a function goes out. Files may come from strangers, so they
can only name operators: no attribute, module or path is looked up for them.
"""

import operator
from typing import Any

import torch

from torch_gsample.torch_private import OpOverload, schema_of
from torch_gsample.torch_private.dynamo import SET_GRAD_ENABLED

#: Operators of this package that programs use. Others load libraries.
_OWN = frozenset(
    'check_csc coo_to_csc cumulate_weights forest_fire frontier_walk '
    'gather_rows has_edges induce_subgraph labor_scale '
    'mask_columns match_edges metapath_walk negative_sample next_key '
    'node2vec_walk positive_weights random_uniform random_walk sample_columns '
    'sample_layers sample_neighbors sample_nodes slice_cols slice_rows '
    'sum_columns unique_nodes'.split()
)
#: Operators of torch that read files, or access raw memory.
_REFUSED = frozenset(
    'as_strided data from_file record_stream rename requires_grad resize '
    'resize_as retain_grad set set_data'.split()
)
_REFUSED_TYPES = 'Generator', 'Storage', 'Stream', 'Dimname'
#: Functions that are not operators.
_FUNCTIONS = {
    **{
        f'operator.{name}': getattr(operator, name)
        for name in 'add sub mul mod neg floordiv truediv eq ne ge gt le lt '
        'not_ getitem setitem'.split()
    },
    **{
        f'torch.{name}': getattr(torch, name)
        for name in ('sym_max', 'sym_min', 'sym_not', 'sym_sum')
    },
    'torch.set_grad_enabled': SET_GRAD_ENABLED,
    'torch.tensor': torch.tensor,
}
_NAMES = {function: name for name, function in _FUNCTIONS.items()}
#: Tensor methods without a single operator, or that capture does not change.
METHODS = frozenset(
    'bool byte clone contiguous cpu double float half int long short type_as '
    'unique unique_consecutive'.split()
)
#: Keywords of kernels, functions and methods, which have no schema.
_KEYWORDS = frozenset(
    'device dim dtype num_rows return_counts return_inverse sorted'.split()
)


def name_of(target: Any) -> str:
    """Returns the name of a function that a file may call.

    Raises:
        ValueError: If a file may not call it.
    """
    if isinstance(target, OpOverload):
        name = str(target)
        function_of(name)
        return name
    name = _NAMES.get(target, '')
    if not name:
        raise _refused(getattr(target, '__name__', str(target)))
    return name


def function_of(name: Any) -> Any:
    """Returns the function of a name.

    Raises:
        ValueError: If a file may not call it.
    """
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    space, base, overload = (*str(name).split('.'), '', '')[:3]
    plain = base.removesuffix('_')
    known = space == 'gsample' and base in _OWN
    if space == 'aten':
        known = not base.startswith('_') and plain not in _REFUSED
    if not known or f'{space}.{base}.{overload}' != name:
        raise _refused(name)
    packet = getattr(getattr(torch.ops, space), base, None)
    function = getattr(packet, overload, None)
    if not isinstance(function, OpOverload):
        raise ValueError(f'torch {torch.__version__} has no operator {name!r}')
    kinds = [str(a.type) for a in schema_of(function).arguments]
    if 'out' in overload or any(t in k for k in kinds for t in _REFUSED_TYPES):
        raise _refused(name)
    return function


def check_keywords(target: Any, names: Any) -> None:
    """Checks the names of arguments, which become source code.

    Raises:
        ValueError: If an operator has no such arguments.
    """
    schema, known = schema_of(target), _KEYWORDS
    if schema is not None:
        known = frozenset(argument.name for argument in schema.arguments)
    for name in names:
        if name not in known:
            raise ValueError(f'an operator has no argument {name!r}')


def _refused(name: Any) -> ValueError:
    return ValueError(
        'a file may call operators of torch and of this package '
        f'(got {name!r})'
    )
