"""Samplers of subgraphs for PyG's loaders: ShaDow and GraphSAINT."""

from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_gsample import ops, rng
from torch_gsample.algorithms.graphsaint import (
    SaintNorm,
    saint_frontier,
    saint_norm,
    saint_walk,
)
from torch_gsample.algorithms.shadow import shadow, shadow_ppr
from torch_gsample.graph_input import GraphData
from torch_gsample.ops import _check
from torch_gsample.options import ProgramOptions, checked_names
from torch_gsample.samplers.arguments import flag
from torch_gsample.samplers.program.input import prepare_rows
from torch_gsample.samplers.program.sampler import ProgramSampler
from torch_gsample.samplers.program.steps import Steps
from torch_gsample.samplers.seeds import read_nodes
from torch_gsample.sparse_sample import SparseSample

#: Seed of all draws that estimate a normalisation, which does not depend on
#: the seed of a run.
NORM_SEED = 0x5A17


class ShaDowSampler(ProgramSampler):
    r"""Samples a bounded subgraph for each seed of PyG's loaders.

    From `"Decoupling the Depth and Scope of Graph Neural Networks"
    <https://arxiv.org/abs/2201.07858>`_ (NeurIPS 2021): a model of any depth
    runs on the edges between the seed and a few nodes around it. These come
    from neighbour sampling, or have the highest personalised PageRank.

    Samples are disjoint: their nodes are the seeds, followed by all others,
    and ``batch`` has the subgraph of each node. A repeated seed has a subgraph
    for each occurrence. In link loaders, each end of a link has a subgraph,
    and ``batch`` is the index of the link.

    Args:
        data (Data): The graph.
        num_neighbors (List[int], optional): In-neighbours of each node to
            sample at each hop.
        ppr (int, optional): Instead of them, the number of nodes around the
            seed with the highest personalised PageRank; see
            :func:`~torch_gsample.algorithms.shadow_ppr`.
        replace (bool, optional): Whether to sample neighbours with
            replacement.
        alpha (float, optional): Restart probability of PageRank.
        eps (float, optional): Tolerance of the residues of PageRank.
        **options (optional): As in :class:`ProgramSampler`: ``seed``,
            ``weight_attr`` (for PageRank), ``share_memory``, ...

    Raises:
        ValueError: If not exactly one of ``num_neighbors`` and ``ppr`` is
            given, or the graph is heterogeneous.

    Example:
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> data = Data(edge_index=edge_index, num_nodes=3)
        >>> sampler = ShaDowSampler(data, [2], seed=0)
        >>> batch = next(iter(NeighborLoader(data, sampler=sampler,
        ...     input_nodes=torch.tensor([0, 1]), batch_size=2)))
        >>> batch.n_id, batch.batch
        (tensor([0, 1, 1, 2, 2]), tensor([0, 1, 0, 0, 1]))
    """

    _checks_edges = False
    overlaps_reads = True

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_neighbors: list[int] | None = None,
        *,
        ppr: int | None = None,
        replace: bool = False,
        alpha: float = 0.15,
        eps: float = 1e-4,
        **options: Unpack[ProgramOptions],
    ):
        if (num_neighbors is None) == (ppr is None):
            raise ValueError(
                f"{self._name}: one of 'num_neighbors' and 'ppr' must be "
                f'given (got {num_neighbors} and {ppr})'
            )
        flag(self._name, 'replace', replace)
        if ppr is None:
            super().__init__(
                data,
                shadow,
                num_neighbors,
                disjoint=True,
                replace=replace,
                **options,
            )
            return
        _check.count(self._name, 'ppr', ppr, least=0)
        super().__init__(
            data,
            shadow_ppr,
            disjoint=True,
            k=ppr,
            alpha=alpha,
            eps=eps,
            **options,
        )


