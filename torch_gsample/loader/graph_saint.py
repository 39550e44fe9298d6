"""PyG's GraphSAINT loaders without torch-sparse."""

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from typing_extensions import Unpack

from torch_gsample import ops, rng
from torch_gsample.algorithms.graphsaint import SaintNorm, saint_norm
from torch_gsample.loader.norm_file import fingerprint, load_norm, save_norm
from torch_gsample.loader.options import EpochOptions
from torch_gsample.loader.subgraph_loader import SubgraphData, SubgraphLoader
from torch_gsample.ops import _check
from torch_gsample.options import checked_names
from torch_gsample.samplers.arguments import flag
from torch_gsample.samplers.program.subgraph import NORM_SEED
from torch_gsample.sparse_sample import SparseSample


class GraphSAINTSampler(SubgraphLoader):
    r"""Loads subgraphs that are sampled as a whole.

    The counterpart of PyG's loader of this name, with its arguments and the
    fields of its batches, from `"GraphSAINT: Graph Sampling Based Inductive
    Learning Method" <https://arxiv.org/abs/1907.04931>`_ (ICLR 2020). Use
    :class:`GraphSAINTNodeSampler`, :class:`GraphSAINTEdgeSampler` or
    :class:`GraphSAINTRandomWalkSampler`.

    With ``sample_coverage``, batches have the normalisation of the paper,
    estimated from :math:`n` subgraphs sampled in advance: :math:`C_v` of them
    contain node :math:`v`, and :math:`C_{uv}` the edge :math:`u \to v`.
    ``node_norm`` :math:`= n / (N C_v)` makes the sum of the losses of a batch
    an unbiased estimate of the mean loss. ``edge_norm``
    :math:`= C_v / C_{uv}` does so for the aggregation over the edges into
    :math:`v`.

    Differences from PyG's:

    * samples are a function of (``seed``, epoch, step), and factors of the
      graph and the arguments, for any number of workers and threads;
    * ``edge_norm`` divides by the count of the destination, where messages
      are summed, not of the source; nodes and edges in no subgraph count as
      in one;
    * the name of a file in ``save_dir`` depends on the graph and all relevant
      arguments, and the file is checked when it is read.

    Args:
        data (Data or ChunkedGraph or Tuple[Data, ChunkedGraph]): The graph;
            its edges may be on disk, with attributes in memory. Walks and
            draws of edges then need ``graph.write_rows()``, and there is no
            normalisation.
        batch_size (int): Number of draws of each subgraph.
        num_steps (int, optional): Subgraphs of an epoch.
        sample_coverage (int, optional): How often a node is in the subgraphs
            of the estimate, on average; 0 for no normalisation.
        save_dir (str, optional): Folder for the normalisation.
        log (bool, optional): Whether to show the progress of the estimate.
        **options (optional): ``seed``, drawn from torch's default generator if
            not given; ``prefetch``, ``rank`` and ``world_size`` of
            :class:`NeighborLoader`; and those of
            :class:`torch.utils.data.DataLoader`.

    Raises:
        TypeError: If ``data`` is not a homogeneous graph, or a number is not
            an integer.
        ValueError: If a number is out of range, ``data`` already has a
            ``node_norm`` or ``edge_norm``, or a saved file is invalid.
    """

    _norm: SaintNorm | None = None  # its edge ids are in column order

    @checked_names
    def __init__(
        self,
        data: SubgraphData,
        batch_size: int,
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        **options: Unpack[EpochOptions],
    ):
        name = type(self).__name__
        self.num_draws = _check.count(name, 'batch_size', batch_size)
        self.num_steps = _check.count(name, 'num_steps', num_steps)
        self.sample_coverage = _check.count(
            name, 'sample_coverage', sample_coverage, least=0
        )
        self.save_dir, self.log = save_dir, flag(name, 'log', log)
        super().__init__(data, num_steps, **options)
        for key in ('node_norm', 'edge_norm'):
            if key in self.data:
                raise ValueError(
                    f"{name}: 'data' must not have '{key}', which batches get"
                )
        if self.matrix.num_edges == 0:
            raise ValueError(f"{name}: 'data' must have edges (got none)")
        if sample_coverage > 0 and self.matrix._disk is not None:
            raise ValueError(
                f"{name}: 'sample_coverage' must be 0 for a graph on "
                'disk: it keeps a factor for each edge in memory '
                f'(got {sample_coverage})'
            )
        self._prepare()
        if sample_coverage > 0:
            self._norm = self._read_or_estimate()

    def _prepare(self) -> None:
        """Prepares the data of all draws."""

    def _draw_nodes(self) -> Tensor:
        """Draws the nodes of a subgraph, in any order and repeatedly."""
        raise NotImplementedError

    def _make_batch(self, index: Tensor) -> Data:
        nodes = self._draw_nodes().unique()
        out = type(self.data)()
        out.num_nodes = nodes.numel()
        edge = self._induce(out, nodes)
        if self._norm is not None:
            out.node_norm = self._norm.node[nodes]
            out.edge_norm = self._norm.edge[edge]
        return out

    @property
    def node_norm(self) -> Tensor | None:
        """The factor of each node, float32 ``[num_nodes]``, or none."""
        return None if self._norm is None else self._norm.node

    @property
    def edge_norm(self) -> Tensor | None:
        """The factor of each edge of the data, float32 ``[num_edges]``."""
        if self._norm is None:
            return None
        norm = self._norm.edge
        return torch.empty_like(norm).index_copy(0, self._edge_id, norm)

    def _arguments(self) -> tuple[int, ...]:
        """The arguments of the normalisation, in addition to the graph."""
        return self.num_draws, self.sample_coverage

    def _read_or_estimate(self) -> SaintNorm:
        if self.save_dir is None:
            return self._estimate()
        name, matrix = type(self).__name__, self.matrix
        mark = fingerprint(matrix, self._edge_id, *self._arguments())
        path = Path(self.save_dir) / f'{name.lower()}_{mark}.pt'
        if path.exists():
            return load_norm(
                name, path, mark, matrix.num_cols, matrix.num_edges
            )
        norm = self._estimate()
        save_norm(path, norm, mark)
        return norm

    def _estimate(self) -> SaintNorm:
        from tqdm import tqdm

        total = self.matrix.num_cols * self.sample_coverage
        with tqdm(
            total=total,
            desc='Compute GraphSAINT normalization',
            disable=not self.log,
        ) as bar:

            def draw() -> SparseSample:
                nodes = self._draw_nodes().unique()
                bar.update(nodes.numel())
                return self.matrix.induce(nodes)

            return saint_norm(
                self.matrix,
                draw,
                coverage=self.sample_coverage,
                seed=NORM_SEED,
            )


