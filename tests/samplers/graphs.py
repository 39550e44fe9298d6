"""Tiny graphs for the tests of samplers and loaders, and their inputs."""

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput
from torch_geometric.testing import MyFeatureStore, MyGraphStore

RATES = ('user', 'rates', 'item')
REV_RATES = ('item', 'rev_rates', 'user')
FOLLOWS = ('user', 'follows', 'user')
MARKS = ('tag', 'marks', 'item')
EMPTY = ('item', 'empty', 'item')
HETERO_SIZES = {'user': 12, 'item': 15, 'tag': 4, 'lone': 3}


def random_edges(num_src, num_dst, num_edges, seed=0):
    """Edges in no order, parallel ones and self-loops included."""
    generator = torch.Generator().manual_seed(seed)
    return torch.stack(
        [
            torch.randint(num_src, (num_edges,), generator=generator),
            torch.randint(num_dst, (num_edges,), generator=generator),
        ]
    )


def homogeneous(num_nodes=30, num_edges=150, seed=0, **attributes):
    """Attributes tell nodes and edges apart; node 0 has no in-edges."""
    edge_index = random_edges(num_nodes, num_nodes - 1, num_edges, seed)
    edge_index[1] += 1
    return Data(
        x=torch.arange(num_nodes).view(-1, 1),
        edge_index=edge_index,
        edge_attr=torch.arange(num_edges),
        num_nodes=num_nodes,
        **attributes,
    )


def heterogeneous(seed=0):
    """Users, items, tags (sources only) and lone nodes without an edge."""
    data = HeteroData()
    for i, (node_type, size) in enumerate(HETERO_SIZES.items()):
        data[node_type].x = torch.arange(size).view(-1, 1) + 100 * i
        data[node_type].num_nodes = size
    counts = {RATES: 60, REV_RATES: 50, FOLLOWS: 30, MARKS: 20, EMPTY: 0}
    for i, ((src, name, dst), count) in enumerate(counts.items()):
        data[src, name, dst].edge_index = random_edges(
            HETERO_SIZES[src], HETERO_SIZES[dst], count, seed + i
        )
        data[src, name, dst].edge_attr = torch.arange(count) + 1000 * i
    return data


def each(data, fanouts):
    """The same fan-outs for each edge type."""
    return {edge_type: list(fanouts) for edge_type in data.edge_types}


def as_stores(data, layout='coo', size=True):
    """The same graph in PyG's stores for tests."""
    features, graph = MyFeatureStore(), MyGraphStore()
    hetero = isinstance(data, HeteroData)
    nodes = (
        [(t, data[t]) for t in data.node_types] if hetero else [(None, data)]
    )
    for node_type, store in nodes:
        features.put_tensor(
            store.x, group_name=node_type, attr_name='x', index=None
        )
    edges = data.edge_items() if hetero else [(None, data)]
    for edge_type, store in edges:
        row, col = store.edge_index
        sizes = (
            (data[edge_type[0]].num_nodes, data[edge_type[2]].num_nodes)
            if hetero
            else (data.num_nodes, data.num_nodes)
        )
        if layout != 'coo':
            major = col if layout == 'csc' else row
            order = major.argsort(stable=True)
            count = sizes[1] if layout == 'csc' else sizes[0]
            pointers = torch.zeros(count + 1, dtype=torch.long)
            pointers[1:] = torch.bincount(major, minlength=count).cumsum(0)
            row, col = (
                (row[order], pointers)
                if layout == 'csc'
                else (pointers, col[order])
            )
        graph.put_edge_index(
            (row, col),
            edge_type=edge_type,
            layout=layout,
            size=sizes if size else None,
        )
    return features, graph


def nodes(ids, node_type=None, time=None, input_id=None):
    """The input of ``sample_from_nodes``."""
    return NodeSamplerInput(
        None if input_id is None else torch.as_tensor(input_id),
        torch.as_tensor(ids),
        None if time is None else torch.as_tensor(time),
        node_type,
    )


def links(pairs, edge_type=None, time=None, label=None, input_id=None):
    """The input of ``sample_from_edges``, from a list of (src, dst)."""
    row, col = torch.as_tensor(pairs).view(-1, 2).t()
    return EdgeSamplerInput(
        None if input_id is None else torch.as_tensor(input_id),
        row,
        col,
        None if label is None else torch.as_tensor(label),
        None if time is None else torch.as_tensor(time),
        edge_type,
    )
