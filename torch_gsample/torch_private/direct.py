"""Calls of what Dynamo compiled, without its hooks of frames."""

import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch._C._dynamo.eval_frame import (
    _debug_get_cache_entry_list,
    get_eval_frame_callback,
)
from torch._dynamo import eval_frame
from torch.fx._symbolic_trace import is_fx_symbolic_tracing

_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_PLAIN = 'default'


class Direct:
    """Calls a function of ``torch.compile`` by what it compiled before.

    Dynamo sees a call by a hook of the interpreter. To set it, to save what a
    failure could change and to find the frame takes longer than a small
    sample, and several times as long after a large one, which leaves none of
    it in a cache. Here the guards are compared with the arguments, and the
    code that was made for them is called. Where none holds, or anything is
    unusual, the call is Dynamo's.

    Entries of the cache that Dynamo drops are not used: it tells their guards
    that they have none.

    Args:
        function (Callable): Of ``torch.compile``, whose program's code no
            other function has.
    """

    def __init__(self, function: Any):
        self.compiled = function
        self._program = program = function.__wrapped__
        code = program.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        stars = code.co_flags & _STARRED
        self._is_starred = stars == _STARRED and count == 0
        self._names = code.co_varnames[: 2 if self._is_starred else count]
        self._is_plain = self._is_starred or not stars
        defaults = program.__defaults__ or ()
        positional = self._names[: code.co_argcount]
        start = len(positional) - len(defaults)
        self._defaults = dict(zip(positional[start:], defaults, strict=True))
        self._defaults |= program.__kwdefaults__ or {}
        self._cells = tuple(
            zip(code.co_freevars, program.__closure__ or (), strict=True)
        )
        #: Guards and codes, which go where Dynamo drops them.
        self._made: tuple[tuple[weakref.ref[Any], weakref.ref[Any]], ...] = ()

    def find(self, args: Any, kwargs: Any) -> Callable[..., Any] | None:
        """Returns what was compiled for these arguments, if it may be called.

        Args:
            args (Tuple): Positional arguments.
            kwargs (Dict[str, Any]): The others.
        """
        if not self._made or _is_unusual():
            return None
        values = self._locals(args, kwargs)
        if values is not None:
            for references in self._made:
                guards, code = references[0](), references[1]()
                if guards is None or code is None:
                    continue
                if guards.cache_entry is None:  # dropped
                    continue
                if guards.root.check(values):
                    return self._function(code)
        return None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it as Dynamo does, and records what this call compiled."""
        # The cache would never hit: sizes of each capture are new symbols.
        with torch._dynamo.config.patch(fake_tensor_cache_enabled=False):
            out = self.compiled(*args, **kwargs)
        if self._is_plain:
            self._note()
        return out

    def _note(self) -> None:
        made, cells = [], self._program.__code__.co_freevars
        for entry in _debug_get_cache_entry_list(self._program.__code__):
            if entry.code is not None and entry.code.co_freevars == cells:
                guards = weakref.ref(entry.guard_manager)
                made.append((guards, weakref.ref(entry.code)))
        self._made = tuple(made)

    def _function(self, code: types.CodeType) -> Callable[..., Any]:
        """The program with the code that was made of it."""
        program = self._program
        function = types.FunctionType(
            code,
            program.__globals__,
            program.__name__,
            program.__defaults__,
            program.__closure__,
        )
        function.__kwdefaults__ = program.__kwdefaults__
        return function

    def _locals(self, args: Any, kwargs: Any) -> dict[str, Any] | None:
        """The local variables of a frame that begins, by name."""
        if self._is_starred:
            values = dict(zip(self._names, (args, kwargs), strict=True))
        else:
            named = zip(self._names, args, strict=False)
            # A missing or misnamed argument is an error of the call.
            values = {**self._defaults, **dict(named), **kwargs}
        try:
            for name, cell in self._cells:
                values[name] = cell.cell_contents
        except ValueError:  # a cell without a value
            return None
        return values


def _is_unusual() -> bool:
    """Whether somebody else looks at frames, or traces calls."""
    return (
        get_eval_frame_callback() is not None
        or eval_frame._stance.stance != _PLAIN
        or is_fx_symbolic_tracing()
        or torch._C._is_tracing()
    )
