"""The decorator of vertex programs."""

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

import torch_gsample.vertex.frontend.dropout  # a rule
import torch_gsample.vertex.frontend.functions  # noqa: F401  # rules
from torch_gsample.codegen.unit import (
    DESTINATION,
    PARAMETER,
    SOURCE,
)
from torch_gsample.torch_private import (
    is_transformed,
    without_functorch,
    without_transforms,
)
from torch_gsample.vertex.frontend.precision import (
    is_autocast,
    without_autocast,
)
from torch_gsample.vertex.frontend.trace import (
    Shape,
)
from torch_gsample.vertex.kernels.derivatives import refuse_mapped
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.kernels.layouts import read_graph
from torch_gsample.vertex.kernels.run import Feature, Run, end_of, ends
from torch_gsample.vertex.kernels.tiled_run import run_tiled
from torch_gsample.vertex.plan.pipeline import make_plan
from torch_gsample.vertex.plan.plan import Plan


class VertexProgram:
    """A layer written as the computation at one vertex.

    See :func:`vertex_program`.

    Args:
        function (Callable): The program.
        name (str, optional): Its name in errors; default: the name of the
            function.
        dtypes (Sequence[torch.dtype], optional): The dtype of each result;
            default: torch's promotion of the features.

    Raises:
        TypeError: If ``function`` has no argument for the vertex.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        dtypes: Sequence[torch.dtype] | None = None,
    ):
        if not callable(function) or not hasattr(function, '__code__'):
            raise TypeError(
                f'vertex_program: must decorate a function of a vertex (got '
                f'{type(function).__name__})'
            )
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self.dtypes = dtypes
        parameters = list(inspect.signature(function).parameters.values())
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if not parameters or any(p.kind != plain for p in parameters):
            raise TypeError(
                f'vertex_program: {function.__name__} must have an argument '
                f'for the vertex and named parameters'
            )
        self.parameters = [p.name for p in parameters[1:]]
        self.plans: dict[Any, Plan] = {}
        self._number = next(_numbers)
        _programs[self._number] = self

    def __get__(self, instance: Any, owner: Any = None) -> 'VertexProgram':
        return self

    def __call__(
        self,
        graph: Any,
        *,
        size: tuple[int, int] | None = None,
        loops: Loops = Loops.KEEP,
        **features: Feature,
    ) -> Any:
        """Runs the program at every vertex of a graph.

        Args:
            graph (Any): A :class:`~torch_gsample.SparseSample`,
                ``edge_index``, ``EdgeIndex`` or ``SparseTensor``.
            size (Tuple[int, int], optional): Numbers of sources and
                destinations; default: those of the features.
            loops (Loops, optional): Treatment of self-loops.
            **features (torch.Tensor): Features of vertices and edges,
                ``[rows, ...]``, and parameters. Pass a pair for sources and
                destinations.

        Returns:
            torch.Tensor: ``[num_destinations, ...]``, or a tuple of them.

        Raises:
            IndexError: If a vertex of the graph is out of range.
            TypeError: If the graph or features are of the wrong type.
            ValueError: If the program is not supported, or features have wrong
                shapes.
        """
        name = self.name
        if is_transformed():
            graph, features = _without_transforms(name, graph, features)
        _check_features(name, features, self.parameters)
        plan = self.plan(**features)
        tensors, known = read_graph(graph)
        _check_devices(name, tensors[0].device, features)
        sizes = _sizes(name, plan, features, known, size)
        run = Run(plan, tensors, sizes, loops, features)
        if is_autocast(tensors[0].device):  # else, no context is entered
            with without_autocast(tensors[0].device):
                found = run_tiled(run) or run.results()
        else:
            found = run_tiled(run) or run.results()
        return found[0] if len(found) == 1 else tuple(found)

    def plan(self, **features: Feature) -> Plan:
        """Returns the steps for features, traced once for each shape."""
        key = _signature(features, self.parameters)
        return _plan_of(self._number, key)

    def explain(self, **features: Feature) -> str:
        """Returns the typed program, its fused kernels and their C++ source.

        Args:
            **features (torch.Tensor): As of a call.
        """
        from torch_gsample.vertex.plan.text import explanation

        return explanation(self.function.__name__, self.plan(**features))


#: The programs that are in use. Dynamo's graphs hold numbers, no objects.
_programs: WeakValueDictionary[int, VertexProgram] = WeakValueDictionary()
_numbers = itertools.count()


@torch.compiler.assume_constant_result
def _plan_of(number: int, key: tuple) -> Plan:
    """Returns the steps of a program, traced once for each signature."""
    program = _programs[number]
    known = key, _surroundings(program.function)
    plan = program.plans.get(known)
    if plan is None:
        signature = {
            (name, kind): Shape(shape, dtype)
            for name, kind, shape, dtype in key
        }
        plan = make_plan(
            *(program.function, signature, program.parameters),
            *(program.name, program.dtypes),
        )
        # Dynamo's graphs hold its number: all threads use the same.
        plan = program.plans.setdefault(known, plan)
    return plan


def _surroundings(function: Callable[..., Any]) -> tuple:
    """Returns numbers of a closure, and whether its modules train."""
    found: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            x = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
        if isinstance(x, torch.nn.Module):
            found.append(x.training)
        elif isinstance(x, (bool, int, float, str)):
            found.append((type(x), x))
    return tuple(found)


def vertex_program(function: Callable[..., Any]) -> VertexProgram:
    """Compiles a layer from the computation at one vertex.

    The argument of the function is a vertex ``v``: ``v.x`` are its features,
    ``v.innbs`` its in-neighbours, ``v.inedges`` its in-edges with ``e.src``,
    ``e.dst`` and edge features. ``sum``, ``max``, ``min`` and ``mean`` of a
    comprehension aggregate. Further arguments are parameters. The function is
    traced once and compiled to kernels that are fused from the first feature
    to the last aggregate, forward and backward, as in `"Seastar:
    Vertex-Centric Programming for Graph Neural Networks"
    <https://doi.org/10.1145/3447786.3456247>`_ (EuroSys 2021).

    Args:
        function (Callable): The program.

    Raises:
        TypeError: If ``function`` has no argument for the vertex.

    Example:
        >>> import torch
        >>> import torch.nn.functional as F
        >>> @vertex_program
        ... def gat(v):
        ...     e = [torch.exp(F.leaky_relu(u.eu + v.ev)) for u in v.innbs]
        ...     return sum(c * u.h for c, u in zip(e, v.innbs)) / sum(e)
        >>> edge_index = torch.tensor([[0, 1, 2], [2, 2, 0]])
        >>> h, eu = torch.eye(3), torch.zeros(3, 1)
        >>> gat(edge_index, eu=eu, ev=eu, h=h)[2]
        tensor([0.5000, 0.5000, 0.0000])
    """
    return VertexProgram(function)


def mean(values: Any) -> Any:
    """Averages over the edges of a vertex, inside vertex programs only.

    Args:
        values (Iterable): A comprehension over ``v.innbs`` or ``v.inedges``.

    Raises:
        RuntimeError: Outside a program.
    """
    raise RuntimeError('mean: must be called in a vertex program')


def _without_transforms(
    name: str, graph: Any, features: dict[str, Feature]
) -> tuple[Any, dict[str, Feature]]:
    """Returns the graph, and types of edges, as kernels read them."""
    types = features.get('type')
    refuse_mapped(name, graph, types if isinstance(types, Tensor) else None)
    if isinstance(graph, Tensor):
        graph = without_transforms(graph)
    with without_functorch():
        read_graph(graph)  # which keeps its columns
    if isinstance(types, Tensor):
        features = {**features, 'type': without_transforms(types)}
    return graph, features


def _check_features(
    name: str, features: dict[str, Feature], parameters: list[str]
) -> None:
    for key in parameters:
        if key not in features:
            raise ValueError(f'{name}: parameter {key!r} must be given')
    for key, value in features.items():
        pair = isinstance(value, tuple) and len(value) == 2
        for x in value if pair else (value,):
            if not isinstance(x, Tensor) and not (pair and x is None):
                raise TypeError(
                    f'{name}: {key!r} must be a tensor, or a pair of them '
                    f'(got {type(x).__name__})'
                )
            if isinstance(x, Tensor) and x.device.type not in (
                *('cpu', 'cuda', 'meta'),
            ):
                raise ValueError(
                    f'{name}: {key!r} must be on the CPU or a GPU (got '
                    f'{x.device})'
                )
            if isinstance(x, Tensor) and (
                (x.dim() == 0 and key not in parameters) or 0 in x.shape[1:]
            ):
                raise ValueError(
                    f'{name}: {key!r} must have a row for each vertex or '
                    f'edge, of at least one value (got shape '
                    f'{list(x.shape)})'
                )


def _check_devices(
    name: str, device: torch.device, features: dict[str, Feature]
) -> None:
    for key, value in features.items():
        for x in value if isinstance(value, tuple) else (value,):
            if x is not None and x.device != device:
                raise ValueError(
                    f'{name}: {key!r} must be on {device}, the device '
                    f'of the graph (got {x.device})'
                )


def _signature(features: dict[str, Feature], parameters: list[str]) -> tuple:
    """Returns name, graph type, shape of a row, and dtype of each feature."""
    found = []
    for name, feature in features.items():
        if name in parameters and isinstance(feature, Tensor):
            shape = tuple(int(n) for n in feature.shape)
            found.append((name, PARAMETER, shape, feature.dtype))
            continue
        for kind, x in ends(feature).items():
            shape = tuple(int(n) for n in x.shape[1:])
            found.append((name, kind, shape, x.dtype))
    return tuple(found)


def _sizes(
    name: str,
    plan: Plan,
    features: dict[str, Feature],
    *sizes: tuple[int | None, int | None] | None,
) -> tuple[int, int]:
    """Returns the numbers of sources and destinations, checked."""
    rows: dict[str, int | None] = {SOURCE: None, DESTINATION: None}

    def say(key: str, kind: str, count: int | None) -> None:
        known = rows[kind]
        if known is None:
            rows[kind] = count
        elif count is not None and known != count:
            raise ValueError(
                f'{name}: {key!r} must have {known} rows (got {count})'
            )

    for size in sizes:
        for kind, count in zip(rows, size or (), strict=False):
            say('size', kind, count)
    for key, kind in plan.vertex_features:
        say(key, kind, end_of(features[key], kind).shape[0])
    # A pair says how many vertices there are, whether they are read or not.
    for key, feature in features.items():
        if isinstance(feature, tuple):
            for kind, x in ends(feature).items():
                say(key, kind, x.shape[0])
    sources, destinations = rows[SOURCE], rows[DESTINATION]
    if sources is None:
        sources = destinations
    if destinations is None:
        destinations = sources
    if sources is None or destinations is None:
        raise ValueError(
            f"{name}: 'size' must be given: no features of vertices are used"
        )
    if sources != destinations and plan.has_out_edges:
        raise ValueError(
            f'{name}: out-neighbours need as many sources as destinations '
            f'(got {sources} and {destinations})'
        )
    return sources, destinations