class GraphSAINTNodeSampler(GraphSAINTSampler):
    r"""Samples nodes and induces their subgraph.

    ``batch_size`` nodes are drawn with replacement:

    .. math:: P(u) \propto \sum_{u \to v} \frac{1}{\deg(v)^2}

    with in-degrees: the squared norm of the contribution of :math:`u` to a
    mean aggregation. PyG's loader draws by out-degree. A node without an
    out-edge is never drawn. See :class:`GraphSAINTSampler` for the arguments.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> loader = GraphSAINTNodeSampler(data, batch_size=50, seed=0)
        >>> next(iter(loader)).edge_index
        tensor([[1, 0],
                [0, 1]])
    """

    def _prepare(self) -> None:
        # v by 1 / deg(v), then one of its deg(v) in-edges: together P(u).
        degree = self.matrix.degree(0)
        weight = torch.where(degree > 0, 1 / degree, 0.0)
        self._cum_weight = ops.cumulate_weights(
            torch.tensor([0, degree.numel()]), weight
        )

    def _draw_nodes(self) -> Tensor:
        key, call_id = rng.current_program()
        targets = ops.sample_nodes(
            self.matrix.num_cols,
            self.num_draws,
            key=key,
            call_id=call_id,
            cum_weight=self._cum_weight,
            replace=True,
        )
        return _step(self.matrix.T, targets)


