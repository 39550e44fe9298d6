"""Symbols of vertex programs: a vertex, its neighbours and edges."""

import builtins
import functools
import linecache
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from torch_gsample.codegen.expression import constant
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
)
from torch_gsample.vertex.frontend.kinds import (
    OUT_EDGE,
    OUT_NEIGHBOR,
    RELATION,
)
from torch_gsample.vertex.frontend.loops import consumed, one_edge
from torch_gsample.vertex.frontend.trace import (
    Given,
    Signature,
    Tracer,
)
from torch_gsample.vertex.frontend.values import (
    Unsupported,
    Value,
    call,
)


class _Symbol:
    """An arbitrary vertex or edge."""

    def _compared(self, other: Any) -> Any:
        raise Unsupported(
            'vertices and edges cannot be compared: the argument '
            "'loops' handles edges from a vertex to itself"
        )

    __eq__ = __ne__ = __lt__ = __gt__ = _compared
    __hash__ = object.__hash__


class Neighbor(_Symbol):
    """A neighbour: the attributes of an in-neighbour are those of sources."""

    def __init__(self, tracer: Tracer, kind: str = SOURCE):
        self._tracer, self._kind = tracer, kind

    def __getattr__(self, name: str) -> Value:
        if name.startswith('__'):
            raise AttributeError(name)
        return self._tracer.feature(name, self._kind)


class InEdge(_Symbol):
    """An in-edge: ``src``, ``dst``, and features of edges."""

    def __init__(self, tracer: Tracer, vertex: 'Vertex'):
        self._tracer = tracer
        self.src, self.dst = Neighbor(tracer), vertex

    def __getattr__(self, name: str) -> Value:
        if name.startswith('__'):
            raise AttributeError(name)
        return self._tracer.feature(name, EDGE)


class OutEdge(_Symbol):
    """An out-edge: ``src``, ``dst``, and features of edges."""

    def __init__(self, tracer: Tracer, vertex: 'Vertex'):
        self._tracer = tracer
        self.src, self.dst = vertex, Neighbor(tracer, OUT_NEIGHBOR)

    def __getattr__(self, name: str) -> Value:
        if name.startswith('__'):
            raise AttributeError(name)
        return self._tracer.feature(name, OUT_EDGE)


class _Each:
    """Yields one symbol that represents all."""

    is_out = False

    def __init__(self, tracer: Tracer, item: Any):
        self._tracer, self._item = tracer, item

    def __iter__(self) -> Iterator[Any]:
        if self._tracer.group not in (None, self):
            raise Unsupported(
                'inside by_type, only the edges of the type can be aggregated'
            )
        self._tracer.loops.append(self.is_out)
        yield from one_edge(self._item)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, _Position):
            raise Unsupported(
                'neighbours and edges can be indexed only by range(len('
                'v.innbs))'
            )
        return self._item

    def __len__(self) -> int:
        raise Unsupported(_Length.refusal)


class _Number:
    """A number unknown at trace time."""

    #: The error message of operations on it.
    refusal: str

    def _refuse(self, *_: Any) -> Any:
        raise Unsupported(self.refusal)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __mod__ = __floordiv__ = __truediv__ = __rtruediv__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = _refuse


class _Position(_Number):
    """The index of each edge, in ``range(len(v.innbs))``."""

    refusal = 'numbers of edges are for indexing only'

    def __index__(self) -> int:
        return 0


class _Length(_Number):
    """The value of ``len(v.innbs)``, usable only in ``range``."""

    refusal = (
        'the number of neighbours is not known: write sum(1.0 for u in '
        'v.innbs)'
    )

    def __init__(self, each: _Each):
        self.each = each


class InEdges(_Each):
    """The in-edges of the vertex; ``by_type`` are those of each type."""

    @property
    def by_type(self) -> Iterator['EdgesOfType']:
        """Groups of the edges of one type."""
        group = EdgesOfType(self._tracer, self._item)
        self._tracer.group = group
        self._tracer.loops.append(False)
        yield group
        self._tracer.group = None


class OutEdges(_Each):
    """The out-edges of the vertex, or its out-neighbours."""

    is_out = True

    @property
    def by_type(self) -> Any:
        """Raises an error."""
        raise Unsupported(
            'by_type supports in-edges only: reverse the edges in a '
            'separate program'
        )


class EdgesOfType(_Each):
    """The in-edges of one type."""

    @property
    def type(self) -> Value:
        """Their type, an index of parameters."""
        tracer = self._tracer
        key = 'type', RELATION
        if key not in tracer._known:
            tracer._known[key] = tracer.add(
                'type', RELATION, (), torch.int64, Given('type')
            )
        return tracer._known[key]


class Vertex(_Symbol):
    """The vertex at which a program computes.

    Its attributes are features of destinations; ``innbs`` are its
    in-neighbours and ``inedges`` its in-edges, ``outnbs`` and ``outedges``
    those in the other direction.
    """

    def __init__(self, tracer: Tracer):
        self._tracer = tracer
        self.innbs = _Each(tracer, Neighbor(tracer))
        self.inedges = InEdges(tracer, InEdge(tracer, self))
        self.outnbs = OutEdges(tracer, Neighbor(tracer, OUT_NEIGHBOR))
        self.outedges = OutEdges(tracer, OutEdge(tracer, self))

    def __getattr__(self, name: str) -> Value:
        if name.startswith('__'):
            raise AttributeError(name)
        return self._tracer.feature(name, DESTINATION)


def _length(x: Any) -> Any:
    """Replaces ``len``."""
    return _Length(x) if isinstance(x, _Each) else len(x)