class SaintSampler(ProgramSampler):
    r"""Walks from the seeds, and induces the subgraph of all visited nodes.

    From `"GraphSAINT: Graph Sampling Based Inductive Learning Method"
    <https://arxiv.org/abs/1907.04931>`_ (ICLR 2020). Walks from different
    seeds are independent. With ``frontier_steps``, the seeds are a frontier,
    and in each step one walker moves, chosen by its degree: the paper's
    multi-dimensional random walks. With ``sample_coverage``, batches have the
    normalisation of the paper, estimated from subgraphs sampled in advance.
    Multiply the loss of each node by ``node_norm`` :math:`= n / (N C_v)` and
    sum, and multiply messages :math:`u \to v` by ``edge_norm``
    :math:`= C_v / C_{uv}`. The loaders of :mod:`torch_gsample.loader` add
    them to the batch.

    The normalisation assumes full batches of uniformly drawn seeds: set
    ``shuffle`` and ``drop_last`` in the loader. It does not depend on
    ``seed``.

    Args:
        data (Data): The graph.
        walk_length (int, optional): Number of steps of each walk.
        frontier_steps (int, optional): Instead of it, the number of steps of a
            frontier; see :func:`~torch_gsample.algorithms.saint_frontier`.
        sample_coverage (int, optional): Average number of subgraphs with a
            node in the estimate; 0 for no normalisation.
        batch_size (int, optional): Seeds of a batch, needed for the estimate.
        input_nodes (torch.Tensor, optional): The population of seeds, for the
            estimate: indices or a mask; default: all nodes.
        **options (optional): As in :class:`ProgramSampler`: ``seed``,
            ``share_memory``, ...

    Raises:
        IndexError: If a node of ``input_nodes`` is not in the graph.
        TypeError: If a number is not an integer.
        ValueError: If not exactly one of ``walk_length`` and
            ``frontier_steps`` is given, a number is out of range,
            ``batch_size`` is missing, or the graph is heterogeneous.

    Example:
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=2)
        >>> sampler = SaintSampler(
        ...     data, walk_length=1, sample_coverage=10, batch_size=1, seed=0
        ... )
        >>> loader = NeighborLoader(data, sampler=sampler, batch_size=1)
        >>> batch = next(iter(loader))
        >>> batch.node_norm, batch.edge_norm
        (tensor([0.5000, 0.5000]), tensor([1., 1.]))
    """

    _checks_edges = False
    overlaps_reads = True

    #: The normalisation, if there is one.
    norm: SaintNorm | None = None

    @checked_names
    def __init__(
        self,
        data: GraphData,
        walk_length: int | None = None,
        sample_coverage: int = 0,
        *,
        frontier_steps: int | None = None,
        batch_size: int | None = None,
        input_nodes: Tensor | None = None,
        **options: Unpack[ProgramOptions],
    ):
        if (walk_length is None) == (frontier_steps is None):
            raise ValueError(
                f"{self._name}: one of 'walk_length' and 'frontier_steps' "
                f'must be given (got {walk_length} and {frontier_steps})'
            )
        walks: dict[str, Any] = {'walk_length': walk_length}
        if walk_length is None:
            walks = {'frontier_steps': frontier_steps}
        for name, steps in walks.items():
            _check.count(self._name, name, steps)
        _check.count(self._name, 'sample_coverage', sample_coverage, least=0)
        super().__init__(data, _saint, **walks, **options)
        if self.is_hetero:
            raise ValueError(
                f"{self._name}: 'data' must be homogeneous (got edge types "
                f'{list(self.graph.edge_types)})'
            )
        matrix = self.matrices[None]
        prepare_rows(matrix)
        if sample_coverage > 0 and matrix._disk is not None:
            raise ValueError(
                f"{self._name}: 'sample_coverage' must be 0 for a graph on "
                'disk, as it counts every edge in memory (got '
                f'{sample_coverage})'
            )
        if sample_coverage > 0:
            self.norm = self._estimate_norm(
                sample_coverage, batch_size, input_nodes
            )
            self.program_kwargs['node_norm'] = self.norm.node
        if options.get('share_memory'):
            matrix.share_memory_()
            for tensor in self.norm or ():
                tensor.share_memory_()

    def _estimate_norm(
        self, coverage: int, batch_size: Any, input_nodes: Tensor | None
    ) -> SaintNorm:
        num_nodes = self.graph.counts[None]
        if batch_size is None:
            raise ValueError(
                f"{self._name}: 'sample_coverage' needs the loader's "
                "'batch_size' (got None)"
            )
        _check.count(self._name, 'batch_size', batch_size)
        roots = torch.arange(num_nodes)
        if input_nodes is not None:
            roots = read_nodes(
                self._name, 'input_nodes', input_nodes, num_nodes
            )
            if roots.dtype == torch.bool:
                roots = roots.nonzero().view(-1)
        if roots.numel() == 0:
            raise ValueError(
                f"{self._name}: 'input_nodes' must not be empty to estimate "
                'a normalisation'
            )
        A = self.matrices[None]
        walks = dict(self.program_kwargs)

        def draw() -> SparseSample:
            key, call_id = rng.current_program()
            chosen = ops.sample_nodes(
                roots.numel(), batch_size, key=key, call_id=call_id
            )
            return _walked(A, roots[chosen], **walks)

        return saint_norm(A, draw, coverage=coverage, seed=NORM_SEED)

    def _steps(self, seeds: dict[Any, Tensor], key: Tensor) -> Steps:
        out = yield from super()._steps(seeds, key)
        if self.norm is not None:
            out.attributes.edge.setdefault(None, {})['edge_norm'] = (
                self.norm.edge[out.edge]
            )
        return out


def _walked(
    A: SparseSample,
    seeds: Tensor,
    walk_length: int | None = None,
    frontier_steps: int | None = None,
) -> SparseSample:
    if walk_length is not None:
        return saint_walk(A, seeds, walk_length)
    assert frontier_steps is not None
    return saint_frontier(A, seeds, frontier_steps)


def _saint(
    A: SparseSample,
    seeds: Tensor,
    walk_length: int | None = None,
    frontier_steps: int | None = None,
    node_norm: Tensor | None = None,
) -> Any:
    subgraph = _walked(A, seeds, walk_length, frontier_steps)
    return (
        subgraph if node_norm is None else (subgraph, {'node_norm': node_norm})
    )