class GraphSAINTEdgeSampler(GraphSAINTSampler):
    r"""Samples edges and induces the subgraph of their ends.

    ``batch_size`` edges are drawn with replacement:

    .. math:: P(u \to v) \propto \frac{1}{\deg(u)} + \frac{1}{\deg(v)}

    where :math:`\deg(u)` counts out-edges and :math:`\deg(v)` in-edges. PyG's
    loader draws by the sum of the degrees, which prefers hubs, without
    replacement. See :class:`GraphSAINTSampler` for the arguments.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> loader = GraphSAINTEdgeSampler(data, batch_size=1, seed=0)
        >>> next(iter(loader)).edge_index
        tensor([[1, 0],
                [0, 1]])
    """

    def _prepare(self) -> None:
        # An out-edge of a uniform source has probability 1 / deg(u), an
        # in-edge of a uniform destination 1 / deg(v): they are a mixture.
        _need_rows(self.matrix)
        sources = (self.matrix.degree(1) > 0).nonzero().view(-1)
        targets = (self.matrix.degree(0) > 0).nonzero().view(-1)
        self._num_sources = sources.numel()
        self._starts = torch.cat([sources, targets])

    def _draw_nodes(self) -> Tensor:
        key, call_id = rng.current_program()
        chosen = ops.sample_nodes(
            self._starts.numel(),
            self.num_draws,
            key=key,
            call_id=call_id,
            replace=True,
        )
        start, by_source = self._starts[chosen], chosen < self._num_sources
        return torch.cat(
            [
                start,
                _step(self.matrix, start[by_source]),
                _step(self.matrix.T, start[~by_source]),
            ]
        )


class GraphSAINTRandomWalkSampler(GraphSAINTSampler):
    r"""Walks from random roots and induces the subgraph of visited nodes.

    ``batch_size`` roots are drawn uniformly with replacement. Walks follow
    edges; a walk stays at a node without an out-edge. See
    :class:`GraphSAINTSampler` for the other arguments.

    Args:
        data (Data or ChunkedGraph or Tuple[Data, ChunkedGraph]): The graph.
        batch_size (int): Number of roots of each subgraph.
        walk_length (int): Number of steps of each walk.
        num_steps (int, optional): See :class:`GraphSAINTSampler`, as for all
            arguments below.
        sample_coverage (int, optional): See there.
        save_dir (str, optional): See there.
        log (bool, optional): See there.
        **options (optional): See there.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> loader = GraphSAINTRandomWalkSampler(
        ...     data, batch_size=1, walk_length=1, sample_coverage=5,
        ...     log=False, seed=0,
        ... )
        >>> batch = next(iter(loader))
        >>> batch.node_norm, batch.edge_norm
        (tensor([0.5000, 0.5000]), tensor([1., 1.]))
    """

    @checked_names
    def __init__(
        self,
        data: SubgraphData,
        batch_size: int,
        walk_length: int,
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        **options: Unpack[EpochOptions],
    ):
        self.walk_length = _check.count(
            type(self).__name__, 'walk_length', walk_length
        )
        super().__init__(
            data,
            batch_size,
            num_steps,
            sample_coverage,
            save_dir,
            log,
            **options,
        )

    def _arguments(self) -> tuple[int, ...]:
        return *super()._arguments(), self.walk_length

    def _prepare(self) -> None:
        _need_rows(self.matrix)

    def _draw_nodes(self) -> Tensor:
        key, call_id = rng.current_program()
        roots = ops.sample_nodes(
            self.matrix.num_cols,
            self.num_draws,
            key=key,
            call_id=call_id,
            replace=True,
        )
        return self.matrix.random_walk(roots, self.walk_length).nodes.view(-1)


def _need_rows(matrix: SparseSample) -> None:
    """Builds rows once for all workers; on disk they must be stored."""
    if matrix._disk is not None:
        matrix._disk.check_rows()
    else:
        _ = matrix.csr


def _step(matrix: SparseSample, nodes: Tensor) -> Tensor:
    """Moves each node along a uniformly drawn edge."""
    return matrix.random_walk(nodes, 1).nodes[:, 1]
