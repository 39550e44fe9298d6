"""LADIES, FastGCN and LABOR as samplers of PyG's loaders."""

from collections.abc import Sequence

from typing_extensions import Unpack

from torch_gsample.algorithms.fastgcn import fastgcn
from torch_gsample.algorithms.labor import labor
from torch_gsample.algorithms.ladies import ladies
from torch_gsample.graph_input import GraphData
from torch_gsample.ops._check import count
from torch_gsample.options import WeightOptions, checked_names
from torch_gsample.samplers.arguments import check_flags
from torch_gsample.samplers.program.weighted import WeightedSampler
from torch_gsample.sparse_sample import NodeProbs


class LadiesSampler(WeightedSampler):
    r"""Samples the nodes of each layer together, by importance (LADIES).

    It runs :func:`torch_gsample.algorithms.ladies` (see there for the
    formula), of `"Layer-Dependent Importance Sampling for Training Deep and
    Large Graph Convolutional Networks" <https://arxiv.org/abs/1911.07323>`_
    (NeurIPS 2019). Batches have the weights of edges as ``edge_weight``.

    Each layer of edges is for one layer of the model: the edges of hop
    :math:`l` lead to the nodes of hop :math:`l - 1`, and their weighted sum
    estimates :math:`A^\top H` there. ``batch.num_sampled_edges`` counts them,
    so a model reads

    .. code-block:: python

        edges = batch.edge_index.split(batch.num_sampled_edges, dim=1)
        weights = batch.edge_weight.split(batch.num_sampled_edges)
        x = batch.x
        for i, conv in enumerate(convs, start=1):
            x = conv(x, edges[-i], weights[-i])  # the outermost hop first
        x = x[:batch.batch_size]

    with a convolution that sums, such as ``GCNConv(..., normalize=False)``.

    The papers' :math:`A` is the normalised Laplacian of a graph with
    self-loops. Pass it as ``weight_attr``, or add the loops
    (:class:`torch_geometric.transforms.AddSelfLoops`) and set
    ``normalization='sym'``. Without either, values are ones, and a sample
    estimates the sum of the neighbours.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        num_sampled (List[int]): Number of nodes to sample at each hop, for
            all seeds together.
        replace (bool, optional): Whether nodes are drawn independently: then
            the estimate is unbiased, and a node drawn twice has its edges
            twice. Without replacement, the variance is lower.
        normalize (bool, optional): Whether to scale the sampled weights of
            each destination to the sum of 1. The paper trains with
            ``replace=False, normalize=True``.
        normalization (str, optional): Normalisation of the graph's weights:
            ``'row'`` divides by the sum of the weights into a destination,
            :math:`A_{uv} / d_v`, which turns sums into means; ``'sym'`` is
            :math:`A_{uv} / \sqrt{d_u d_v}`, with the sum of the weights out
            of a source :math:`u`.
        weight_attr (str, optional): The edge attribute with the values of
            :math:`A`; default: ones.
        seed (int, optional): See :class:`KeyedSampler`.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        share_memory (bool, optional): See :class:`ProgramSampler`, as for all
            arguments below.
        true_negatives (bool or str, optional): As there.
        exclude_seed_edges (bool or str, optional): As there.
        compile (bool, optional): As there.
        options (Dict[str, Any], optional): As there.

    Raises:
        TypeError: If ``num_sampled`` are not integers.
        ValueError: If they are not positive, the graph is heterogeneous, or
            ``normalization`` is unknown or the graph has negative weights.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> edge_index = torch.tensor([[1, 2, 3, 3], [0, 0, 1, 2]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> sampler = LadiesSampler(data, [2, 2], normalization='row', seed=0)
        >>> loader = NeighborLoader(data, sampler=sampler, batch_size=1)
        >>> batch = next(iter(loader))
        >>> batch.num_sampled_edges, batch.edge_weight
        ([2, 2], tensor([0.5000, 0.5000, 0.5000, 0.5000]))
    """

    #: Twice as fast on graphs that fit in the cache (docs/compiler.md).
    _super_batch = 'auto'

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_sampled: Sequence[int],
        *,
        replace: bool = True,
        normalize: bool = False,
        **options: Unpack[WeightOptions],
    ):
        check_flags(self._name, replace=replace, normalize=normalize)
        super().__init__(
            data,
            ladies,
            ('num_sampled', num_sampled),
            {'replace': replace, 'normalize': normalize},
            **options,
        )


