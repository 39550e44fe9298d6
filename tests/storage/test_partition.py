"""Three processes with parts of a graph and of its features, under Gloo."""

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NodeSamplerInput

from tests.fresh import start
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage.edge_features import EDGES
from torch_gsample.storage.partition import (
    Exchange,
    GraphPart,
    PartitionedFeatures,
    PartitionedSampler,
)

WORLD = 3
FANOUTS = [3, 2]
TYPED = {
    ('a', 'to', 'b'): [3, 2],
    ('b', 'to', 'a'): [0, 2],
    ('b', 'to', 'b'): [2, 1],
}
CASES = {
    'plain': {},
    'replace': {'replace': True, 'rng_scope': 'epoch'},
    'disjoint': {'disjoint': True},
    'temporal': {'temporal_strategy': 'last', 'time_window': 6},
    'earlier': {'time_window': 9, 'time_inclusive': 'neither'},
    'times_of_nodes': {},
    'weighted': {},
    'unweighted': {'use_weights': False},
    'typed': {},
    'without_samplers': {},
}


def graph(name):
    """A graph with features, and the seeds of 7 batches of 5."""
    generator = torch.Generator().manual_seed(0)

    def edges(*sizes):
        ends = [torch.randint(n, (400,), generator=generator) for n in sizes]
        return torch.stack(ends)

    if name != 'typed':
        data = Data(
            x=torch.rand(61, 3, generator=generator).bfloat16(),
            y=torch.arange(61),
            edge_index=edges(61, 61),
        )
        if name in ('temporal', 'earlier'):
            data.time = torch.randint(20, (400,), generator=generator)
        if name == 'times_of_nodes':
            data.time = torch.randint(20, (61,), generator=generator)
        if name in ('weighted', 'unweighted'):  # and columns with zeros
            weight = torch.rand(400, generator=generator) - 0.2
            data.weight = weight.clamp(min=0)
        if name != 'without_samplers':
            data.edge_attr = torch.rand(400, 2, generator=generator)
        return data, torch.arange(12, 46)
    data = HeteroData()
    for node_type, size in (('a', 40), ('b', 50)):
        data[node_type].x = torch.rand(size, 4, generator=generator)
    for src, dst in ('ab', 'ba', 'bb'):
        sizes = data[src].num_nodes, data[dst].num_nodes
        data[src, 'to', dst].edge_index = edges(*sizes)
        data[src, 'to', dst].edge_attr = torch.rand(400, generator=generator)
    return data, ('b', torch.arange(33))


def fanouts_of(name):
    return TYPED if name == 'typed' else FANOUTS


def whole(name):
    """The sampler of the whole graph, and its data."""
    data, seeds = graph(name)
    given = {'seed': 7, **CASES[name]}
    if 'time' in data:
        given['time_attr'] = 'time'
    if 'weight' in data and given.pop('use_weights', True):
        given['weight_attr'] = 'weight'
    return data, seeds, NeighborSampler(data, fanouts_of(name), **given)


def cut(name, data, sampler, rank):
    """The part of a process, with weights even where none are used."""
    graph = sampler.graph
    if name == 'unweighted':
        graph = graph.with_weights({None: data.weight})
    times = {None: data.time} if name == 'times_of_nodes' else None
    return GraphPart.of(graph, rank, WORLD, times)


def loader_of(name, data, sampler, seeds, rank, world_size):
    timed = name in ('temporal', 'earlier')
    times = torch.arange(len(seeds)) % 20 if timed else None
    return NeighborLoader(
        data,
        sampler=sampler,
        input_nodes=seeds,
        input_time=times,
        batch_size=5,
        shuffle=True,
        rank=rank,
        world_size=world_size,
    )


def parted(name, rank):
    """The same with a part of all, and what reads features."""
    part, seeds, sampler = whole(name)
    data = part
    if name != 'without_samplers':
        part = cut(name, data, sampler, rank)
        given = {'seed': 7, **CASES[name]}
        sampler = PartitionedSampler(
            part, fanouts_of(name), Exchange(), **given
        )
    features = {}
    for store in data.node_stores:
        for key in ('x', 'y'):
            if key in store:
                share = store[key].tensor_split(WORLD)[rank]
                features[store._key, key] = share
    for store in data.edge_stores:
        if 'edge_attr' in store:
            share = store.edge_attr.tensor_split(WORLD)[rank]
            features[store._key or EDGES, 'edge_attr'] = share
    own = sampler if name != 'without_samplers' else None
    exchange = Exchange()
    return (
        (PartitionedFeatures(features, exchange, own, window=2), part),
        *(sampler, seeds, exchange),
    )


def values(batch):
    """The contents of a batch, by type."""
    out = []
    for store in batch.stores:
        keys = 'n_id', 'e_id', 'edge_index', 'x', 'y', 'batch', 'edge_attr'
        for key in keys:
            if key in store:
                out.append((store._key, key, store[key].tolist()))
    return out


