"""Capture of a program as a function of tensors.

Dynamo finds a graph's inputs in objects and builds objects from its outputs
with bytecode, which a file cannot contain. So arguments are taken apart before
the captured part, and results are assembled after it; the file contains the
specs of both.
"""

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.fx import GraphModule, Node

from torch_gsample.compiler.compiled import Compiled
from torch_gsample.compiler.exported.arguments import (
    Arguments,
    Given,
    Input,
)
from torch_gsample.compiler.exported.sizes import places_of, read_rules
from torch_gsample.compiler.exported.structure import (
    INTEGER,
    Spec,
    assemble,
    take_apart,
)
from torch_gsample.compiler.ir import example, placeholders
from torch_gsample.compiler.options import Options
from torch_gsample.ops.matrix import _key_state
from torch_gsample.torch_private.dynamo import (
    expression_of,
    maybe_dynamic,
    name_of_source,
    unknown_length,
)

#: Dynamo's name of an argument tensor.
_ARGUMENT = re.compile(r"L\['tensors'\]\[(\d+)\]")


@dataclass
class Capture:
    """A captured program, after the passes.

    Args:
        module (GraphModule): The graph.
        spec (Spec): Spec of the result.
        inputs (List): Source of each input of the graph:
            ``('argument', i)``, ``('size', i, dim)``, ``('tensor', name)`` or
            ``('key',)``.
        results (List): Source of each tensor of the result:
            ``('output', i)``, ``('argument', i)``, ``('tensor', name)`` or
            ``('constant', integer)``.
        tensors (Dict[str, torch.Tensor]): The program's own tensors, such as
            parameters of a module.
        values (List): The inputs of the captured call.
        arguments (Arguments): Requirements on later arguments.
    """

    module: GraphModule
    spec: Spec
    arguments: Arguments
    inputs: list[tuple[Any, ...]] = field(default_factory=list)
    results: list[tuple[Any, ...]] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    values: tuple[Any, ...] = ()


def capture(
    name: str,
    program: Callable[..., Any],
    given: Given,
    options: Options,
) -> Capture:
    """Captures a program, and runs the passes.

    Args:
        name (str): The program, for errors.
        program (Callable): The program.
        given (Given): Its arguments.
        options (Options): Compiler options.

    Raises:
        CompileError: If it cannot be captured.
        ValueError: If its graph reads objects other than tensors, or a rule of
            sizes cannot be stored.
    """

    def flat(*tensors: Tensor) -> tuple[tuple[Tensor, ...], Spec]:
        args, kwargs = assemble(given.call, tensors)
        found: list[Tensor] = []
        spec = take_apart(program(*args, **kwargs), found, of_result=True)
        return tuple(found), spec

    flat.__name__ = flat.__qualname__ = name
    backend = _Backend(given, options)
    # Separate objects, even if one tensor is passed twice.
    tensors = [_example(x) for x in given.tensors]
    for i, tensor in enumerate(tensors):
        if i in given.any_length:
            tensor.__dict__.update(unknown_length())
        elif i in given.varying:
            maybe_dynamic(tensor)
    found, spec = Compiled(flat).capture_as_marked(
        backend, tensors, {}, unrolls=True
    )
    out = Capture(backend.module, spec, given.arguments, values=backend.values)
    _find_inputs(out, backend.names, given)
    _find_results(out, backend, tensors, found)
    return out


class _Backend:
    """A backend that stores the graph and the values of its first call."""

    module: GraphModule
    names: list[str]
    values: tuple[Any, ...]
    outputs: tuple[Any, ...]

    def __init__(self, given: Given, options: Options):
        self._given, self._options = given, options

    def __call__(
        self, gm: GraphModule, example_inputs: Any
    ) -> Callable[..., Any]:
        self.names = [name_of_source(n) for n in placeholders(gm.graph)]
        self.module = copy.deepcopy(gm)
        own = self._given.of_matrices
        nodes = placeholders(self.module.graph)
        for node, name in zip(nodes, self.names, strict=True):
            at = _argument(name)
            node.meta['is_argument'] = at is not None and at not in own
            node.meta['is_of_graph'] = at in own
        _read_integers(self.module)
        # Run the passes now, as sizes are fixed when the capture ends.
        self._options.rewrite(self.module)

        def run(*values: Any) -> Any:
            self.values, self.outputs = values, gm.forward(*values)
            return self.outputs

        return run


