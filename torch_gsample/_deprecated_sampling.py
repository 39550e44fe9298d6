"""Functions that :func:`.ops.sample_neighbors` replaces, for one release."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.ops.sample_neighbors import sample_neighbors
from torch_gsample.ops.sampling import Sample, Sampling, check_fault


class NeighborSample(NamedTuple):
    """A homogeneous sample."""

    row: Any
    col: Any
    node: Any
    edge: Any
    batch: Any
    num_nodes: Tensor
    num_edges: Tensor


class HeteroNeighborSample(NeighborSample):
    """A sample, with a tensor for each relation or node type."""


class PaddedSample(NamedTuple):
    """A padded homogeneous sample."""

    row: Any
    col: Any
    node: Any
    edge: Any
    batch: Any
    num_nodes: Tensor
    num_edges: Tensor
    fault: Tensor

    def check(self) -> 'PaddedSample':
        """Returns the sample; see :meth:`.Sample.check`."""
        missing = [0] * (4 - self.fault.numel())
        check_fault([*self.fault.tolist(), *missing])
        return self


class HeteroPaddedSample(PaddedSample):
    """A padded sample, with a tensor for each relation or node type."""


def make_graph(
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    cum_weight: Sequence[Tensor | None] | None,
    edge_time: Sequence[Tensor | None] | None,
) -> Graph:
    """Makes a graph of loose tensors, which nobody checks."""
    none = [None] * len(relations)
    columns = [
        CSC(*csc[:2], num_nodes[src], None, *csc[2:], checked=True)
        for csc, (src, _) in zip(
            zip(
                indptr,
                indices,
                none if cum_weight is None else cum_weight,
                none if edge_time is None else edge_time,
                strict=True,
            ),
            relations,
            strict=True,
        )
    ]
    types = [(src, r, dst) for r, (src, dst) in enumerate(relations)]
    return Graph(
        tuple(range(len(num_nodes))),
        tuple(types),
        tuple(num_nodes),
        tuple(columns),
    )


def _sample(
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    *,
    key: Tensor,
    call_id: int = 0,
    max_edges: Sequence[int] | None = None,
    cum_weight: Sequence[Tensor | None] | None = None,
    edge_time: Sequence[Tensor | None] | None = None,
    seed_time: Sequence[Tensor] | None = None,
    **options: Any,
) -> Sample:
    fields = indptr, indices, cum_weight, edge_time
    graph = make_graph(relations, num_nodes, *fields)
    return sample_neighbors(
        graph,
        seeds,
        fanouts,
        key,
        call_id=call_id,
        sampling=Sampling(**options),
        seed_time=seed_time if graph.is_temporal else None,
        max_edges=max_edges,
    )


def _by_type(out: Sample) -> list[Any]:
    row, col, edge = out.by_relation(out.row, out.col, out.edge)
    node, batch = out.by_type(out.node, out.batch)
    return [row, col, node, edge, batch, out.num_nodes, out.num_edges]


def _sample_one(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    **options: Any,
) -> Sample:
    for name in ('cum_weight', 'edge_time', 'seed_time'):
        value = options.get(name)
        options[name] = None if value is None else [value]
    sizes = [indptr.numel() - 1]
    graph = [indptr], [indices], [(0, 0)], sizes
    return _sample(*graph, [seeds], [fanouts], **options)


def _neighbor_sample(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: Tensor,
    **options: Any,
) -> NeighborSample:
    graph = indptr, indices, seeds, fanouts
    out = _by_type(_sample_one(*graph, key=key, **options))
    return NeighborSample(*(of_all[0] for of_all in out))


def _neighbor_sample_padded(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: Tensor,
    max_edges: int,
    **options: Any,
) -> PaddedSample:
    graph = indptr, indices, seeds, fanouts
    out = _sample_one(*graph, key=key, max_edges=[max_edges], **options)
    fields = [of_all[0] for of_all in _by_type(out)]
    return PaddedSample._make([*fields, out.counts[-4:-1]])


def _hetero_neighbor_sample(
    *graph: Any, key: Tensor, **options: Any
) -> HeteroNeighborSample:
    return HeteroNeighborSample(*_by_type(_sample(*graph, key=key, **options)))


def _hetero_neighbor_sample_padded(
    *graph: Any, key: Tensor, max_edges: Sequence[int], **options: Any
) -> HeteroPaddedSample:
    out = _sample(*graph, key=key, max_edges=max_edges, **options)
    return HeteroPaddedSample._make([*_by_type(out), out.counts[-4:]])


#: By their names in :mod:`torch_gsample.ops`.
NAMES: dict[str, tuple[str, Any]] = {
    'HeteroNeighborSample': ('Sample', HeteroNeighborSample),
    'HeteroPaddedSample': ('Sample', HeteroPaddedSample),
    'NeighborSample': ('Sample', NeighborSample),
    'PaddedSample': ('Sample', PaddedSample),
    'hetero_neighbor_sample': (
        'sample_neighbors',
        _hetero_neighbor_sample,
    ),
    'hetero_neighbor_sample_padded': (
        'sample_neighbors',
        _hetero_neighbor_sample_padded,
    ),
    'neighbor_sample': (
        'sample_neighbors',
        _neighbor_sample,
    ),
    'neighbor_sample_padded': (
        'sample_neighbors',
        _neighbor_sample_padded,
    ),
}
