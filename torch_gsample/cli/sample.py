"""``gsample sample``."""

import argparse
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import (
    HeteroSamplerOutput,
    NodeSamplerInput,
    SamplerOutput,
)

from torch_gsample import rng
from torch_gsample.cli import output
from torch_gsample.cli.open_graph import Graph, open_graph
from torch_gsample.samplers import NeighborSampler
from torch_gsample.storage import ChunkedGraph, RandomReadSampler

_Output: TypeAlias = SamplerOutput | HeteroSamplerOutput


def sample(args: argparse.Namespace) -> None:
    """Samples a batch of a graph, prints its counts, and may write it.

    Args:
        args (argparse.Namespace): The graph, the seeds and options.
    """
    output.check_output(args.output, ('.pt', '.parquet'))
    opened = open_graph(args.graph, args.columns, args.weight, args.time)
    with opened as graph:
        sampler = _sampler(graph, args)
        node_type = _node_type(sampler, args.node_type)
        seeds = _seeds(sampler, node_type, args)
        time = None
        if args.seed_time is not None:
            time = torch.full_like(seeds, args.seed_time)
        with rng.batch_scope(0, 0):
            out = sampler.sample_from_nodes(
                NodeSamplerInput(None, seeds, time, node_type)
            )
        _restore_edge_ids(out, sampler.edge_permutation)
    rows = _counts(out)
    if args.output is not None:
        _write(args.output, out, len(seeds), node_type)
    if args.json:
        keys = 'of', 'type', 'hops'
        counts = [dict(zip(keys, row, strict=True)) for row in rows]
        seed_ids = seeds.tolist()
        output.print_json(
            {'seeds': seed_ids, 'counts': counts, 'output': args.output}
        )
        return
    hops = [f'hop {i}' for i in range(len(args.fanouts) + 1)]
    cells = [
        [of, name, *(f'{n:,}' for n in counts), f'{sum(counts):,}']
        for of, name, counts in rows
    ]
    numbers = [*hops, 'in all']
    output.table(['', 'type', *numbers], cells, numbers)
    if args.output is not None:
        print(f'written to {args.output}')


def _sampler(graph: Graph, args: argparse.Namespace) -> NeighborSampler:
    common: dict[str, Any] = {'replace': args.replace, 'seed': args.seed}
    if isinstance(graph, ChunkedGraph):
        return RandomReadSampler(graph, args.fanouts, **common)
    return NeighborSampler(
        graph,
        args.fanouts,
        weight_attr=args.weight,
        time_attr=args.time,
        **common,
    )


def _node_type(sampler: NeighborSampler, given: str | None) -> str | None:
    types = sampler.node_types
    if given is None and sampler.edge_types:
        edge_type = sampler.edge_types[0]
        return None if edge_type is None else edge_type[-1]
    if given not in types:
        names = ', '.join(str(name) for name in types if name is not None)
        wanted = f'be one of {names}' if names else 'not be given'
        raise ValueError(
            f'sample: --node-type must {wanted}, the types of the graph (got '
            f'{given!r})'
        )
    return given


def _seeds(
    sampler: NeighborSampler, node_type: str | None, args: argparse.Namespace
) -> Tensor:
    """Returns the seeds of the arguments, or distinct random ones."""
    if args.seeds is not None:
        return torch.tensor(args.seeds)
    size = sampler.graph.counts[node_type]
    generator = torch.Generator().manual_seed(args.seed)
    return torch.randperm(size, generator=generator)[: args.num_seeds]


def _restore_edge_ids(out: _Output, permutation: Any) -> None:
    """Converts positions in a sampler's graph to original edge ids."""
    if isinstance(out, SamplerOutput):
        if permutation is not None:
            out.edge = permutation[out.edge]
        return
    for edge_type, perm in (permutation or {}).items():
        if perm is not None:
            out.edge[edge_type] = perm[out.edge[edge_type]]


def _counts(out: _Output) -> list[tuple[str, str, list[int]]]:
    """Returns the number of new nodes and edges of each type at each hop.

    Hop 0 has the seeds and no edges.
    """
    rows = [
        ('nodes', name or '', counts)
        for name, counts in _by_type(out.num_sampled_nodes)
    ]
    rows += [
        ('edges', ' '.join(name or ()), [0, *counts])
        for name, counts in _by_type(out.num_sampled_edges)
    ]
    several = len(rows) > 2
    return [row for row in rows if sum(row[2]) > 0 or not several]


def _by_type(values: Any) -> list[tuple[Any, Any]]:
    if isinstance(values, dict):
        return list(values.items())
    return [(None, values)]


def _write(
    path: str, out: _Output, num_seeds: int, node_type: str | None
) -> None:
    if Path(path).suffix == '.pt':
        torch.save(_to_data(out, num_seeds, node_type), path)
    else:
        _write_parquet(path, out)


def _to_data(
    out: _Output, num_seeds: int, node_type: str | None
) -> Data | HeteroData:
    """Returns a batch in the attributes of PyG's loaders, without features."""
    if isinstance(out, SamplerOutput):
        return Data(
            edge_index=torch.stack([out.row, out.col]),
            num_nodes=out.node.numel(),
            n_id=out.node,
            e_id=out.edge,
            batch_size=num_seeds,
            num_sampled_nodes=out.num_sampled_nodes,
            num_sampled_edges=out.num_sampled_edges,
        )
    data = HeteroData()
    for name, node in out.node.items():
        data[name].n_id, data[name].num_nodes = node, node.numel()
        data[name].num_sampled_nodes = out.num_sampled_nodes[name]
    for edge_type, row in out.row.items():
        store = data[edge_type]
        store.edge_index = torch.stack([row, out.col[edge_type]])
        store.e_id = out.edge[edge_type]
        store.num_sampled_edges = out.num_sampled_edges[edge_type]
    data[node_type].batch_size = num_seeds
    return data


def _write_parquet(path: str, out: _Output) -> None:
    """Writes a row for each edge: source, target, id, hop and type."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            "sample: .parquet needs PyArrow: `pip install 'torch_gsample"
            "[storage]'`; or write a .pt file"
        ) from error
    tables = []
    for edge_type, counts in _by_type(out.num_sampled_edges):
        hop = torch.empty(sum(counts), dtype=torch.int64)
        places = pairwise(accumulate(counts, initial=0))
        for i, (start, end) in enumerate(places, 1):
            hop[start:end] = i
        columns = _edges(out, edge_type)
        columns['hop'] = hop
        arrays = {k: pa.array(v.numpy()) for k, v in columns.items()}
        if edge_type is not None:
            names = pa.array([' '.join(edge_type)] * len(hop), pa.string())
            arrays['type'] = names
        tables.append(pa.table(arrays))
    pq.write_table(pa.concat_tables(tables), path)


def _edges(out: Any, edge_type: Any) -> dict[str, Tensor]:
    if edge_type is None:
        source = target = out.node
        row, col, edge = out.row, out.col, out.edge
    else:
        source, target = out.node[edge_type[0]], out.node[edge_type[2]]
        row, col = out.row[edge_type], out.col[edge_type]
        edge = out.edge[edge_type]
    return {'source': source[row], 'target': target[col], 'edge_id': edge}
