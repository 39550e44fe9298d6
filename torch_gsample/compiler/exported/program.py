"""Programs that are compiled in one process and run in another."""

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample.compiler.compiled import Compiled
from torch_gsample.compiler.cost import Measured
from torch_gsample.compiler.exported import file
from torch_gsample.compiler.exported.arguments import (
    Arguments,
    Input,
    read_example,
)
from torch_gsample.compiler.exported.capture import Capture, capture
from torch_gsample.compiler.exported.graph_text import (
    graph_from_json,
    graph_to_json,
)
from torch_gsample.compiler.exported.structure import assemble, read_spec
from torch_gsample.compiler.ir import placeholders
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.settle import settle
from torch_gsample.ops.matrix import _key_state
from torch_gsample.path_argument import path_argument
from torch_gsample.rng import make_key, program_scope

#: Maximum number of calls for the choice of layouts.
_CALLS = 8


def export(
    program: Callable[..., Any],
    *args: Any,
    path: str | os.PathLike[str],
    dynamic: bool = False,
    options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Compiles a program and writes it to a file.

    :func:`load_program` reads the file, in this process or another one, and
    returns the compiled program without another capture.

    The program is compiled for the arguments. Later calls may have integer
    vectors (seeds) of other lengths, as with :func:`torch_gsample.compile`,
    but not other constants (such as fan-outs), dtypes, or sizes of graphs and
    other tensors. Layouts are chosen by measuring the program on the
    arguments, which should be a typical batch. The file contains the program's
    own tensors, such as the parameters of a module. The state of torch's
    default generator is restored.

    Args:
        program (Callable): A function, a module, or a result of
            :func:`torch_gsample.compile`.
        *args (Any): Its arguments: matrices, tensors and constants, also in
            lists, tuples and dictionaries. Tensors must be contiguous and on
            the CPU.
        path (str): The file.
        dynamic (bool, optional): Whether later calls may have other first
            sizes of tensors, and so other graph sizes.
        options (Dict[str, Any], optional): See
            :class:`~torch_gsample.compiler.Options`; default: those of the
            compiled program.
        **kwargs (Any): Its keyword arguments.

    Raises:
        CompileError: If the program cannot be captured.
        OSError: If the file cannot be written.
        TypeError: If ``program`` cannot be called, or an argument or a result
            has another type.
        ValueError: If an argument or an operator of the program cannot be
            stored, or an option is unknown.

    Example:
        >>> import os, tempfile, torch
        >>> import torch_gsample as gsample
        >>> edge_index = torch.tensor([[1, 1, 2], [0, 2, 0]])
        >>> A = gsample.SparseSample.from_edge_index(edge_index)
        >>> seeds, fanouts = torch.tensor([0, 2]), [2, 2]
        >>> path = os.path.join(tempfile.mkdtemp(), 'ladies.gsp')
        >>> gsample.export(
        ...     gsample.algorithms.ladies, A, seeds, fanouts, path=path
        ... )
        >>> sampler = gsample.load_program(path)
        >>> len(sampler(A, torch.tensor([1]), fanouts))
        2
    """
    if not isinstance(program, Compiled):
        program = Compiled(program, options=options)
    elif options is not None:
        program = Compiled(program.__wrapped__, options=options)
    chosen, name = Options.read(program.options), program.name
    function = program.__wrapped__
    given = read_example(name, function, args, kwargs, dynamic)
    _check_modes(name)
    with torch.random.fork_rng(devices=[]):
        found = capture(name, function, given, chosen)
        _choose_layouts(found)
    tensors, inputs = (
        found.tensors,
        list(map(Input.of, found.tensors.values())),
    )
    if not torch.is_grad_enabled():
        tensors = {key: tensor.detach() for key, tensor in tensors.items()}
    try:
        graph = graph_to_json(found.module.graph)
    except ValueError as error:
        raise ValueError(f"export: '{name}': {error}") from error
    header = {
        **{'version': file.VERSION, 'program': name, 'dtype': _dtype()},
        'arguments': found.arguments.to_json(),
        'tensor_inputs': [item.to_json() for item in inputs],
        'inputs': found.inputs,
        'results': found.results,
        'result': found.spec,
        'graph': graph,
    }
    file.write(path, file.pack(header, tensors))


def load_program(
    path: str | os.PathLike[str],
    *,
    tensors: Mapping[str, Tensor] | None = None,
) -> 'ExportedProgram':
    """Loads a program written by :func:`export`.

    A file is data: it is neither unpickled nor run as code, and can only name
    operators of torch and this package. Its generated kernels come from the
    kernel cache if present; otherwise ``g++`` builds them, in about half a
    second each, or torch operators replace them.

    Args:
        path (str): The file.
        tensors (Dict[str, torch.Tensor], optional): Tensors that replace those
            of the file, by name in :attr:`ExportedProgram.tensors`.

    Returns:
        ExportedProgram: A function with the arguments and the samples of the
        program.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the file is damaged, has another format, or was written
            for another version of torch or this package.

    Example:
        See :func:`export`.
    """
    data = path_argument('load_program', 'path', path).read_bytes()
    with _refusing(path):
        header, own = file.unpack(data)
        known = [Input.from_json(item) for item in header['tensor_inputs']]
        for name, value in (tensors or {}).items():
            if name not in own:
                raise ValueError(
                    f"'tensors' must be of {list(own)} (got {name!r})"
                )
            known[list(own).index(name)].check('tensors', name, value)
            own[name] = value
    return ExportedProgram(header, own, str(path))


class ExportedProgram:
    """A loaded program; see :func:`load_program`.

    Calls may omit the constants of the export (such as fan-outs). It can be
    called from any number of threads and pickled, so spawned processes need no
    compilation.

    Args:
        header (Dict[str, Any]): The header of the file.
        tensors (Dict[str, torch.Tensor]): The program's own tensors.
        name (str): Name of the file in errors.

    Raises:
        ValueError: If the header is invalid.
    """

    def __init__(
        self, header: Mapping[str, Any], tensors: dict[str, Tensor], name: str
    ):
        self._header, self._tensors, self._file = header, tensors, name
        with _refusing(name):
            self._read(header)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Raises:
            TypeError: If arguments are missing or unknown.
            ValueError: If an argument does not match the export; the error has
                its name, the rule and the value.
        """
        if is_compiling():
            raise RuntimeError('the program was exported')
        name = self.__name__
        _check_modes(name, self._dtype)
        given = self._arguments.read(name, args, kwargs)
        if torch.is_grad_enabled():
            own = zip(self._inputs_of_tensors, self._tensors, strict=True)
            for item, key in own:
                item.check_gradient(name, key, self._tensors[key])
        outputs = self._function(*[_value(i, given) for i in self._inputs])
        sources = {'output': outputs, 'argument': given}
        results = [
            item if kind == 'fixed' else sources[kind][item]
            for kind, item in self._results
        ]
        return assemble(self._result, results)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The program's own tensors, by name.

        They include the parameters of modules; in-place changes take effect.
        """
        return dict(self._tensors)

    def forget(self) -> None:
        """Drops cached values of graphs and parameters."""
        self._function.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return ExportedProgram, (self._header, self._tensors, self._file)

    def __repr__(self) -> str:
        return f'ExportedProgram({self.__name__}, {self._file})'

    def _read(self, header: Mapping[str, Any]) -> None:
        self.__name__ = str(header['program'])
        self._dtype = header['dtype']
        self._arguments = Arguments.from_json(header['arguments'])
        self._inputs_of_tensors = [
            Input.from_json(item) for item in header['tensor_inputs']
        ]
        count = len(self._arguments.names)
        module = graph_from_json(header['graph'])
        self._inputs = _read_inputs(header, count, self._tensors)
        [last] = [n for n in module.graph.nodes if n.op == 'output']
        if len(list(placeholders(module.graph))) != len(self._inputs):
            raise ValueError('each input of the graph must have a value')
        self._results = _read_results(
            header, count, len(last.args[0]), self._tensors
        )
        self._result = read_spec(header['result'], len(self._results))
        self._function: Any = lower(module)


# Helpers #####################################################################


@contextmanager
def _refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns any failure into an error about the file, of any origin."""
    try:
        yield
    except Exception as error:
        text = str(error)
        if not isinstance(error, ValueError):
            text = f'it is malformed ({type(error).__name__}: {text})'
        raise ValueError(f'load_program: {path}: {text}') from error


def _choose_layouts(found: Capture) -> None:
    """Chooses layouts by calling the program."""
    function = lower(copy.deepcopy(found.module))
    if isinstance(function, Measured):
        for _ in range(_CALLS):
            with program_scope(make_key(0)):
                function(*found.values)
        picks = {site: pick for site, (pick, _) in function.decisions.items()}
        settle(found.module, picks)


def _read_inputs(
    header: Any, count: int, tensors: Mapping[str, Tensor]
) -> list[tuple[str, Any, int]]:
    """Reads the sources of a graph's inputs."""
    out: list[tuple[str, Any, int]] = []
    for kind, *rest in header['inputs']:
        if kind == 'argument':
            out.append((kind, _below(rest[0], count), 0))
        elif kind == 'size':
            out.append((kind, _below(rest[0], count), _below(rest[1], 64)))
        else:
            found = _key_state if kind == 'key' else tensors[rest[0]]
            out.append(('fixed', found, 0))
    return out


def _read_results(
    header: Any, count: int, num_outputs: int, tensors: Mapping[str, Tensor]
) -> list[tuple[str, Any]]:
    """Reads the sources of a result's tensors."""
    out: list[tuple[str, Any]] = []
    for kind, item in header['results']:
        if kind == 'output':
            out.append((kind, _below(item, num_outputs)))
        elif kind == 'argument':
            out.append((kind, _below(item, count)))
        else:
            fixed = tensors[item] if kind == 'tensor' else int(item)
            out.append(('fixed', fixed))
    return out


def _value(source: tuple[str, Any, int], given: list[Tensor]) -> Any:
    """Returns an input of a graph."""
    kind, item, dim = source
    if kind == 'argument':
        return given[item]
    return given[item].shape[dim] if kind == 'size' else item


def _below(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f'an index must be in [0, {count}) (got {value!r})')
    return value


def _check_modes(name: str, dtype: str | None = None) -> None:
    """Checks the modes at export and at calls.

    Raises:
        ValueError: If they differ.
    """
    if torch.is_autocast_enabled('cpu'):
        raise ValueError(
            f'{name}: an exported program must run without autocast (got it '
            'enabled)'
        )
    if dtype not in (None, _dtype()):
        raise ValueError(
            f"{name}: torch's default dtype must be {dtype}, as at "
            f'export (got {_dtype()})'
        )


def _dtype() -> str:
    return str(torch.get_default_dtype()).removeprefix('torch.')