class FastGCNSampler(WeightedSampler):
    r"""Samples the nodes of each layer from one distribution (FastGCN).

    It runs :func:`torch_gsample.algorithms.fastgcn`, of `"FastGCN: Fast
    Learning with Graph Convolutional Networks via Importance Sampling"
    <https://arxiv.org/abs/1801.10247>`_ (ICLR 2018). The distribution depends
    only on the graph and is computed once. Drawn nodes without an edge into
    the previous layer are dropped.

    See :class:`LadiesSampler` for weights, layers and their use in a model.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        num_sampled (List[int]): Number of nodes to draw at each hop, with
            replacement.
        **options (optional): See :class:`LadiesSampler`: ``normalization``,
            ``weight_attr``, ``seed``, ...

    Raises:
        TypeError: As in :class:`LadiesSampler`.
        ValueError: As in :class:`LadiesSampler`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> edge_index = torch.tensor([[1, 2, 3, 3], [0, 0, 1, 2]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> sampler = FastGCNSampler(data, [20, 20], seed=0)
        >>> loader = NeighborLoader(data, sampler=sampler, batch_size=1)
        >>> next(iter(loader)).n_id
        tensor([0, 1, 2, 3])
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_sampled: Sequence[int],
        **options: Unpack[WeightOptions],
    ):
        super().__init__(
            data,
            fastgcn,
            ('num_sampled', num_sampled),
            {},
            **options,
        )
        probs = NodeProbs((self.matrices[None] ** 2).sum(dim=1))
        if options.get('share_memory'):
            probs.share_memory_()
        self.program_kwargs = {'probs': probs}


class LaborSampler(WeightedSampler):
    r"""Samples neighbours so that destinations share them (LABOR).

    It runs :func:`torch_gsample.algorithms.labor`, of `"Layer-Neighbor
    Sampling: Defusing Neighborhood Explosion in GNNs"
    <https://arxiv.org/abs/2210.13339>`_ (NeurIPS 2023): compared with
    :class:`NeighborSampler`, about as many edges and the same variance with
    fewer nodes.

    See :class:`LadiesSampler` for weights, layers and their use in a model.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int]): The expected number of neighbours of each
            node at each hop.
        steps (int, optional): The :math:`i` of LABOR-i: each step lowers the
            number of nodes; -1 for LABOR-\*.
        normalize (bool, optional): Whether to scale the sampled weights of
            each destination to the sum of 1, as in the paper.
        weighted (bool, optional): Whether probabilities follow the weights of
            ``weight_attr`` or ``normalization``.
        layer_dependency (bool, optional): Whether a node has the same draw at
            all hops, which then have fewer distinct nodes.
        **options (optional): See :class:`LadiesSampler`: ``normalization``,
            ``weight_attr``, ``seed``, ...

    Raises:
        TypeError: If ``num_neighbors`` or ``steps`` are not integers.
        ValueError: As in :class:`LadiesSampler`, or if ``steps`` is below -1.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> edge_index = torch.tensor([[1, 2, 1, 2], [0, 0, 3, 3]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> sampler = LaborSampler(data, [2], normalization='row', seed=0)
        >>> loader = NeighborLoader(data, sampler=sampler, batch_size=4)
        >>> next(iter(loader)).edge_weight
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_neighbors: Sequence[int],
        *,
        steps: int = 0,
        normalize: bool = False,
        weighted: bool = False,
        layer_dependency: bool = False,
        **options: Unpack[WeightOptions],
    ):
        count(self._name, 'steps', steps, least=-1)
        flags = {
            'normalize': normalize,
            'weighted': weighted,
            'layer_dependency': layer_dependency,
        }
        check_flags(self._name, **flags)
        super().__init__(
            data,
            labor,
            ('num_neighbors', num_neighbors),
            {'steps': steps, **flags},
            **options,
        )
