"""Reads and checks the return value of a sampling program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from torch_gsample.algorithms.shadow import Subgraphs
from torch_gsample.graph import Graph
from torch_gsample.samplers.program.gradients import check_no_gradients
from torch_gsample.samplers.program.layers import Relations
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.convert import LayeredOutput, check_distinct
from torch_gsample.sparse_sample.ids import column


@dataclass
class Returned:
    """The return value of a program, by type.

    Args:
        layers (List[Dict[EdgeType, SparseSample]]): From the seeds outwards.
        induced (Dict[NodeType, torch.Tensor], optional): The nodes of an
            induced subgraph, whose edges are the only layer.
        subgraphs (Subgraphs, optional): A subgraph for each seed, instead of
            layers.
        node_attributes (Dict[NodeType, Dict[str, torch.Tensor]]): Attributes
            of all nodes of the graph.
    """

    layers: list[Relations]
    induced: dict[Any, Tensor] | None = None
    subgraphs: Subgraphs | None = None
    node_attributes: dict[Any, dict[str, Tensor]] = field(default_factory=dict)


def read_returned(
    name: str, graph: Graph, returned: Any, disjoint: bool = False
) -> Returned:
    """Returns a program's output in one form.

    Args:
        name (str): The sampler, for errors.
        graph (Graph): The graph.
        returned: Layers, a subgraph, or subgraphs; or a pair of one of them
            and attributes.
        disjoint (bool, optional): Whether subgraphs are expected.

    Raises:
        TypeError: If the output has another form.
        ValueError: If a matrix or an attribute does not fit the graph, or a
            worker would have to send gradients.
    """
    returned = _unjoined(returned)
    if get_worker_info() is not None:
        check_no_gradients(name, returned)
    sample, attributes = returned, None
    if isinstance(returned, tuple) and len(returned) == 2:
        first, second = returned
        if not _is_layer(graph, second):
            sample, attributes = first, second
    if disjoint != isinstance(sample, Subgraphs):
        raise _wrong_type(name, graph, sample, disjoint)
    if disjoint:
        out = Returned([], subgraphs=sample)
    else:
        out = _read_layers(name, graph, sample)
    if attributes is not None:
        out.node_attributes = _read_attributes(name, graph, attributes)
    return out


def _unjoined(returned: Any) -> Any:
    """Returns the layers in place of what ``to_sampler_output`` made."""
    if isinstance(returned, LayeredOutput):
        return returned.layers
    if type(returned) is tuple:
        return tuple([_unjoined(part) for part in returned])
    return returned


def _read_layers(name: str, graph: Graph, sample: Any) -> Returned:
    induced = _is_layer(graph, sample)
    layers = [sample] if induced else sample
    if not isinstance(layers, (list, tuple)) or not layers:
        raise _wrong_type(name, graph, sample)
    out = Returned([_read_layer(name, graph, layer) for layer in layers])
    if induced:
        out.induced = _induced_nodes(graph, out.layers[0])
    return out


def _is_layer(graph: Graph, value: Any) -> bool:
    if not graph.is_hetero:
        return isinstance(value, SparseSample)
    return isinstance(value, Mapping) and all(
        isinstance(matrix, SparseSample) for matrix in value.values()
    )


def _wrong_type(
    name: str, graph: Graph, got: Any, disjoint: bool = False
) -> TypeError:
    if disjoint or isinstance(got, Subgraphs):
        return TypeError(
            f"{name}: 'program' must return Subgraphs if and only if "
            f"'disjoint=True' (got a {type(got).__name__})"
        )
    layer = 'a SparseSample'
    if graph.is_hetero:
        layer = 'a dictionary of SparseSamples by edge type'
    what = f'a {type(got).__name__}'
    if isinstance(got, (list, tuple)):
        what = f'{[type(item).__name__ for item in got]}'
    return TypeError(
        f"{name}: 'program' must return {layer} or a list of them, and may "
        f'return node attributes behind (got {what})'
    )


def _read_layer(name: str, graph: Graph, layer: Any) -> Relations:
    if not _is_layer(graph, layer):
        raise _wrong_type(name, graph, [layer])
    relations = layer if graph.is_hetero else {None: layer}
    for edge_type, matrix in relations.items():
        if edge_type not in graph.edge_types:
            raise ValueError(
                f"{name}: the matrices that 'program' returns must be of "
                f'edge types {list(graph.edge_types)} (got {edge_type})'
            )
        check_distinct(
            name,
            "the columns of a matrix that 'program' returns",
            matrix.col_ids,
        )
        sizes = [graph.counts[t] for t in graph.end_types(edge_type)]
        for kind, ids, size, most in zip(
            ('row', 'col'),
            (matrix.row_ids, matrix.col_ids),
            matrix.shape,
            sizes,
            strict=True,
        ):
            if ids is None and size > most:
                raise ValueError(
                    f"{name}: a matrix without '{kind}_ids' that 'program' "
                    f'returns must have at most {most} {kind}s, the nodes of '
                    f'the graph (got {size})'
                )
    return dict(relations)


def _induced_nodes(graph: Graph, layer: Relations) -> dict[Any, Tensor]:
    """Returns the nodes of a subgraph, isolated ones included."""
    none = torch.empty(0, dtype=torch.int64)
    nodes: dict[Any, list[Tensor]] = {t: [none] for t in graph.node_types}
    for edge_type, matrix in layer.items():
        source, target = graph.end_types(edge_type)
        cols, rows = matrix.col_ids, matrix.row_ids
        nodes[target].append(column(matrix) if cols is None else cols)
        nodes[source].append(matrix.row() if rows is None else rows)
    return {t: torch.cat(ids) for t, ids in nodes.items()}


def _read_attributes(
    name: str, graph: Graph, attributes: Any
) -> dict[Any, dict[str, Tensor]]:
    by_type = attributes if graph.is_hetero else {None: attributes}
    if not isinstance(by_type, Mapping) or not all(
        isinstance(named, Mapping) for named in by_type.values()
    ):
        raise TypeError(
            f"{name}: the node attributes that 'program' returns must be a "
            'dictionary by name'
            f'{", of each node type" if graph.is_hetero else ""} '
            f'(got {type(attributes).__name__})'
        )
    for node_type, named in by_type.items():
        if node_type not in graph.counts:
            raise ValueError(
                f"{name}: node attributes that 'program' returns must be of "
                f'node types {list(graph.node_types)} (got {node_type!r})'
            )
        size = graph.counts[node_type]
        for key, value in named.items():
            if not isinstance(value, Tensor) or value.shape[:1] != (size,):
                got = (
                    f'shape {list(value.shape)}'
                    if isinstance(value, Tensor)
                    else type(value).__name__
                )
                raise ValueError(
                    f"{name}: the node attribute '{key}' that 'program' "
                    f'returns must be a tensor of {size} rows, one for each '
                    f'node of the graph (got {got})'
                )
    return {t: dict(named) for t, named in by_type.items()}