def _example(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _argument(name: str) -> int | None:
    """Returns the index of the argument with Dynamo's name."""
    found = _ARGUMENT.fullmatch(name)
    return None if found is None else int(found[1])


def _read_integers(module: GraphModule) -> None:
    """Replaces outputs that stand for integers with the integers."""
    [last] = [n for n in module.graph.nodes if n.op == 'output']
    outputs: Any = last.args[0]
    last.args = (
        tuple(
            x.args[0][0] if x.kwargs.get('dtype') == INTEGER else x
            for x in outputs
        ),
    )


def _find_inputs(out: Capture, names: Sequence[str], given: Given) -> None:
    """Finds the sources of a graph's inputs, and rules of their sizes."""
    nodes = list(placeholders(out.module.graph))
    examples = {
        at: example(node)
        for node, name in zip(nodes, names, strict=True)
        if (at := _argument(name)) is not None
    }
    sizes: list[Sequence[Any]] = [x.shape for x in given.tensors]
    for i in given.any_length | given.varying:
        sizes[i] = None, *sizes[i][1:]  # for tensors the graph does not read
    for i, x in examples.items():
        sizes[i] = x.shape
    inputs = list(map(Input.of, given.tensors, sizes))
    out.arguments = given.arguments.with_rules(inputs, read_rules(examples))
    places = places_of(examples)
    for node, value, name in zip(nodes, out.values, names, strict=True):
        size = places.get(str(expression_of(example(node))))
        if _argument(name) is not None:
            out.inputs.append(('argument', _argument(name)))
        elif value is _key_state:
            out.inputs.append(('key',))
        elif isinstance(value, Tensor):
            name = _spelled(name)
            while name in out.tensors:  # taken by another module
                name += "'"
            out.tensors[name] = value
            out.inputs.append(('tensor', name))
        elif size is not None:
            out.inputs.append(('size', *size))
        else:
            raise ValueError(
                f'export: {name} must be a constant or a tensor (got {value!r}'
                f', of {type(value).__name__})'
            )


def _find_results(
    out: Capture,
    backend: _Backend,
    given: Sequence[Tensor],
    found: Sequence[Tensor],
) -> None:
    """Finds the sources of a result's tensors."""
    [last] = [n for n in out.module.graph.nodes if n.op == 'output']
    nodes: Any = last.args[0]
    kept: list[Node] = []
    for number, tensor in enumerate(found):
        at, i = _index(backend.outputs, tensor), _index(given, tensor)
        if at is not None:
            if not isinstance(nodes[at], Node):
                out.results.append(('constant', nodes[at]))
                continue
            if nodes[at] not in kept:
                kept.append(nodes[at])
            out.results.append(('output', kept.index(nodes[at])))
        elif i is not None:
            out.results.append(('argument', i))
        elif tensor.dtype == INTEGER:
            out.results.append(('constant', tensor.shape[0]))
        else:
            names, known = list(out.tensors), list(out.tensors.values())
            own = _index(known, tensor)
            name = f'result {number}' if own is None else names[own]
            out.tensors[name] = tensor
            out.results.append(('tensor', name))
    last.args = (tuple(kept),)


def _spelled(name: str) -> str:
    """Shortens Dynamo's name of a tensor to ``module.weight``."""
    name = re.sub(r"\._(parameters|buffers|modules)\['(\w+)'\]", r'.\2', name)
    name = re.sub(r"^[GL]\['(\w+)'\]", r'\1', name)
    return re.sub(r'^__import_\w+?\.', '', name)


def _index(values: Sequence[Any], value: Any) -> int | None:
    """Returns the index of an object by identity."""
    return next((i for i, x in enumerate(values) if x is value), None)
