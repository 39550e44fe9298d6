"""What a ``SparseSample`` becomes at the end of a program."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.sampler import SamplerOutput

from torch_gsample import ops

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample


class Convert:
    """Other formats of the same matrix."""

    __slots__ = ()

    def to_coo(self: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Returns row, column and value of each edge."""
        return (*self.coo(), self.values())

    def to_edge_index(self: Any) -> Tensor:
        """Returns the edges as int64 ``[2, num_edges]``, by position."""
        return torch.stack(self.coo())

    def to_csc(self: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Returns ``indptr``, ``indices`` and values by column."""
        out = self.by_column()
        return out.csc.indptr, out.csc.indices, out.values()

    def to_csr(self: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Returns ``indptr``, ``indices`` and values by row."""
        return self.T.to_csc()

    def to_dense(self: Any) -> Tensor:
        """Returns the dense matrix; duplicate edges add up."""
        values = self.values()
        row, col = self.coo()
        out = values.new_zeros(
            (self.num_rows * self.num_cols,) + values.shape[1:]
        )
        out = out.index_add(0, row * self.num_cols + col, values)
        return out.view(*self.shape, *values.shape[1:])

    def to_torch_sparse(
        self: Any, layout: torch.layout = torch.sparse_csc
    ) -> Tensor:
        """Returns a ``torch.sparse`` tensor.

        Args:
            layout (torch.layout, optional): COO, CSR or CSC.

        Raises:
            ValueError: If the layout is not one of these.
        """
        if layout == torch.sparse_csc:
            make: Any = torch.sparse_csc_tensor
            parts = self.to_csc()
        elif layout == torch.sparse_csr:
            make, parts = torch.sparse_csr_tensor, self.to_csr()
        elif layout == torch.sparse_coo:
            return torch.sparse_coo_tensor(
                self.to_edge_index(), self.values(), self.shape
            )
        else:
            raise ValueError(
                "to_torch_sparse: 'layout' must be torch.sparse_coo, "
                f'torch.sparse_csr or torch.sparse_csc (got {layout})'
            )
        indptr, indices, values = parts
        indices = indices.to(indptr.dtype)
        return make(indptr, indices, values, self.shape)

    def to_sparse_tensor(self: Any) -> Any:
        """Returns torch-sparse's ``SparseTensor``: an ``adj_t``.

        Raises:
            ImportError: If torch-sparse is not installed.
        """
        from torch_sparse import SparseTensor

        row, col = self.coo()
        return SparseTensor(
            row=col, col=row, value=self.value, sparse_sizes=self.shape[::-1]
        )

    def to_scipy(self: Any) -> Any:
        """Returns a SciPy ``csc_matrix``."""
        from scipy.sparse import csc_matrix

        indptr, indices, values = self.to_csc()
        return csc_matrix(
            (values.detach().numpy(), indices.numpy(), indptr.numpy()),
            shape=self.shape,
        )

    def to_data(self: Any) -> Data:
        """Returns a ``Data`` of the nodes that :meth:`nodes` lists.

        Returns:
            Data: ``edge_index`` by position in ``n_id``, ``n_id``, ``e_id``,
            and ``edge_weight`` if the matrix has values.

        Raises:
            ValueError: If two columns are one node.
        """
        out = _join('to_data', [self])
        data = Data(
            edge_index=torch.stack([out.row, out.col]),
            n_id=out.node,
            e_id=out.edge,
            num_nodes=out.node.numel(),
        )
        if self.value is not None:
            data.edge_weight = self.by_column().value
        return data

    def to_dgl_graph(self: Any) -> Any:
        """Returns a DGL graph of a square matrix.

        Raises:
            ImportError: If DGL is not installed.
        """
        import dgl

        if self.num_rows != self.num_cols:
            raise ValueError(
                'to_dgl_graph: the matrix must be square (got shape '
                f'{list(self.shape)}); see to_dgl_block'
            )
        out = self.by_column()
        graph = dgl.graph(out.coo(), num_nodes=out.num_rows)
        return out._with_dgl_data(graph, dgl)

    def to_dgl_block(self: Any) -> Any:
        """Returns a DGL block: columns first, then the rows with edges.

        Raises:
            ImportError: If DGL is not installed.
            ValueError: If two columns are one node.
        """
        import dgl

        out = _join('to_dgl_block', [self])
        block = dgl.create_block(
            (out.row, out.col),
            num_src_nodes=out.node.numel(),
            num_dst_nodes=self.num_cols,
        )
        block.srcdata[dgl.NID] = out.node
        block.dstdata[dgl.NID] = out.node[: self.num_cols]
        return self.by_column()._with_dgl_data(block, dgl)

    def _with_dgl_data(self: Any, graph: Any, dgl: Any) -> Any:
        graph.edata[dgl.EID] = self.edge_id
        if self.value is not None:
            graph.edata['w'] = self.value
        return graph

    @staticmethod
    def to_sampler_output(
        layers: 'Sequence[SparseSample]', seeds: Tensor | None = None
    ) -> SamplerOutput:
        """Joins the layers of a sample for PyG.

        Args:
            layers (List[SparseSample]): From the seeds outwards: columns are
                what a layer was sampled for.
            seeds (torch.Tensor, optional): The seeds; the columns of the first
                layer if not given.

        Returns:
            SamplerOutput: Nodes by first occurrence, seeds first, and edges
            column by column, layer after layer, with the counts of both.

        Raises:
            ValueError: If there is no layer and no seed, or seeds or the
                columns of a layer are repeated: the edges of two columns would
                add up at one node.
        """
        return _join('to_sampler_output', layers, seeds)


def _join(
    name: str, layers: 'Sequence[SparseSample]', seeds: Tensor | None = None
) -> SamplerOutput:
    if seeds is None:
        if not layers:
            raise ValueError(
                f"{name}: 'layers' must not be empty without 'seeds'"
            )
        seeds = layers[0].col_ids
        if seeds is None:
            seeds = torch.arange(layers[0].num_cols, device=layers[0].device)
    check_distinct(name, "'seeds'", seeds)
    for i, layer in enumerate(layers):
        check_distinct(name, f'the columns of layer {i}', layer.col_ids)
    layers = [layer.by_column() for layer in layers]
    rows = [layer.row_of_edge() for layer in layers]
    cols = [layer.column_of_edge() for layer in layers]
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
    """Checks that no node is repeated.

    Raises:
        ValueError: If one is.
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
    """Returns how many nodes each part is the first to hold.

    Args:
        places (List[torch.Tensor]): The number of each node of each part, by
            first occurrence through all parts.
    """
    seen, counts = 0, []
    for part in places:
        size = max(seen, int(part.max()) + 1 if part.numel() > 0 else 0)
        counts.append(size - seen)
        seen = size
    return counts
