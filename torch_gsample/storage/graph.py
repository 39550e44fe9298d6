"""A graph on disk as PyG's loaders and samplers see it."""

import inspect
from pathlib import Path
from typing import Any

from torch_geometric.data import EdgeAttr, GraphStore
from torch_geometric.data.graph_store import EdgeLayout

from torch_gsample.options import check_known
from torch_gsample.storage.as_matrices import Matrices
from torch_gsample.storage.stored_graph import StoredGraph
from torch_gsample.storage.stored_source import stored_source
from torch_gsample.storage.write import write_graph


class ChunkedGraph(StoredGraph, Matrices, GraphStore):
    """A graph in chunks on disk; only its chunk table is in memory.

    It is a :class:`~torch_geometric.data.GraphStore` that never returns its
    edges. With a ``FeatureStore``, it is the ``data`` of a loader whose
    ``sampler`` is a :class:`RandomReadSampler` or :class:`StreamingSampler`.

    Args:
        path (str or Path): A directory written by :meth:`write`.
        direct (bool, optional): Whether to read by direct I/O, bypassing the
            page cache, if the file system supports it.
        verify (str, optional): When blocks are checked against their
            checksums: ``'once'``, on the first read by this process or its
            forks, and again if the file changes; ``'always'``, or
            ``'never'``. The description of the graph is always checked.
            Except with ``'never'``, this takes 4 bytes of memory (5 for
            ``'once'``) for each block of 4 KiB.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If a file breaks a rule of the format, or ``verify`` is
            not one of these.

    Example:
        >>> import tempfile, torch
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / 'graph'
        ...     graph = ChunkedGraph.write(path, edge_index, num_nodes=3)
        ...     graph.verify()
        ...     graph.num_nodes, graph.num_edges
        ({None: 3}, {None: 3})
    """

    @classmethod
    def write(
        cls, path: str | Path, data: Any, **kwargs: Any
    ) -> 'ChunkedGraph':
        """Writes a graph; see :func:`write_graph` for its arguments."""
        known = list(inspect.signature(write_graph).parameters)
        check_known('ChunkedGraph.write', kwargs, known)
        if isinstance(data, ChunkedGraph):
            data = stored_source(data)
        write_graph(path, data, **kwargs)
        return cls(path)

    # PyG's store of a graph ##################################################

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Returns the edge types and their sizes."""
        sizes, out = self.num_nodes, []
        for r in self.meta.relations:
            ends = (r.edge_type[0], r.edge_type[2]) if r.edge_type else (None,)
            size = sizes[ends[0]], sizes[ends[-1]]
            out.append(EdgeAttr(r.edge_type, EdgeLayout.CSC, size=size))
        return out

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any:
        raise NotImplementedError(
            'ChunkedGraph: edges stay on disk; give the loader a '
            "'RandomReadSampler' or 'StreamingSampler' as its 'sampler'"
        )

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError(
            'ChunkedGraph: edges cannot be added; write a new graph by '
            "'ChunkedGraph.write'"
        )

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError(
            'ChunkedGraph: edges cannot be removed; write a new graph by '
            "'ChunkedGraph.write'"
        )
