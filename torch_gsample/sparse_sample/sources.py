"""Graphs in other libraries' formats, read as ``SparseSample``."""

from typing import Any, TypeAlias

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.adjacency import read_adjacency
from torch_gsample.sparse_sample.arithmetic import with_value
from torch_gsample.sparse_sample.parts import M

#: PyG's name of a relation.
EdgeType: TypeAlias = tuple[str, str, str]
Values: TypeAlias = str | Tensor | None


def read_source(
    cls: type[M], data: Any, edge_type: EdgeType | None, value: Values
) -> M:
    """See :meth:`SparseSample.from_data`."""
    shape: tuple[int, int] | None = None
    transposed = None
    if isinstance(data, (Data, HeteroData)):
        store, shape = _store(data, edge_type)
        value = store[value] if isinstance(value, str) else value
        if 'adj_t' in store:
            data, transposed, shape = store['adj_t'], True, None
        elif 'edge_index' in store:
            data = store['edge_index']
        else:
            raise ValueError(
                "from_data: 'data' has no 'edge_index' and no 'adj_t'"
            )
    elif isinstance(value, str):
        raise TypeError(
            "from_data: the name of a 'value' needs a Data or HeteroData "
            f'(got {type(data).__name__})'
        )
    elif isinstance(data, cls):
        return data if value is None else with_value(data, value)
    edges = read_adjacency(
        'from_data',
        'data',
        data,
        transposed=transposed,
        kinds='a Data, HeteroData, ',
    )
    own = edges.value if value is None else value
    if edges.layout == 'coo':
        return cls.from_coo(edges.row, edges.col, own, shape or edges.shape)
    if edges.layout == 'csr':
        return cls.from_csr(edges.row, edges.col, own, edges.sizes[1])
    out = cls.from_csc(edges.col, edges.row, own, edges.sizes[0])
    out._edge_id = edges.edge_id
    return out


def _store(
    data: Data | HeteroData, edge_type: EdgeType | None
) -> tuple[Any, tuple[int, int]]:
    """Returns the store of the edges, and the numbers of rows and columns."""
    if isinstance(data, Data):
        return data, (data.num_nodes, data.num_nodes)
    if edge_type is None:
        if len(data.edge_types) != 1:
            raise ValueError(
                f"from_data: 'edge_type' must name one of {data.edge_types}"
            )
        edge_type = data.edge_types[0]
    rows, _, cols = edge_type
    return data[edge_type], (data[rows].num_nodes, data[cols].num_nodes)
