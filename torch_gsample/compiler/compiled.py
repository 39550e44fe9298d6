"""Functions compiled at their first call."""

import contextlib
import functools
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample.compiler.backend import backend
from torch_gsample.compiler.errors import (
    CompileError,
    check_no_data,
    describe,
    describe_limit,
    is_capture_error,
    is_limit,
)
from torch_gsample.compiler.options import Options
from torch_gsample.locks import at_fork
from torch_gsample.ops._check import INDEX_DTYPES
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.repeat import unrolled
from torch_gsample.torch_private import is_transformed
from torch_gsample.torch_private.direct import Direct
from torch_gsample.torch_private.dynamo import (
    may_change,
    only_as_compiled,
    own_copy,
    unknown_length,
)
from torch_gsample.torch_private.errors import (
    BackendCompilerFailed,
    TorchRuntimeError,
)

_OR = (
    'Or let it run uncompiled: `compile(..., fullgraph=False)`, or without '
    '`compile=True` of a sampler.'
)

#: First calls from several threads wait for each other, as each would compile.
#: Forks wait as well, because the child would inherit Dynamo's held locks.
_FIRST_CALLS = threading.RLock()
at_fork(
    before=_FIRST_CALLS.acquire,
    after_in_parent=_FIRST_CALLS.release,
    after_in_child=_FIRST_CALLS.release,
)


