"""The computation of an inference: its checked arguments.

A model, a graph and features come in; layers, columns and rows go out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torch_gsample.graph_input import as_graph
from torch_gsample.storage.feature_store import DiskFeatureStore
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.inference.columns import (
    Columns,
    DiskColumns,
    MemoryColumns,
)
from torch_gsample.storage.inference.layers import (
    Layer,
    check_edge_features,
    layers_of,
)
from torch_gsample.storage.inference.rows import Rows, as_rows


@dataclass
class Problem:
    """The computation: checked arguments."""

    layers: list[Layer]
    graph: Any
    features: dict[Any, Rows]
    #: Edge type, types of its ends, columns.
    relations: list[tuple[Any, Any, Any, Columns]]
    num_nodes: dict[Any, int]
    #: The dtype to which rows are converted.
    dtype: torch.dtype | None
    #: Features of edges, by edge type.
    edge_rows: dict[Any, Rows]

    @classmethod
    def read(
        cls,
        model: Any,
        graph: Any,
        features: Any,
        layers: Any,
        edge_features: Any,
    ) -> 'Problem':
        """Checks the arguments of :func:`infer`."""
        if isinstance(graph, ChunkedGraph):
            graph.refuse_segments('infer')
            types = graph.sampler_graph()
            columns: list[Columns] = [
                DiskColumns(graph, i) for i in range(len(types.edge_types))
            ]
        else:
            if isinstance(graph, (str, Path)):
                raise TypeError(
                    "infer: 'graph' must be a ChunkedGraph or a graph in "
                    f'memory (got a path): open it by ChunkedGraph({graph!r})'
                )
            graph = types = as_graph(graph)
            columns = [MemoryColumns(csc) for csc in graph.columns]
        relations = [
            (t, *types.end_types(t), c)
            for t, c in zip(types.edge_types, columns, strict=True)
        ]
        counts = dict(zip(types.node_types, types.num_nodes, strict=True))
        rows = _read_features(features, counts)
        made = layers_of(model, layers, types.is_hetero)
        floats = [p.dtype for p in model.parameters() if p.is_floating_point()]
        dtype = floats[0] if floats else None
        edges = _read_edge_features(
            edge_features, {t: c.num_edges for t, _, _, c in relations}
        )
        check_edge_features(made, {*edges})
        return cls(made, graph, rows, relations, counts, dtype, edges)


def _read_features(features: Any, counts: dict[Any, int]) -> dict[Any, Rows]:
    """Returns the rows of each type of nodes.

    Raises:
        ValueError: If there is not a row for each node.
    """
    found: Mapping[Any, Any]
    if isinstance(features, DiskFeatureStore):
        found = {
            attr.group_name: features.files.get((attr.group_name, 'x'))
            or features.get_tensor(attr.group_name, 'x', None)
            for attr in features.get_all_tensor_attrs()
            if attr.attr_name == 'x'
        }
    else:
        found = features if isinstance(features, Mapping) else {None: features}
    out = {}
    for kind, value in found.items():
        if kind not in counts:
            raise ValueError(
                f"infer: 'features' must be of the node types {[*counts]} "
                f'(got {kind!r})'
            )
        out[kind] = as_rows(value, repr(kind))
        if len(out[kind]) != counts[kind]:
            raise ValueError(
                f"infer: 'features' of {kind!r} must have a row for each of "
                f'{counts[kind]} nodes (got {len(out[kind])})'
            )
    if out.keys() != counts.keys():
        raise ValueError(
            f"infer: 'features' must have rows of each node type {[*counts]} "
            f'(got {[*out]})'
        )
    return out


def _read_edge_features(value: Any, counts: dict[Any, int]) -> dict[Any, Rows]:
    """Returns the rows of edges, by edge type.

    Raises:
        ValueError: If there is not a row for each edge.
    """
    if value is None:
        return {}
    found = value if isinstance(value, Mapping) else {None: value}
    out = {}
    for relation, rows in found.items():
        if relation not in counts:
            raise ValueError(
                f"infer: 'edge_features' must be of the edge types "
                f'{[*counts]} (got {relation!r})'
            )
        out[relation] = as_rows(rows, repr(relation))
        if len(out[relation]) != counts[relation]:
            raise ValueError(
                f"infer: 'edge_features' of {relation!r} must have a row for "
                f'each of {counts[relation]} edges (got '
                f'{len(out[relation])})'
            )
    return out
