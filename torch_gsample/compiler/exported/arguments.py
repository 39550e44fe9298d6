"""Arguments of an exported program: checks, and their tensors.

Arguments come in; their tensors go out in a fixed order, or an error for the
argument that differs from the export.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample.compiler.exported.sizes import (
    Rule,
    check_rule,
    check_sizes,
)
from torch_gsample.compiler.exported.structure import (
    Found,
    Spec,
    has_tensors,
    match,
    names_of,
    read_spec,
    sizes_of,
    take_apart,
    with_lengths,
)
from torch_gsample.ops._check import INDEX_DTYPES

_ARGS = inspect.Parameter.VAR_POSITIONAL
_KWARGS = inspect.Parameter.VAR_KEYWORD
#: Kinds of parameters, in the order of their codes in a file.
_KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    _ARGS,
    inspect.Parameter.KEYWORD_ONLY,
    _KWARGS,
)


@dataclass(frozen=True)
class Input:
    """Requirements on a tensor.

    Args:
        dtype (torch.dtype): Its dtype.
        shape (Tuple[int or None, ...]): Its sizes; None allows any.
        differentiable (bool): Whether its gradient can be computed.
    """

    dtype: torch.dtype
    shape: tuple[int | None, ...]
    differentiable: bool

    @classmethod
    def of(cls, x: Tensor, sizes: Sequence[Any] | None = None) -> 'Input':
        """Describes a tensor, of which Dynamo may know only some sizes."""
        known = x.shape if sizes is None else sizes
        shape = tuple(n if type(n) is int else None for n in known)
        grad = x.requires_grad and torch.is_grad_enabled()
        return cls(x.dtype, shape, grad)

    def check(self, program: str, name: str, x: Tensor) -> None:
        """Checks a tensor.

        Raises:
            ValueError: If it does not match.
        """
        if type(x) not in (Tensor, torch.nn.Parameter):
            self._fail(program, name, 'be a plain tensor', type(x).__name__)
        if x.dtype != self.dtype:
            self._fail(program, name, f'have dtype {self.dtype}', x.dtype)
        if x.device.type != 'cpu':
            self._fail(program, name, 'be on the CPU', x.device)
        if len(x.shape) != len(self.shape) or any(
            want is not None and want != size
            for want, size in zip(self.shape, x.shape, strict=True)
        ):
            text = str(list(self.shape)).replace('None', '*')
            self._fail(program, name, f'have shape {text}', list(x.shape))
        if not x.is_contiguous():
            self._fail(program, name, 'be contiguous', f'strides {x.stride()}')

    def check_gradient(self, program: str, name: str, x: Tensor) -> None:
        """Checks that no unavailable gradient is required.

        Raises:
            ValueError: If one is.
        """
        if x.requires_grad and not self.differentiable:
            rule = 'not require a gradient: it was exported without'
            self._fail(program, name, rule, 'requires_grad=True')

    def to_json(self) -> list[Any]:
        """Returns the requirements as plain values."""
        dtype = str(self.dtype).removeprefix('torch.')
        return [dtype, list(self.shape), self.differentiable]

    @classmethod
    def from_json(cls, value: Any) -> 'Input':
        """Reads the result of :meth:`to_json`.

        Raises:
            TypeError or ValueError: If it is invalid.
        """
        name, shape, differentiable = value
        dtype = vars(torch).get(name)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f'torch has no dtype {name!r}')
        return cls(dtype, tuple(shape), bool(differentiable))

    @staticmethod
    def _fail(program: str, name: str, rule: str, got: Any) -> None:
        raise ValueError(f"{program}: '{name}' must {rule} (got {got})")


class Arguments:
    """The arguments of an exported program.

    Args:
        parameters (Sequence[Tuple]): The name, the kind and the spec of each.
        inputs (Sequence[Input]): Requirements on their tensors.
        rules (Sequence, optional): Conditions on their sizes.
    """

    def __init__(
        self,
        parameters: Sequence[tuple[str, Any, Spec]],
        inputs: Sequence[Input],
        rules: Sequence[Rule] = (),
    ):
        self._parameters, self._rules = list(parameters), list(rules)
        #: Requirements on the tensors.
        self.inputs = list(inputs)
        #: The name of each tensor.
        self.names = [
            tensor
            for name, _, spec in self._parameters
            for tensor in names_of(spec, name)
        ]
        empty = inspect.Parameter.empty
        self._signature = inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    kind,
                    # Optional here, as any argument may precede it.
                    default=empty if kind in (_ARGS, _KWARGS) else None,
                )
                for name, kind, _ in self._parameters
            ]
        )

    def read(self, program: str, args: Any, kwargs: Any) -> list[Tensor]:
        """Returns the tensors of a call.

        Raises:
            TypeError: If arguments are missing or unknown.
            ValueError: If an argument does not match.
        """
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f'{program}: {error}') from None
        found = Found()
        try:
            for name, kind, spec in self._parameters:
                if name in given:
                    match(spec, given[name], found, name)
                elif has_tensors(spec) or kind in (_ARGS, _KWARGS):
                    raise TypeError(f"{program}: '{name}' is missing")
            found.check_lengths()
        except ValueError as error:
            raise ValueError(f'{program}: {error}') from None
        grad, tensors = torch.is_grad_enabled(), found.tensors
        for item, name, x in zip(
            self.inputs, self.names, tensors, strict=True
        ):
            item.check(program, name, x)
            if grad:
                item.check_gradient(program, name, x)
        if self._rules:
            check_sizes(program, self._rules, tensors, self.names)
        return tensors

    def with_rules(
        self, inputs: Sequence[Input], rules: Sequence[Rule]
    ) -> 'Arguments':
        """Returns the arguments with the requirements of a capture."""
        return Arguments(self._parameters, inputs, rules)

    def to_json(self) -> list[Any]:
        """Returns the arguments as plain values."""
        return [
            [
                [name, _KINDS.index(kind), spec]
                for name, kind, spec in self._parameters
            ],
            [item.to_json() for item in self.inputs],
            self._rules,
        ]

    @classmethod
    def from_json(cls, value: Any) -> 'Arguments':
        """Reads the result of :meth:`to_json`.

        Raises:
            TypeError or ValueError: If it is invalid.
        """
        parameters, inputs, rules = value
        out = cls(
            [
                (name, _KINDS[kind], read_spec(spec, len(inputs)))
                for name, kind, spec in parameters
            ],
            [Input.from_json(item) for item in inputs],
            [check_rule(rule, range(len(inputs))) for rule in rules],
        )
        if len(out.names) != len(inputs):
            raise ValueError('each tensor must belong to one argument')
        return out


@dataclass
class Given:
    """The example arguments of an export.

    Args:
        arguments (Arguments): Requirements on later arguments.
        call (Spec): A pair of the positional and the keyword arguments.
        tensors (List[torch.Tensor]): Their tensors.
        any_length (Set[int]): Tensors that may have any length.
        varying (Set[int]): Other tensors whose length may vary.
        of_matrices (Set[int]): Tensors that are parts of matrices.
    """

    arguments: Arguments
    call: Spec
    tensors: list[Tensor]
    any_length: set[int]
    varying: set[int]
    of_matrices: set[int]


def read_example(
    name: str,
    program: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic: bool,
) -> Given:
    """Reads the example arguments of an export.

    Raises:
        TypeError: If they do not fit the program, or have another type.
        ValueError: If a tensor is not supported.
    """
    function: Any = program
    if isinstance(program, torch.nn.Module):
        function = program.forward
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs).arguments
    tensors: list[Tensor] = []
    specs: dict[str, Spec] = {}
    for key, value in bound.items():
        try:
            specs[key] = take_apart(value, tensors)
        except TypeError as error:
            raise TypeError(f"export: '{key}' {error}") from None
    sizes, of_matrices = set[int](), set[int]()
    for spec in specs.values():
        sizes_of(spec, tensors, sizes, of_matrices)
    if dynamic:
        specs = {key: with_lengths(spec) for key, spec in specs.items()}
    kinds = {key: signature.parameters[key].kind for key in specs}
    any_length = {  # the rule for seeds in `compile`
        i
        for i, x in enumerate(tensors)
        if x.dim() == 1
        and x.dtype in INDEX_DTYPES
        and i not in of_matrices
        and x.shape[0] not in sizes
    }
    arguments = Arguments(
        [(key, kinds[key], spec) for key, spec in specs.items()],
        [Input.of(x) for x in tensors],
    )
    for item, key, x in zip(
        arguments.inputs, arguments.names, tensors, strict=True
    ):
        item.check('export', key, x)
    spread: dict[str, Any] = dict(specs)
    for key, kind in kinds.items():
        if kind == _ARGS:
            spread[key] = specs[key][-1]
        elif kind == _KWARGS:
            keys = [value for _, value in specs[key][1]]
            spread[key] = dict(zip(keys, specs[key][-1], strict=True))
    shaped = inspect.BoundArguments(signature, spread)
    names = tuple([('constant', key) for key in shaped.kwargs])
    items = tuple(shaped.kwargs.values())
    call = 'tuple', (('tuple', shaped.args), ('dict', names, items))
    varying = set(range(len(tensors))) - any_length if dynamic else set()
    return Given(arguments, call, tensors, any_length, varying, of_matrices)