class Compiled:
    """A sampling program, compiled at its first call.

    Other attributes, such as the parameters of a module, are those of the
    program. It can be pickled and copied if the program can; a copy is
    compiled at its own first call.

    Args:
        program (Callable): A function of matrices, seeds and more.
        fullgraph (bool, optional): See :func:`compile`.
        options (Dict[str, Any], optional): Options of the backend.
        backend (Callable, optional): Another backend.

    Raises:
        TypeError: If ``program`` cannot be called, or an option has the wrong
            type.
        ValueError: If an option is unknown.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        fullgraph: bool = True,
        options: Mapping[str, Any] | None = None,
        backend: Callable[..., Any] | None = None,
    ):
        if isinstance(program, type) or not callable(program):
            is_sampler = hasattr(program, 'sample_from_nodes')
            hint = '; pass compile=True to a sampler' if is_sampler else ''
            raise TypeError(
                f"compile: 'program' must be a function (got {program!r}"
                f'{hint})'
            )
        Options.read(options)
        self.fullgraph, self.options = fullgraph, dict(options or {})
        self._backend = backend
        functools.update_wrapper(self, program, updated=())
        #: Compiled programs, by the state of the calling thread.
        self._functions: dict[tuple[Any, ...], Direct] = {}
        self._eager = self._is_limited = False
        #: The caches of the backend's results.
        self._keeping: weakref.WeakSet[Any] = weakref.WeakSet()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program."""
        if self._eager or is_compiling() or is_transformed():
            return self.__wrapped__(*args, **kwargs)
        state = _state_of_thread()
        function = self._functions.get(state)
        if function is not None:
            made = function.find(args, kwargs)
            if made is not None:
                return made(*args, **kwargs)
        args, kwargs = _mark_seeds(args, kwargs)
        if function is not None:
            return self._run(function, args, kwargs)
        with _FIRST_CALLS:
            function = self._functions.get(state)
            if function is None:  # no other thread compiled it first
                function = Direct(
                    self._new_function(self._backend or backend, self.options)
                )
            out = self._run(function, args, kwargs)
            self._functions[state] = function
        return out

    @property
    def is_compiled(self) -> bool:
        """Whether it is compiled for the current modes."""
        return _state_of_thread() in self._functions

    def forget(self) -> None:
        """Drops cached values of graphs and parameters.

        The next call recomputes them; see :func:`torch_gsample.forget`.
        """
        for function in list(self._keeping):
            function.forget()

    def capture(self, backend: Any, args: Any, kwargs: Any) -> None:
        """Compiles the program again, with another backend, and calls it."""
        self.capture_as_marked(backend, *_mark_seeds(args, kwargs))

    def capture_as_marked(
        self, backend: Any, args: Any, kwargs: Any, unrolls: bool = False
    ) -> Any:
        """Compiles and calls the program with marked arguments.

        The caller has marked the sizes that Dynamo must not fix. With
        ``unrolls``, the package's own loops become operators of their steps.
        """
        loops = unrolled() if unrolls else contextlib.nullcontext()
        with _FIRST_CALLS, loops:
            return self._run(self._new_function(backend, {}), args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Binds a decorated method to its object."""
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles a decorated function by name, like any function."""
        name = getattr(self, '__qualname__', '')
        found: Any = sys.modules.get(getattr(self, '__module__', ''))
        for part in name.split('.'):
            found = getattr(found, part, None)
        if found is self:
            return name
        return Compiled, (self.__wrapped__, self.fullgraph, self.options)

    def __repr__(self) -> str:
        return f'compile({self.name})'

    @property
    def name(self) -> str:
        """The name of the program."""
        program = self.__wrapped__
        return getattr(program, '__name__', type(program).__name__)

    def _new_function(
        self, backend: Any, options: Mapping[str, Any]
    ) -> Callable[..., Any]:
        def noted(gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
            function = backend(gm, example_inputs, **kwargs)
            if hasattr(function, 'forget'):
                self._keeping.add(function)
            return function

        return torch.compile(
            own_copy(self.__wrapped__),
            backend=noted,
            fullgraph=True,
            options={**options, 'guard_filter_fn': may_change},
        )

    def _run(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            check_no_data(self.name, args, error)
            of_backend = isinstance(error, BackendCompilerFailed)
            if of_backend or not is_capture_error(error):
                raise
            if is_limit(error):
                return self._run_as_compiled(function, args, kwargs)
            cause, text = error, describe(self.name, error)
        if not self.fullgraph:
            warnings.warn(f'{text}\nIt runs uncompiled.', stacklevel=3)
            self._eager = True
            return self.__wrapped__(*args, **kwargs)
        if _is_of_program(cause):
            try:
                self.__wrapped__(*args, **kwargs)  # raises the error
            except TypeError as error:
                check_no_data(self.name, args, error)
                raise
        raise CompileError(f'{text}\n{_OR}') from cause

    def _run_as_compiled(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Runs the program after Dynamo's recompilation limit."""
        with _FIRST_CALLS:
            for state, found in self._functions.items():
                if found is function:  # no other thread was first
                    self._functions[state] = Direct(
                        only_as_compiled(function.compiled)
                    )
            warn, self._is_limited = not self._is_limited, True
        if warn:
            warnings.warn(describe_limit(self.name), stacklevel=4)
        return self.__wrapped__(*args, **kwargs)


def compile(
    program: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = True,
    **options: Any,
) -> Any:
    """Compiles a sampling program with the backend ``'gsample'``.

    The first call compiles it. It draws the samples of the program for the
    same seed. One compilation serves any number of seeds, that is, any length
    of integer vectors in the arguments (also in dictionaries and tuples),
    unless the length equals the number of rows, columns or edges of a matrix.
    Dictionaries with such vectors are copied.

    Other arguments, such as other fan-outs, compile again, up to
    ``torch._dynamo.config.recompile_limit`` times. Further variants then run
    uncompiled, with one warning; existing ones remain compiled.

    Unlike ``torch.compile(program, backend='gsample')``, the result explains
    errors, can be pickled and copied, and supports a first call from several
    threads at once. It can be used as a decorator.

    Args:
        program (Callable): A function or a module.
        fullgraph (bool, optional): Whether to raise an error if the program
            cannot be captured as one graph. Otherwise a warning gives the
            reason, and it runs uncompiled.
        **options (optional): See :class:`~torch_gsample.compiler.Options`.

    Returns:
        Compiled: A function of the same arguments.

    Raises:
        CompileError: At a call, if the program cannot be captured.
        TypeError: If ``program`` cannot be called, or an option has the wrong
            type.
        ValueError: If an option is unknown.

    Example:
        >>> import torch
        >>> import torch_gsample as gsample
        >>> @gsample.compile
        ... def sampler(A, seeds):
        ...     return A[:, seeds].individual_sample(1)
        >>> edge_index = torch.tensor([[1, 1], [0, 2]])
        >>> A = gsample.SparseSample.from_edge_index(edge_index)
        >>> sampler(A, torch.tensor([0, 2])).row()
        tensor([1])
    """
    if program is None:
        return functools.partial(compile, fullgraph=fullgraph, **options)
    return Compiled(program, fullgraph, options)


def _state_of_thread() -> tuple[Any, ...]:
    """Returns the thread's modes on which a capture depends.

    Dynamo compares more of them at each call, such as the number of threads;
    so each worker of a loader would recompile its parent's programs.
    """
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled('cpu'),
        torch.is_autocast_enabled('cuda'),
        torch.get_default_dtype(),
    )


def _mark_seeds(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Returns arguments whose seeds have sizes unknown to Dynamo."""
    sizes: set[int] = set()
    for value in (*args, *kwargs.values()):
        if isinstance(value, SparseSample):
            sizes.update((*value.shape, value.num_edges))
        elif type(value) is dict:
            for A in value.values():
                if isinstance(A, SparseSample):
                    sizes.update((*A.shape, A.num_edges))
    args = tuple([_marked(value, sizes) for value in args])
    return args, _marked(kwargs, sizes) if kwargs else kwargs


def _marked(value: Any, sizes: set[int]) -> Any:
    kind = type(value)
    if kind is not SparseSample and isinstance(value, Tensor):
        vector = value.dim() == 1 and value.dtype in INDEX_DTYPES
        if not vector or value.shape[0] in sizes:
            return value
        value = value.detach()  # the caller's tensor gets no mark
        value.__dict__.update(unknown_length())
    elif kind is dict:
        marked = {key: _marked(item, sizes) for key, item in value.items()}
        if any(marked[key] is not item for key, item in value.items()):
            return marked
    elif kind is tuple:
        return tuple([_marked(item, sizes) for item in value])
    return value


def _is_of_program(error: BaseException) -> bool:
    """Whether the program may raise this error uncompiled as well."""
    observed = 'Observed exception' in str(error)
    return observed or isinstance(error, TorchRuntimeError)
