"""HGSampling as a sampler of PyG's loaders."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.typing import NodeType
from typing_extensions import Unpack

from torch_gsample.algorithms import hgt
from torch_gsample.graph_input import GraphData, node_attributes
from torch_gsample.ops._check import count
from torch_gsample.options import CompileOptions, checked_names
from torch_gsample.samplers.program.input import checked_list
from torch_gsample.samplers.program.sampler import ProgramSampler
from torch_gsample.sparse_sample import SparseSample

NumSamples: TypeAlias = Sequence[int] | Mapping[NodeType, Sequence[int]]


class HGTSampler(ProgramSampler):
    r"""Samples the same number of nodes of each type, as PyG's ``HGTSampler``.

    A :class:`ProgramSampler` of :func:`~torch_gsample.algorithms.hgt`, which
    describes the distribution and the differences from torch-sparse's
    sampler. For each type, a sample has the seeds, then the sampled nodes,
    layer by layer, and all edges between its nodes. So ``num_sampled_nodes``
    counts the seeds and the other nodes, and there is no
    ``num_sampled_edges``. Seeds may also be the ends of links.

    Args:
        data (HeteroData or (FeatureStore, GraphStore)): The graph.
        num_samples (List[int] or Dict[NodeType, List[int]]): Maximum number
            of nodes of each type in each layer; -1 takes all neighbours of
            sampled nodes. A list applies to all types.
        time_attr (str, optional): The node attribute with the times of one or
            more node types. Nodes of other types get the time of the node
            that led to them, as this attribute of the batch.
        max_time (int, optional): The latest time of a sampled node, and the
            time of seeds whose type has none.
        is_sorted (bool, optional): As in :class:`NeighborSampler`.
        share_memory (bool, optional): As in :class:`ProgramSampler`.
        seed (int, optional): See :class:`KeyedSampler`.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        true_negatives (bool or str, optional): As in :class:`NeighborSampler`.
        exclude_seed_edges (bool or str, optional): As there.
        compile (bool, optional): As in :class:`ProgramSampler`.
        options (Dict[str, Any], optional): As there.

    Raises:
        TypeError: If ``num_samples``, ``max_time`` or times are not integers.
        ValueError: If the graph has no node types, ``num_samples`` are not
            lists of equal length for all of them, or ``time_attr`` is not an
            attribute of nodes.

    Example:
        >>> import torch
        >>> from torch_geometric.data import HeteroData
        >>> from torch_geometric.sampler import NodeSamplerInput
        >>> data = HeteroData()
        >>> data['paper'].num_nodes = data['author'].num_nodes = 3
        >>> data['author', 'writes', 'paper'].edge_index = torch.tensor(
        ...     [[0, 1, 2], [0, 0, 1]]
        ... )
        >>> sampler = HGTSampler(data, [2], seed=0)
        >>> seeds = NodeSamplerInput(None, torch.tensor([0]), None, 'paper')
        >>> out = sampler.sample_from_nodes(seeds)
        >>> out.node['author'].sort().values, out.num_sampled_nodes['paper']
        (tensor([0, 1]), [1, 0])
    """

    _checks_edges = False
    overlaps_reads = True

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_samples: NumSamples,
        is_sorted: bool = False,
        share_memory: bool = False,
        *,
        time_attr: str | None = None,
        max_time: int | None = None,
        **options: Unpack[CompileOptions],
    ):
        super().__init__(
            data,
            hgt if time_attr is None else _timed,
            num_samples,
            is_sorted=is_sorted,
            share_memory=share_memory,
            **options,
        )
        if time_attr is None:
            if max_time is not None:
                raise ValueError(
                    f"{self._name}: 'max_time' needs 'time_attr' (got None)"
                )
            return
        if max_time is not None:
            count(self._name, 'max_time', max_time, least=-(2**63))
        time = self._read_times(data, time_attr)
        if share_memory:
            for values in time.values():
                values.share_memory_()
        self.program_kwargs = {
            'time': time,
            'max_time': max_time,
            'name': time_attr,
        }

    @property
    def num_samples(self) -> dict[NodeType, list[int]]:
        """Nodes of each type a layer; can be set."""
        return self.fanouts  # type: ignore[return-value]

    @num_samples.setter
    def num_samples(self, num_samples: NumSamples) -> None:
        self.fanouts = num_samples

    # Helpers #################################################################

    def _read_times(
        self, data: GraphData, name: str
    ) -> dict[NodeType, Tensor]:
        found = node_attributes(data, self.graph, name)
        if not found:
            raise ValueError(
                f"{self._name}: the time attribute '{name}' is not a "
                'node-level attribute'
            )
        for t, time in found.items():
            size = self.graph.counts[t]
            if time.dtype.is_floating_point or time.dtype.is_complex:
                raise TypeError(
                    f"{self._name}: '{name}' of {t!r} must hold integers (got "
                    f'{time.dtype}): scale and round it first'
                )
            if time.numel() != size:
                raise ValueError(
                    f"{self._name}: '{name}' of {t!r} must have {size} "
                    f'elements, one for each node (got {time.numel()})'
                )
        return {
            t: time.view(-1).to(torch.int64).cpu().contiguous()
            for t, time in found.items()
        }

    def _checked_fanouts(self, fanouts: Any) -> dict[Any, list[int]]:
        types = self.graph.node_types
        if not self.is_hetero:
            raise ValueError(
                f"{self._name}: 'data' must be heterogeneous (got a "
                'homogeneous graph)'
            )
        if not isinstance(fanouts, Mapping):
            sizes = checked_list(self._name, 'num_samples', fanouts)
            return dict.fromkeys(types, sizes)
        if set(fanouts) != set(types):
            raise ValueError(
                f"{self._name}: the keys of 'num_samples' must be the node "
                f'types of the graph, {types} (got {list(fanouts)})'
            )
        out = {
            t: checked_list(self._name, 'num_samples', fanouts[t])
            for t in types
        }
        if len(set(map(len, out.values()))) > 1:
            raise ValueError(
                f"{self._name}: 'num_samples' must have the same "
                f'number of layers for each node type (got {out})'
            )
        return out


def _timed(
    A: Mapping[Any, SparseSample],
    seeds: Mapping[NodeType, Tensor],
    fanouts: NumSamples,
    time: Mapping[NodeType, Tensor],
    max_time: int | None,
    name: str,
) -> Any:
    """Samples with times, and returns times for types without any."""
    out, sampled = hgt(A, seeds, fanouts, time, max_time)
    nodes: dict[NodeType, tuple[Tensor, int]] = {}
    for t, matrix in out.items():
        nodes[t[0]] = matrix.row_ids, A[t].num_rows
        nodes[t[2]] = matrix.col_ids, A[t].num_cols
    attributes = {
        t: {name: ids.new_zeros(size).index_copy(0, ids, sampled[t])}
        for t, (ids, size) in nodes.items()
        if t not in time
    }
    return out, attributes