def _range(*args: Any) -> Any:
    """Replaces ``range``."""
    if not any(isinstance(x, _Length) for x in args):
        return range(*args)
    if len(args) > 1:
        raise Unsupported('only range(len(v.innbs)) has the indices of edges')
    return (_Position() for _ in args[0].each)


def _enumerate(values: Iterable[Any], start: int = 0) -> Any:
    """Replaces ``enumerate``."""
    items = values if isinstance(values, _Each) else list(values)
    if isinstance(items, list) and not _is_symbol(items):
        return enumerate(items, start)
    return ((_Position(), item) for item in items)


def _is_symbol(items: list[Any]) -> bool:
    """Whether a list has one item that represents the values of all edges."""
    kinds = [getattr(item, 'kind', '') for item in items]
    return len(kinds) == 1 and kinds[0] in (*_OF_IN_EDGES, *_OF_OUT_EDGES)


_OF_IN_EDGES, _OF_OUT_EDGES = (SOURCE, EDGE), (OUT_NEIGHBOR, OUT_EDGE)


def _aggregation(tracer: Tracer, name: str) -> Callable[..., Any]:
    """Returns the replacement of ``sum``, ``max``, ``min`` or mean."""
    original = getattr(builtins, name, None)

    def aggregate(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and any(isinstance(x, Value) for x in args):
            return _pairwise(name, args)
        if len(args) != 1 or kwargs or not isinstance(args[0], Iterable):
            return original(*args, **kwargs)  # type: ignore
        before = len(tracer.loops)
        items = consumed(args[0])
        begun = set(tracer.loops[before:])
        del tracer.loops[before:]  # the enclosing code has its own loops
        if len(items) != 1:
            if any(isinstance(x, Value) for x in items):
                return _pairwise(name, items)
            return original(items)  # type: ignore
        [item] = items
        kind = item.kind if isinstance(item, Value) else PARAMETER
        if kind in (*_OF_IN_EDGES, RELATION):
            begun.add(False)
        if kind in _OF_OUT_EDGES:
            begun.add(True)
        if len(begun) > 1:
            raise Unsupported(
                f'{name} over in-edges and out-edges at once: '
                'aggregate each direction separately'
            )
        if not begun:
            raise Unsupported(
                f'{name} of a list without values of edges: '
                f'write the comprehension inside {name}(...)'
            )
        if not isinstance(item, Value):
            item = Value(tracer, constant(item, tracer.dtype), PARAMETER, ())
        return tracer.aggregate(name, item, True in begun)

    return aggregate


def _pairwise(name: str, items: Iterable[Any]) -> Any:
    functions = {
        'sum': operator.add,
        'max': lambda x, y: call('maximum', (x, y), {}),
        'min': lambda x, y: call('minimum', (x, y), {}),
    }
    if name not in functions:
        raise Unsupported(f'{name} of several values: add them and divide')
    return functools.reduce(functions[name], items)


def trace(
    function: Callable[..., Any], signature: Signature, names: list[str]
) -> tuple[Tracer, list[Value]]:
    """Runs a vertex program on symbols.

    Args:
        function (Callable): The program.
        signature (Mapping): The features of the call.
        names (List[str]): The names of its parameters.

    Returns:
        Tuple[Tracer, List[Value]]: The recorded program and its results.

    Raises:
        ValueError: If the program is not supported; the error names the line.
    """
    tracer = Tracer(signature)
    aggregations = {
        name: _aggregation(tracer, name)
        for name in ('sum', 'max', 'min', 'mean')
    }
    numbers = {'len': _length, 'range': _range, 'enumerate': _enumerate}
    traced = types.FunctionType(
        function.__code__,
        {**numbers, **function.__globals__, **aggregations},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    try:
        values = {name: tracer.feature(name, PARAMETER) for name in names}
        result = traced(Vertex(tracer), **values)
        results = result if isinstance(result, tuple) else (result,)
        found = [_result(item) for item in results]
        if not found:
            raise Unsupported('a program must return a value')
    except (Unsupported, *_MISTAKES) as error:
        raise ValueError(_located(function, error)) from error
    return tracer, found


def _result(item: Any) -> Value:
    """Returns a result of the vertex, or of each edge from a list."""
    if isinstance(item, Value) and item.kind == DESTINATION:
        return item
    if isinstance(item, list) and len(item) == 1:
        [value] = item
        if isinstance(value, Value) and value.kind == EDGE:
            if not value.tracer.is_given(value):
                return value
            raise Unsupported(
                'features of edges cannot be returned unchanged: '
                'compute a value from them'
            )
        if getattr(value, 'kind', None) in _OF_OUT_EDGES:
            raise Unsupported(
                'values of out-edges cannot be returned: return those of '
                'v.inedges, which are the same edges'
            )
        item = value
    kind = getattr(item, 'kind', type(item).__name__)
    raise Unsupported(
        f'a program must return values of the vertex, or a list with a value '
        f'of each edge (got one of type {kind}): aggregate those of edges'
    )


#: Python's errors for unsupported operations on symbols.
_MISTAKES = AttributeError, TypeError, IndexError


def _located(function: Callable[..., Any], error: Exception) -> str:
    """Returns an error with its line in the function."""
    code, line = function.__code__, function.__code__.co_firstlineno
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == code.co_filename:
            line = frame.tb_lineno
        frame = frame.tb_next
    text = linecache.getline(code.co_filename, line).strip()
    return f'{function.__name__}: line {line}, {text!r}: {error}'
