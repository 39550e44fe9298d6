"""Sampling programs as samplers of PyG's loaders."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler import (
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
)
from torch_geometric.typing import EdgeType, NodeType

from torch_gsample import rng
from torch_gsample.graph_input import GraphData
from torch_gsample.ops._check import node_ids
from torch_gsample.options import Exclusion, RngScope, TrueNegatives
from torch_gsample.samplers.arguments import check_inputs
from torch_gsample.samplers.attributes import Times
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.link.batch import LinkBatch
from torch_gsample.samplers.link.negatives import Negatives
from torch_gsample.samplers.output.attributes import (
    AttributedOutput,
    HeteroAttributedOutput,
)
from torch_gsample.samplers.program.input import (
    Fanouts,
    bind_program,
    check_program,
    checked_fanouts,
    open_graph,
)
from torch_gsample.samplers.program.returned import Returned, read_returned
from torch_gsample.samplers.program.run import ProgramRunner, checked_options
from torch_gsample.samplers.program.steps import (
    Run,
    Steps,
    disjoint_steps,
    finish,
    layer_steps,
)


class ProgramSampler(KeyedSampler):
    r"""Runs a function on matrices as a sampler of PyG's loaders.

    The function, the *program*, is called for each batch as
    ``program(A, seeds, fanouts, **program_kwargs)``. ``A`` is the graph as a
    :class:`~torch_gsample.SparseSample`, and ``seeds`` are distinct nodes
    (with ``disjoint=True`` all seeds of the batch, in their order). In a
    heterogeneous graph they are dictionaries by edge type and by node type.
    The program returns

    * a list of matrices (or of dictionaries of them), the layers of a sample
      from the seeds outwards; the columns of a layer are its destinations
      (or ``SparseSample.to_sampler_output`` of them);
    * or one matrix (or dictionary), whose rows and columns are the nodes of
      an induced subgraph;
    * or, with ``disjoint=True``, :class:`~torch_gsample.algorithms.Subgraphs`,
      one for each seed;
    * or a pair of one of these and a dictionary of node attributes, by name
      (in a heterogeneous graph first by node type): tensors
      ``[num_nodes, ...]`` of the whole graph.

    Batches have the values of the matrices as ``edge_weight``. The loaders of
    :mod:`torch_gsample.loader` add them, and the node attributes, to the
    batch; PyG's own loaders drop both.

    Draws of the matrices are a function of (seed, epoch, batch), and of the
    parameters of a program that trains. Draws from torch's generator are not.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph, or
            a :class:`~torch_gsample.storage.ChunkedGraph`, alone or as the
            graph store: its edges stay on disk.
        program (Callable): The program. For spawned workers it must be
            picklable: a function of a module, not a lambda.
        fanouts (List[int] or Dict[EdgeType, List[int]], optional): The
            program's argument ``fanouts``; default: the program is called
            without it.
        weight_attr (str, optional): The edge attribute with the values of
            ``A``; default: ones. On disk, any name selects the stored
            weights.
        own_edges (bool, optional): Whether the program returns edges that the
            graph does not have. Batches then have no edge attributes.
        disjoint (bool, optional): Whether the program returns a subgraph for
            each seed, in link loaders for each end. Nodes are then the seeds
            with duplicates, then all others; ``batch`` has their subgraphs.
        is_sorted (bool, optional): As in :class:`NeighborSampler`.
        share_memory (bool, optional): As there.
        true_negatives (bool or str, optional): As there.
        exclude_seed_edges (bool or str, optional): As there.
        compile (bool, optional): Whether to :func:`~torch_gsample.compile` the
            program, at the first batch of each process. Samples are the same.
        options (Dict[str, Any], optional): See
            :class:`~torch_gsample.compiler.Options`. With ``super_batch`` (a
            number, or ``'auto'`` to measure it), loaders of
            :mod:`torch_gsample.loader` run several batches together.
        seed (int, optional): See :class:`KeyedSampler`.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        **program_kwargs (optional): More arguments of the program.

    Raises:
        CompileError: At the first batch, if a program cannot be compiled.
        TypeError: If ``program`` is not a function of these arguments, or
            ``fanouts`` are not integers.
        ValueError: If ``fanouts`` are empty, ``weight_attr`` is unknown, or
            ``disjoint`` is true for a heterogeneous graph.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> def two_hops(A, seeds, fanouts):
        ...     layers = []
        ...     for k in fanouts:
        ...         layers.append(A[:, seeds].individual_sample(k))
        ...         seeds = layers[-1].row()
        ...     return layers
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> data = Data(edge_index=edge_index, num_nodes=3)
        >>> sampler = ProgramSampler(data, two_hops, [2, 1], seed=0)
        >>> loader = NeighborLoader(data, sampler=sampler, batch_size=1)
        >>> next(iter(loader)).n_id
        tensor([0, 1, 2])
    """

    _super_batch: int | str = 1  # default of the option
    #: Whether to check that some edges are the graph's, which reads a disk.
    _checks_edges = True

    def __init__(
        self,
        data: GraphData,
        program: Callable[..., Any],
        fanouts: Fanouts | None = None,
        *,
        seed: int | None = None,
        rng_scope: RngScope = 'batch',
        weight_attr: str | None = None,
        own_edges: bool = False,
        disjoint: bool = False,
        is_sorted: bool = False,
        share_memory: bool = False,
        true_negatives: TrueNegatives = False,
        exclude_seed_edges: Exclusion = False,
        compile: bool = False,
        options: Mapping[str, Any] | None = None,
        **program_kwargs: Any,
    ):
        super().__init__(seed, rng_scope)
        check_program(
            self._name,
            program,
            fanouts is not None,
            program_kwargs,
            exclude_seed_edges,
            own_edges=own_edges,
            disjoint=disjoint,
            is_sorted=is_sorted,
            share_memory=share_memory,
            compile=compile,
        )
        self.program, self.program_kwargs = program, program_kwargs
        self.own_edges, self.compile = own_edges, compile
        self.options = checked_options(options)
        self._size: int | None = None
        self.exclude_seed_edges = exclude_seed_edges
        self.graph, self.matrices = open_graph(
            self._name, data, weight_attr, is_sorted, true_negatives
        )
        if disjoint and self.is_hetero:
            raise ValueError(
                f"{self._name}: 'data' must have one type of nodes and edges "
                f"with 'disjoint' (got {list(self.graph.edge_types)})"
            )
        self._disjoint = disjoint
        self.fanouts = fanouts
        self._negatives = Negatives(self.graph, true_negatives, self._name)
        if share_memory:
            for matrix in self.matrices.values():  # the graph's own tensors
                matrix.share_memory_()
            self._negatives.share_memory_()

    @property
    def fanouts(self) -> Fanouts | None:
        """The program's argument ``fanouts``; can be set."""
        return self._fanouts

    @fanouts.setter
    def fanouts(self, fanouts: Fanouts | None) -> None:
        self._fanouts = self._checked_fanouts(fanouts)
        self.__dict__.pop('_bound', None)

    @property
    def is_hetero(self) -> bool:
        """Whether the graph has node and edge types."""
        return self.graph.is_hetero

    @property
    def edge_permutation(self) -> dict[EdgeType, None] | None:
        """None: edge ids of samples are those of the data."""
        return dict.fromkeys(self.graph.edge_types) if self.is_hetero else None

    @property
    def disjoint(self) -> bool:
        """Whether each seed has its own subgraph."""
        return self._disjoint

    def sample_from_nodes(
        self, inputs: NodeSamplerInput, **kwargs: Any
    ) -> AttributedOutput | HeteroAttributedOutput:
        """Samples a subgraph for the nodes of a batch.

        Args:
            inputs (NodeSamplerInput): The seeds.
            **kwargs (optional): Ignored, as in PyG.

        Raises:
            IndexError: If a seed is not in the graph.
            TypeError: If the program does not return matrices.
            ValueError: If its output is not a sample of the graph.
        """
        return self._finish([self._steps_of_nodes(inputs)])[0]

    def sample_from_edges(
        self,
        inputs: EdgeSamplerInput,
        neg_sampling: NegativeSampling | None = None,
        **kwargs: Any,
    ) -> AttributedOutput | HeteroAttributedOutput:
        """Samples a subgraph for the ends of a batch of edges.

        Args:
            inputs (EdgeSamplerInput): The seed edges.
            neg_sampling (NegativeSampling, optional): How to sample negative
                edges.
            **kwargs (optional): Ignored, as in PyG.

        Raises:
            IndexError: If a node is not in the graph.
            TypeError: If the program does not return matrices.
            ValueError: If its output is not a sample of the graph.
        """
        return self._finish([self._steps_of_edges(inputs, neg_sampling)])[0]

    def sample_batches(
        self,
        batches: Sequence[NodeSamplerInput | EdgeSamplerInput],
        numbers: Sequence[rng.BatchNumber],
        neg_sampling: NegativeSampling | None = None,
    ) -> list[AttributedOutput | HeteroAttributedOutput]:
        """Samples several batches; each sample is as if sampled alone.

        Args:
            batches (List[NodeSamplerInput or EdgeSamplerInput]): Their seeds.
            numbers (List[BatchNumber]): Their ids.
            neg_sampling (NegativeSampling, optional): As in
                :meth:`sample_from_edges`.

        Raises:
            IndexError: If a node is not in the graph.
            TypeError: If the program does not return matrices.
            ValueError: If its output is not a sample of the graph.
        """
        steps = [
            self._steps_of_nodes(inputs)
            if isinstance(inputs, NodeSamplerInput)
            else self._steps_of_edges(inputs, neg_sampling)
            for inputs in batches
        ]
        return self._finish(steps, numbers)

    @property
    def look_ahead(self) -> int:
        """Number of batches to pass to :meth:`sample_batches`."""
        return self._runner.size

    def prepare_workers(self) -> None:
        """Compiles the program before workers are forked."""
        if self.compile:
            seeds = {
                t: torch.arange(min(n, 1))
                for t, n in self.graph.counts.items()
            }
            run = Run(seeds, rng.make_key(self.seed))
            if not self._runner.is_compiled:
                self._run([run])
            if self.look_ahead > 1:
                self._run([run, run])  # and for several batches

    def search_look_ahead(
        self, seeds: Callable[[], Sequence[Tensor]], num_batches: int
    ) -> None:
        """Measures the fastest number of batches in one run.

        Measuring takes at most a tenth of an epoch, and continues at the next
        call.

        Args:
            seeds (Callable): Returns int64 ``[num_seeds]`` of some batches.
            num_batches (int): Number of batches in an epoch.
        """
        if not self.is_hetero:
            self._runner.search(self.matrices[None], seeds, num_batches)
            self._size = self._runner.found

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop('_bound', None)  # each process compiles for itself
        return state

    def __repr__(self) -> str:
        program = getattr(self.program, '__name__', repr(self.program))
        return f'{self._name}({program}, {self.fanouts}, seed={self.seed})'

    # Helpers #################################################################

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _checked_fanouts(self, fanouts: Any) -> Any:
        return checked_fanouts(self._name, self.graph, fanouts)

    def _check_seeds(
        self, node_type: NodeType | None, name: str, seeds: Tensor
    ) -> None:
        if node_type not in self.graph.counts:
            raise ValueError(
                f'{self._name}: the graph has no node type {node_type!r} '
                f'(it has {list(self.graph.node_types)})'
            )
        node_ids(self._name, name, seeds, self.graph.counts[node_type])

    @property
    def _runner(self) -> ProgramRunner:
        """The program of matrices and seeds, compiled if ``compile``."""
        if '_bound' not in self.__dict__:
            bound = bind_program(
                self.program, self.fanouts, self.program_kwargs
            )
            options = {'super_batch': self._super_batch, **self.options}
            runner = ProgramRunner(
                bound, self.compile, options, not self.is_hetero, self._size
            )
            # Concurrent threads get the same one.
            self.__dict__.setdefault('_bound', runner)
        return self.__dict__['_bound']

    def _finish(self, steps: Sequence[Steps], numbers: Any = None) -> Any:
        outs = finish(steps, self._run, numbers)
        for out in outs:
            self.counts.add_sample(out)
        return outs

    def _run(self, runs: list[Run]) -> list[Returned]:
        """Runs the program for some batches, at once if that is faster."""
        A: Any = self.matrices
        if not self.is_hetero:
            A = A[None]
            runs = [Run(run.seeds[None], run.key) for run in runs]
        with self.counts.phase('sample'):
            found = self._runner(A, runs)
        options = self._name, self.graph
        return [read_returned(*options, r, self.disjoint) for r in found]

    def _steps_of_nodes(self, inputs: NodeSamplerInput) -> Steps:
        check_inputs(self, inputs)
        self._check_seeds(inputs.input_type, 'seeds', inputs.node)
        key = self.batch_key(inputs.node, inputs.time)
        out = yield from self._steps({inputs.input_type: inputs.node}, key)
        out.metadata = (inputs.input_id, inputs.time)
        return out

    def _steps_of_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None
    ) -> Steps:
        key = self.batch_key(inputs.row, inputs.col, inputs.time)
        negatives = NegativeSampling.cast(neg_sampling)
        ends = LinkBatch(inputs, negatives, self._name)
        both = inputs.row, inputs.col
        for node_type, nodes in zip(ends.end_types, both, strict=True):
            self._check_seeds(node_type, 'seeds', nodes)
        with self.counts.phase('negatives'):
            ends.add_negatives(self._negatives, Times(), key)
        seeds, _ = ends.seeds(self.disjoint)
        out = yield from self._steps(seeds, key)
        if self.exclude_seed_edges:
            reverse = self.exclude_seed_edges == 'reverse'
            ends.exclude_edges(out, self.graph, self.disjoint, reverse=reverse)
        ends.label(out, self.graph, self.disjoint)
        return out

    def _steps(self, seeds: dict[Any, Tensor], key: Tensor) -> Steps:
        steps = disjoint_steps if self.disjoint else layer_steps
        flags = self.own_edges, self._checks_edges
        return steps(self._name, self.graph, *flags, seeds, key)
