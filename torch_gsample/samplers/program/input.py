"""Inputs of a sampling program: matrices, fan-outs, further arguments."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor
from torch_geometric.typing import EdgeType

from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.graph_input import (
    GraphData,
    InputGraph,
    check_edges,
    edge_attributes,
    read_graph,
    stored_graph,
)
from torch_gsample.ops._check import fanouts as check_fanouts
from torch_gsample.options import ProgramOptions, check_known
from torch_gsample.samplers.arguments import check_flags
from torch_gsample.sparse_sample import SparseSample

Fanouts: TypeAlias = Sequence[int] | Mapping[EdgeType, Sequence[int]]


def check_program(
    name: str,
    program: Any,
    has_fanouts: bool,
    program_kwargs: dict[str, Any],
    exclude_seed_edges: Any,
    **flags: Any,
) -> None:
    """Checks a program and its arguments.

    Raises:
        TypeError: If the program is not callable or lacks an argument, or a
            flag is not a boolean.
        ValueError: If ``exclude_seed_edges`` is unknown.
    """
    if not callable(program):
        raise TypeError(
            f"{name}: 'program' must be a function (A, seeds, fanouts) -> "
            f'layers (got {program!r})'
        )
    _check_arguments(name, program, has_fanouts, program_kwargs)
    if exclude_seed_edges not in (False, True, 'reverse'):
        raise ValueError(
            f"{name}: 'exclude_seed_edges' must be one of (False, True, "
            f"'reverse') (got {exclude_seed_edges!r})"
        )
    check_flags(name, **flags)


def _check_arguments(
    name: str, program: Any, has_fanouts: bool, program_kwargs: dict[str, Any]
) -> None:
    try:
        signature = inspect.signature(program, follow_wrapped=False)
    except ValueError:  # a compiled module has no signature
        return
    taken = signature.parameters
    if all(p.kind is not p.VAR_KEYWORD for p in taken.values()):
        known = [*taken, *ProgramOptions.__annotations__]
        check_known(name, program_kwargs, known)
    args = ('A', 'seeds', 'fanouts') if has_fanouts else ('A', 'seeds')
    try:
        signature.bind_partial(*args, **program_kwargs)
    except TypeError as error:
        raise TypeError(
            f"{name}: 'program' must take ({', '.join(args)}) "
            f'(got ({", ".join(taken)}): {error})'
        ) from None


def checked_fanouts(name: str, graph: Graph, fanouts: Any) -> Fanouts | None:
    """Returns the fan-outs of a program after checks.

    Raises:
        TypeError: If they are not integers.
        ValueError: If they are empty, or of edge types not in the graph.
    """
    if fanouts is None:
        return None
    if isinstance(fanouts, Mapping):
        if set(fanouts) - set(graph.edge_types) or not graph.is_hetero:
            raise ValueError(
                f"{name}: the keys of 'fanouts' must be edge types of the "
                f'graph, {list(graph.edge_types)} (got {list(fanouts)})'
            )
        if not fanouts:
            raise ValueError(f"{name}: 'fanouts' must not be empty")
        return {
            t: checked_list(name, 'fanouts', values)
            for t, values in fanouts.items()
        }
    return checked_list(name, 'fanouts', fanouts)


def checked_list(name: str, argument: str, sizes: Any) -> list[int]:
    """Returns a list with a number for each layer, each at least -1.

    Raises:
        TypeError: If they are not integers.
        ValueError: If the list is empty, or a number is below -1.
    """
    if isinstance(sizes, (str, Tensor)) or not isinstance(sizes, Sequence):
        raise TypeError(
            f"{name}: '{argument}' must be a list of integers, one for each "
            f'layer (got {sizes!r})'
        )
    if not sizes:
        raise ValueError(
            f"{name}: '{argument}' must not be empty (got {sizes!r})"
        )
    return check_fanouts(name, argument, sizes)


def open_graph(
    name: str,
    data: GraphData,
    weight_attr: str | None = None,
    is_sorted: bool = False,
    true_negatives: Any = False,
) -> tuple[Graph, dict[Any, SparseSample]]:
    """Returns a graph and its matrices, in memory or on disk.

    Raises:
        ValueError: If there are no edges, ``weight_attr`` is unknown, or a
            graph on disk is used with ``true_negatives``.
    """
    stored = stored_graph(data)
    if stored is not None:
        if true_negatives:
            raise ValueError(
                f"{name}: 'true_negatives' must be False for a graph on disk "
                f'(got {true_negatives!r})'
            )
        return stored.open_programs(name, weight_attr)
    source = read_graph(data, is_sorted=is_sorted, name=name)
    return source.graph, read_matrices(name, data, source, weight_attr)


def prepare_rows(matrix: SparseSample) -> None:
    """Builds the rows that walks follow, once instead of in each worker.

    Raises:
        ValueError: If the graph is on disk without rows.
    """
    if matrix._disk is not None:
        matrix._disk.check_rows()
    else:
        _ = matrix.csr


def read_matrices(
    name: str, data: GraphData, source: InputGraph, weight_attr: str | None
) -> dict[Any, SparseSample]:
    """Returns the graph as matrices with the edge ids of the data.

    Raises:
        ValueError: If there are no edges, or ``weight_attr`` is unknown.
    """
    check_edges(name, source.has_edges)
    graph = source.graph
    weights: dict[Any, Tensor] = {}
    if weight_attr is not None:
        weights = edge_attributes(data, graph, weight_attr)
        if not weights:
            raise ValueError(
                f"{name}: the weight attribute '{weight_attr}' is not "
                f'an edge-level attribute'
            )
    return {
        t: SparseSample(
            CSC(csc.indptr, csc.indices, csc.num_rows),
            None,
            (csc.num_rows, csc.num_cols),
            csc.in_columns(weights[t].cpu()).contiguous()
            if t in weights
            else None,
            csc.edge_id,
        )
        for t, csc in graph.items()
    }


def bind_program(
    program: Callable[..., Any],
    fanouts: Fanouts | None,
    kwargs: Mapping[str, Any],
) -> Callable[[Any, Any], Any]:
    """Returns a program as a function of matrices and seeds alone."""
    args = () if fanouts is None else (fanouts,)

    @functools.wraps(program, updated=())
    def run(A: Any, seeds: Any) -> Any:
        return program(A, seeds, *args, **kwargs)

    return run
