"""Conditions on the sizes of a program's arguments.

Dynamo records the assumptions of a capture about varying sizes. The file
contains them as plain values, and each call checks them: only then does the
program run the same operators. A rule is a number, ``['size', i, dim]`` of a
tensor, or a function and its operands.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.torch_private.dynamo import expression_of, rules_of_sizes

Rule = Any
#: Functions by their names in sympy and torch, with their signs.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    'Add': (lambda *x: sum(x), '+'),
    'Mul': (lambda *x: math.prod(x), '*'),
    'Equality': (operator.eq, '=='),
    'Unequality': (operator.ne, '!='),
    'StrictLessThan': (operator.lt, '<'),
    'LessThan': (operator.le, '<='),
    'StrictGreaterThan': (operator.gt, '>'),
    'GreaterThan': (operator.ge, '>='),
    'And': (lambda *x: all(x), 'and'),
    'Or': (lambda *x: any(x), 'or'),
    'Not': (operator.not_, 'not'),
    'Mod': (operator.mod, '%'),
    'PythonMod': (operator.mod, '%'),
    'FloorDiv': (operator.floordiv, '//'),
    'CleanDiv': (operator.floordiv, '//'),
    'Max': (max, 'max'),
    'Min': (min, 'min'),
}
#: Maximum number of parts of a rule, as files may be of any origin.
_MAX_PARTS = 100


def places_of(examples: Mapping[int, Tensor]) -> dict[str, tuple[int, int]]:
    """Returns a tensor and a dimension for each varying size.

    Args:
        examples (Dict[int, torch.Tensor]): Dynamo's examples of tensors.
    """
    out: dict[str, tuple[int, int]] = {}
    for i, x in examples.items():
        for dim, size in enumerate(x.shape):
            if isinstance(size, torch.SymInt):
                out.setdefault(str(expression_of(size)), (i, dim))
    return out


def read_rules(examples: Mapping[int, Tensor]) -> list[Rule]:
    """Returns the assumptions of a capture.

    Args:
        examples (Dict[int, torch.Tensor]): See :func:`places_of`.

    Raises:
        ValueError: If an assumption cannot be stored.
    """
    places, rules = places_of(examples), []
    for i, x in examples.items():
        for dim, size in enumerate(x.shape):
            known = places.get(str(expression_of(size)), (i, dim))
            if isinstance(size, torch.SymInt) and known != (i, dim):
                rules.append(['Equality', ['size', i, dim], ['size', *known]])
    for rule in rules_of_sizes(list(examples.values())):
        rules.append(_spell(rule, places))
    return [check_rule(rule, examples.keys()) for rule in rules]


def _spell(rule: Any, places: Mapping[str, tuple[int, int]]) -> Rule:
    if str(rule) in places:
        return ['size', *places[str(rule)]]
    if getattr(rule, 'is_Integer', False):
        return int(rule)
    name = type(rule).__name__
    if name not in _FUNCTIONS:
        raise ValueError(
            f"export: sizes cannot vary, as they must satisfy '{rule}': "
            "export with 'dynamic=False'"
        )
    return [name, *[_spell(part, places) for part in rule.args]]


def check_rule(rule: Any, tensors: Any) -> Rule:
    """Returns a rule from a file after checks.

    Raises:
        ValueError: If it is invalid.
    """
    waiting, count = [rule], 0
    while waiting:
        part, count = waiting.pop(), count + 1
        if type(part) is int and abs(part) < 1 << 62:
            continue
        if count > _MAX_PARTS or not isinstance(part, list) or not part:
            raise ValueError(f'sizes have an invalid rule {part!r}')
        if part[0] == 'size' and len(part) == 3:
            if part[1] in tensors and part[2] in range(64):
                continue
        elif isinstance(part[0], str) and part[0] in _FUNCTIONS:
            waiting += part[1:]
            continue
        raise ValueError(f'sizes have an invalid rule {part!r}')
    return rule


def check_sizes(
    program: str,
    rules: Sequence[Rule],
    tensors: Sequence[Tensor],
    names: Sequence[str],
) -> None:
    """Checks the sizes of the arguments of a call.

    Raises:
        ValueError: If they violate a rule.
    """
    for rule in rules:
        if not _evaluate(rule, tensors):
            used = {text: size for text, size in _sizes(rule, tensors, names)}
            got = ', '.join(f'{text} = {size}' for text, size in used.items())
            raise ValueError(
                f"{program}: sizes must satisfy '{_text(rule, names)}', as "
                f'at export (got {got})'
            )


def _evaluate(rule: Rule, tensors: Sequence[Tensor]) -> Any:
    if isinstance(rule, int):
        return rule
    if rule[0] == 'size':
        return tensors[rule[1]].shape[rule[2]]
    function, _ = _FUNCTIONS[rule[0]]
    return function(*[_evaluate(part, tensors) for part in rule[1:]])


def _sizes(rule: Rule, tensors: Any, names: Any) -> list[tuple[str, int]]:
    if isinstance(rule, int):
        return []
    if rule[0] == 'size':
        return [(_text(rule, names), _evaluate(rule, tensors))]
    return [pair for x in rule[1:] for pair in _sizes(x, tensors, names)]


def _text(rule: Rule, names: Sequence[str]) -> str:
    if isinstance(rule, int):
        return str(rule)
    if rule[0] == 'size':
        return f'{names[rule[1]]}.shape[{rule[2]}]'
    _, sign = _FUNCTIONS[rule[0]]
    parts = [_text(part, names) for part in rule[1:]]
    if len(parts) == 1 or sign.startswith('m'):
        return f'{sign}({", ".join(parts)})'
    return f' {sign} '.join(
        f'({text})' if ' ' in text else text for text in parts
    )
