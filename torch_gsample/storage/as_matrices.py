"""A graph on disk as matrices: the methods of a ``ChunkedGraph``."""

from importlib import import_module
from typing import Any


def _module() -> Any:
    """The module that opens matrices, which imports that of graphs."""
    return import_module('torch_gsample.storage.matrices.open')


class Matrices:
    """Gives a graph on disk its matrices; see ``storage.matrices``."""

    #: Cache memory of matrices that program samplers open.
    cache_bytes: int | str = 256 << 20

    def matrix(
        self,
        edge_type: Any = None,
        *,
        cache_bytes: int | str | None = None,
        engine: str = 'auto',
        use_weights: bool = True,
        model: Any = None,
    ) -> Any:
        """Returns a relation as a :class:`~torch_gsample.SparseSample`.

        Its edges stay on disk. Memory holds 8 bytes for each node, and a
        cache. Programs draw the same samples as in memory. An extract,
        ``A[:, nodes]``, is read at its first use; ``individual_sample`` of it,
        or a step of a walk, reads only the drawn edges. Reductions, such as
        ``(A ** 2).sum(dim=1)``, scan the graph once, and are cached in a
        folder next to it.

        Args:
            edge_type (Tuple[str, str, str], optional): The relation, if there
                are several.
            cache_bytes (int or str, optional): Memory of the cache of blocks,
                in each process; :attr:`cache_bytes` of the graph if not given.
            engine (str, optional): See :class:`RandomReadSampler`.
            use_weights (bool, optional): Whether its values are the edge
                weights, if the graph has them; otherwise they are 1.
            model (DiskModel, optional): The disk model for planning reads.

        Raises:
            KeyError: If there is no such relation.
            OSError: If a file cannot be read.
            ValueError: If an argument is invalid (the message names the rule),
                or a file is damaged.

        Example:
            >>> import tempfile, torch
            >>> from torch_gsample.storage import ChunkedGraph
            >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     graph = ChunkedGraph.write(f'{folder}/graph', edge_index)
            ...     A = graph.matrix()
            ...     A[:, torch.tensor([0])].row()
            tensor([1, 2])
        """
        matrices = self.matrices(
            cache_bytes=cache_bytes,
            engine=engine,
            use_weights=use_weights,
            model=model,
        )
        if edge_type is None and len(matrices) == 1:
            [edge_type] = matrices
        if edge_type not in matrices:
            raise KeyError(
                "ChunkedGraph.matrix: 'edge_type' must be one of "
                f'{list(matrices)} (got {edge_type!r})'
            )
        return matrices[edge_type]

    def matrices(self, **options: Any) -> dict[Any, Any]:
        """Returns all relations as matrices that share one cache.

        Args:
            **options (optional): Those of :meth:`matrix`.
        """
        return _module().open_matrices(self, **options)

    def open_programs(
        self, name: str, weight_attr: str | None
    ) -> tuple[Any, dict[Any, Any]]:
        """Returns types and matrices, for samplers that run programs.

        Args:
            name (str): The sampler, for messages.
            weight_attr (str, optional): Selects the stored weights, if given.

        Raises:
            ValueError: If it is given and the graph has no weights.
        """
        return _module().open_programs(self, name, weight_attr)

    def write_rows(
        self, *, memory_limit: int = 4 << 30, chunk_bytes: int = 512 << 20
    ) -> None:
        """Writes the edges by row, next to the graph, for walks along edges.

        Matrices of the graph then have rows as well: ``A[nodes, :]``,
        ``A.random_walk``. It takes the graph's disk space again, and runs once
        for each graph content.

        Args:
            memory_limit (int, optional): Bytes to use.
            chunk_bytes (int, optional): See :meth:`write`.

        Raises:
            ImportError: If DuckDB or PyArrow are not installed.
            OSError: If the disk is full.
        """
        _module().write_all_rows(self, memory_limit, chunk_bytes)
