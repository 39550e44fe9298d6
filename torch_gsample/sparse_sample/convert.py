"""Conversion of a ``SparseSample`` at the end of a program."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch_geometric.data import Data
from torch_geometric.sampler import SamplerOutput

from torch_gsample import ops
from torch_gsample.sparse_sample.extract import by_column
from torch_gsample.sparse_sample.ids import (
    col_ids,
    column_of_edge,
    row_of_edge,
)
from torch_gsample.sparse_sample.parts import Parts


def to_edge_index(matrix: Parts) -> Tensor:
    """Returns row and column positions as int64 ``[2, num_edges]``."""
    return torch.stack(matrix.coo())


def to_csc(matrix: Parts) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``indptr``, ``indices`` and values by column."""
    out = by_column(matrix)
    return out.csc.indptr, out.csc.indices, out.values()


def to_csr(matrix: Parts) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``indptr``, ``indices`` and values by row."""
    return to_csc(matrix.T)


def to_dense(matrix: Parts) -> Tensor:
    """Returns the dense matrix, with parallel edges summed."""
    values = matrix.values()
    row, col = matrix.coo()
    out = values.new_zeros(
        (matrix.num_rows * matrix.num_cols,) + values.shape[1:]
    )
    out = out.index_add(0, row * matrix.num_cols + col, values)
    return out.view(*matrix.shape, *values.shape[1:])


def to_torch_sparse(
    matrix: Parts, layout: torch.layout = torch.sparse_csc
) -> Tensor:
    """Returns a ``torch.sparse`` tensor.

    Args:
        layout (torch.layout, optional): COO, CSR or CSC.

    Raises:
        ValueError: If the layout is not one of these.
    """
    if layout == torch.sparse_csc:
        make: Any = torch.sparse_csc_tensor
        parts = to_csc(matrix)
    elif layout == torch.sparse_csr:
        make, parts = torch.sparse_csr_tensor, to_csr(matrix)
    elif layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(
            to_edge_index(matrix), matrix.values(), matrix.shape
        )
    else:
        raise ValueError(
            "to_torch_sparse: 'layout' must be torch.sparse_coo, "
            f'torch.sparse_csr or torch.sparse_csc (got {layout})'
        )
    indptr, indices, values = parts
    indices = indices.to(indptr.dtype)
    return make(indptr, indices, values, matrix.shape)


def to_sparse_tensor(matrix: Parts) -> Any:
    """Returns torch-sparse's ``SparseTensor``, as an ``adj_t``.

    Raises:
        ImportError: If torch-sparse is not installed.
    """
    from torch_sparse import SparseTensor

    row, col = matrix.coo()
    return SparseTensor(
        row=col, col=row, value=matrix.value, sparse_sizes=matrix.shape[::-1]
    )


def to_scipy(matrix: Parts) -> Any:
    """Returns a SciPy ``csc_matrix``."""
    from scipy.sparse import csc_matrix

    indptr, indices, values = to_csc(matrix)
    return csc_matrix(
        (values.detach().numpy(), indices.numpy(), indptr.numpy()),
        shape=matrix.shape,
    )


def to_data(matrix: Parts) -> Data:
    """Returns a ``Data`` with the nodes of :meth:`nodes`.

    Returns:
        Data: ``edge_index`` by position in ``n_id``, ``n_id``, ``e_id``,
        and ``edge_weight`` if the matrix has values.

    Raises:
        ValueError: If two columns have the same node.
    """
    out = _join('to_data', [matrix])
    data = Data(
        edge_index=torch.stack([out.row, out.col]),
        n_id=out.node,
        e_id=out.edge,
        num_nodes=out.node.numel(),
    )
    if matrix.value is not None:
        data.edge_weight = by_column(matrix).value
    return data


def to_dgl(matrix: Parts, block: bool = False) -> Any:
    """Returns a DGL graph of a square matrix, or a DGL block.

    Args:
        block (bool, optional): Whether to return a block. Its destinations are
            the columns; its sources are the columns, followed by the other
            rows with edges.

    Raises:
        ImportError: If DGL is not installed.
        ValueError: If a graph's matrix is not square, or two columns of a
            block have the same node.
    """
    import dgl

    by_col = by_column(matrix)
    if block:
        out = _join('to_dgl', [matrix])
        graph = dgl.create_block(
            (out.row, out.col),
            num_src_nodes=out.node.numel(),
            num_dst_nodes=matrix.num_cols,
        )
        graph.srcdata[dgl.NID] = out.node
        graph.dstdata[dgl.NID] = out.node[: matrix.num_cols]
    elif matrix.num_rows == matrix.num_cols:
        graph = dgl.graph(by_col.coo(), num_nodes=matrix.num_rows)
    else:
        raise ValueError(
            "to_dgl: without 'block', the matrix must be square (got shape "
            f'{list(matrix.shape)})'
        )
    graph.edata[dgl.EID] = by_col.edge_id
    if by_col.value is not None:
        graph.edata['w'] = by_col.value
    return graph


class _Field:
    """A field of :class:`LayeredOutput`; reading one computes all."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    def __get__(self, out: Any, owner: Any = None) -> Any:
        if out is None:
            return self
        if self._name not in out.__dict__:
            joined = _join('to_sampler_output', out.layers, out.seeds)
            out.__dict__ |= {**joined.__dict__, **out.__dict__}
        return out.__dict__[self._name]

    def __set__(self, out: Any, value: Any) -> None:
        out.__dict__[self._name] = value