def errors(rank):
    """What ends in an error, in all processes unless it says otherwise."""
    exchange, found = Exchange(), {}
    _, _, sampler = whole('plain')
    part = GraphPart.of(sampler.graph, rank, WORLD)
    some = SimpleNamespace(node=torch.arange(2), edge=None)
    tried = {
        'seed': lambda: PartitionedSampler(part, [2], exchange, seed=rank),
        'none': lambda: PartitionedSampler(part, [2], exchange),
        'parts': lambda: exchange.swap([torch.ones(1)] * 2),
        'cut': lambda: PartitionedSampler(
            GraphPart.of(sampler.graph, 0, 2), [2], exchange, seed=1
        ),
        'window': lambda: PartitionedFeatures({}, exchange, window=rank + 1),
        'dtype': lambda: PartitionedFeatures(
            {'x': torch.ones(2).to([torch.half, torch.float][rank % 2])},
            exchange,
        ),
        'rows': lambda: PartitionedFeatures(
            {'x': torch.ones(2), 'y': torch.ones(3)}, exchange
        ),
        'edges': lambda: PartitionedFeatures(
            {(EDGES, 'x'): torch.ones(2)}, exchange
        ),
        'alone': lambda: PartitionedFeatures(
            {'x': torch.ones(2)}, exchange
        ).get_tensor(group_name=None, attr_name='x', index=torch.arange(2)),
        'length': lambda: next(
            PartitionedFeatures({}, exchange).read_ahead([])
        ),
        'more': lambda: list(
            PartitionedFeatures({}, exchange).read_ahead([some] * 2, 0, 1)
        ),
    }
    for name, call in tried.items():
        with pytest.raises((ValueError, RuntimeError)) as raised:
            call()
        found[name] = f'{raised.type.__name__}: {raised.value}'
    # A seed that is not there fails in its own process.
    sampler = PartitionedSampler(part, [2, 2], exchange, seed=3)
    node = torch.tensor([5, 61 if rank == 1 else 60])
    try:
        out = sampler.sample_from_nodes(NodeSamplerInput(None, node))
        found['id'] = out.node.tolist()
    except IndexError as error:
        found['id'] = str(error)
    sampler.join()
    return found


def process(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        'gloo', f'file://{folder}/meet', rank=rank, world_size=WORLD
    )
    report = {}
    for name in CASES:
        data, sampler, seeds, exchange = parted(name, rank)
        sent, swap = [], exchange.swap

        def counted(parts, sent=sent, swap=swap):
            sent.append(sum(map(len, parts)))
            return swap(parts)

        exchange.swap = counted
        loader = loader_of(name, data, sampler, seeds, rank, WORLD)
        epochs = [[values(batch) for batch in loader] for _ in range(2)]
        report[name] = epochs, sent
    report['errors'] = errors(rank)
    reports = [None] * WORLD
    dist.all_gather_object(reports, report)
    if rank == 0:
        torch.save(reports, f'{folder}/reports.pt')
    dist.destroy_process_group()


@pytest.fixture(scope='module')
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp('partition')
    start(process, (str(folder),), WORLD)
    return torch.load(folder / 'reports.pt', weights_only=False)


@pytest.mark.parametrize('name', CASES)
def test_processes_have_the_batches_of_one_machine(reports, name):
    """Seven batches: one process has a batch more than the others."""
    data, seeds, sampler = whole(name)
    loader = loader_of(name, data, sampler, seeds, 0, 1)
    for epoch in range(2):
        want = [values(batch) for batch in loader]
        shares = [report[name][0][epoch] for report in reports]
        assert [len(share) for share in shares] == [3, 2, 2]
        assert shares == [want[rank::WORLD] for rank in range(WORLD)]


def test_a_row_is_sent_once_a_window(reports):
    """Two batches request each distinct row once."""
    epochs, sent = reports[0]['without_samplers']
    asked = sent[0::3]  # then both features
    nodes = [
        {i for batch in epoch[k : k + 2] for i in batch[0][2]}
        for epoch in epochs
        for k in (0, 2)
    ]
    assert epochs[0][0][0][:2] == (None, 'n_id')
    assert asked == list(map(len, nodes))


def test_wrong_arguments_are_named_in_all_processes(reports):
    for rank, report in enumerate(reports):
        found = report['errors']
        assert "'seed' must be equal in all processes" in found['seed']
        assert f'got {rank} in process {rank}' in found['seed']
        assert "'seed' is required" in found['none']
        assert 'one item for each of 3 processes (got 2)' in found['parts']
        assert "'graph' must be cut for 3 processes" in found['cut']
        assert "'window' must be equal" in found['window']
        assert "'features' must be equal" in found['dtype']
        assert "'y' must have as many rows" in found['rows']
        assert "need a 'sampler'" in found['edges']
        assert 'for batches of a loader' in found['alone']
        assert 'must have a length' in found['length']
        assert 'must have at most 1 batches' in found['more']


def test_a_seed_that_is_not_there_fails_in_its_process(reports):
    _, _, sampler = whole('plain')
    sampler = NeighborSampler(graph('plain')[0], [2, 2], seed=3)
    node = torch.tensor([5, 60])
    want = sampler.sample_from_nodes(NodeSamplerInput(None, node)).node
    found = [report['errors']['id'] for report in reports]
    assert found[0] == found[2] == want.tolist()
    assert 'must be in [0, 61) (got 61' in found[1]


def test_a_process_may_have_no_columns():
    _, _, sampler = whole('weighted')
    parts = [GraphPart.of(sampler.graph, rank, 90) for rank in range(90)]
    sizes = [part.columns[0].num_cols for part in parts]
    assert sum(sizes) == 61
    assert min(sizes) == 0
    (columns,) = parts[sizes.index(0)].columns
    assert columns.num_edges == 0
    assert columns.cum_weight.numel() == 0


def test_a_part_that_is_not_there_is_not_cut():
    graph = whole('plain')[2].graph
    with pytest.raises(
        ValueError, match=r"'node_time' of None must have shap"
    ):
        GraphPart.of(graph, 0, 2, {None: torch.arange(60)})
    with pytest.raises(ValueError, match=r"'rank' must be in \[0, 2\)"):
        GraphPart.of(graph, 2, 2)