class LayeredOutput(SamplerOutput):
    """A ``SamplerOutput`` that keeps the layers it is made of.

    A compiled program returns it with its layers alone, because the sizes of
    its fields depend on drawn nodes; reading a field computes them.
    """

    node, row, col, edge = _Field(), _Field(), _Field(), _Field()
    num_sampled_nodes, num_sampled_edges = _Field(), _Field()

    def __init__(self, layers: Sequence[Parts], seeds: Tensor | None):
        self.layers, self.seeds = layers, seeds


def to_sampler_output(
    layers: Sequence[Parts], seeds: Tensor | None = None
) -> SamplerOutput:
    """Joins the layers of a sample into PyG's ``SamplerOutput``.

    A program of :class:`~torch_gsample.ProgramSampler` may return its result
    in place of its layers.

    Args:
        layers (List[SparseSample]): The layers from the seeds outwards; the
            columns of a layer are its destinations.
        seeds (torch.Tensor, optional): The seeds; default: the columns of the
            first layer.

    Returns:
        SamplerOutput: Nodes by first occurrence, seeds first, and edges
        column by column, layer after layer, with the counts of both.

    Raises:
        ValueError: If there are neither layers nor seeds, or if seeds or the
            columns of a layer contain duplicates, whose edges would add up at
            one node; in a compiled program when a field is read.
    """
    out = LayeredOutput(layers, seeds)
    if not is_dynamo_compiling():
        out.node  # noqa: B018 (computes the fields)
    return out


def _join(
    name: str, layers: Sequence[Parts], seeds: Tensor | None = None
) -> SamplerOutput:
    if seeds is None:
        if not layers:
            raise ValueError(
                f"{name}: 'layers' must not be empty without 'seeds'"
            )
        seeds = col_ids(layers[0])
    check_distinct(name, "'seeds'", seeds)
    for i, layer in enumerate(layers):
        check_distinct(name, f'the columns of layer {i}', layer.col_ids)
    layers = [by_column(layer) for layer in layers]
    rows = [row_of_edge(layer) for layer in layers]
    cols = [column_of_edge(layer) for layer in layers]
    edges = [layer.edge_id for layer in layers]
    parts = [seeds, *rows, *cols]
    ids = torch.cat(parts)
    node, local = ops.unique_nodes(ids)
    places = local.split([part.numel() for part in parts])
    none = seeds.new_empty(0)
    return SamplerOutput(
        node=node,
        row=torch.cat([none, *places[1 : len(layers) + 1]]),
        col=torch.cat([none, *places[len(layers) + 1 :]]),
        edge=torch.cat([none, *edges]),
        num_sampled_nodes=count_new(places)[: len(layers) + 1],
        num_sampled_edges=[layer.num_edges for layer in layers],
    )


def check_distinct(name: str, what: str, ids: Tensor | None) -> None:
    """Checks that nodes are distinct.

    Raises:
        ValueError: If a node is repeated.
    """
    if ids is None or ids.numel() == 0:
        return
    distinct, place = ops.unique_nodes(ids)
    if distinct.numel() < ids.numel():
        node = int(distinct[int(place.bincount().argmax())])
        raise ValueError(
            f'{name}: {what} must be distinct nodes (got {node} repeatedly)'
        )


def count_new(places: Sequence[Tensor]) -> list[int]:
    """Returns the number of nodes that occur first in each part.

    Args:
        places (List[torch.Tensor]): The local id of each node of each part, by
            first occurrence in all parts.
    """
    seen, counts = 0, []
    for part in places:
        size = max(seen, int(part.max()) + 1 if part.numel() > 0 else 0)
        counts.append(size - seen)
        seen = size
    return counts
