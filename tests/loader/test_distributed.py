"""Two processes that train together on one graph, which they share."""

import os

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Data

from tests.fresh import start
from tests.loader.batches import run, values
from torch_gsample import NeighborSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader

WORLD = 2
NUM_NODES, NUM_EDGES, WIDTH = 100_000, 1_000_000, 64
OPTIONS = {'batch_size': 50, 'shuffle': True, 'prefetch': 0}


def write_graph(path):
    """A graph of about 50 MiB and its sampler, in one file."""
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(
        NUM_NODES, (2, NUM_EDGES), generator=generator, dtype=torch.int32
    ).long()
    data = Data(
        x=torch.rand(NUM_NODES, WIDTH, generator=generator),
        edge_index=edge_index,
        y=torch.arange(NUM_NODES) % 3,
    )
    torch.save((data, NeighborSampler(data, [3, 2], seed=7)), path)


def loaders(data, sampler, **options):
    # 7 batches: one process has a batch more than the other.
    seeds = torch.arange(0, 333)
    yield NeighborLoader(
        data, sampler=sampler, input_nodes=seeds, **OPTIONS, **options
    )
    yield LinkNeighborLoader(
        data,
        sampler=sampler,
        edge_label_index=data.edge_index[:, :300].clone(),
        neg_sampling='binary',
        **OPTIONS,
        **options,
    )


def memory_of(path):
    """What the mapping of a file costs this process, in bytes.

    Returns:
        Tuple[int, int]: Its resident pages, and its proportional share of
        them (PSS), in which a page of two processes counts half.
    """
    resident = share = 0
    ours = False
    with open('/proc/self/smaps') as lines:
        for line in lines:
            field, _, rest = line.partition(':')
            if '-' in field.split(' ')[0]:  # a mapping begins
                ours = str(path) in line
            elif ours and field == 'Rss':
                resident += int(rest.split()[0]) * 1024
            elif ours and field == 'Pss':
                share += int(rest.split()[0]) * 1024
    return resident, share


def train(loader):
    """An epoch of a linear model; processes have different counts."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(WIDTH, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for batch in loader:
            out = model(batch.x[: batch.batch_size])
            loss = nn.functional.cross_entropy(
                out, batch.y[: batch.batch_size]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def process(rank, folder):
    torch.set_num_threads(1)
    path = f'{folder}/graph.pt'
    dist.init_process_group(
        'gloo', f'file://{folder}/meet', rank=rank, world_size=WORLD
    )
    data, sampler = torch.load(path, mmap=True, weights_only=False)
    share = {'rank': rank, 'world_size': WORLD}
    torch.manual_seed(rank)  # no process may depend on the others' draws
    report = {'batches': [run(x) for x in loaders(data, sampler, **share)]}
    report['weights'] = train(next(loaders(data, sampler, **share)))
    data.x.sum(), data.edge_index.sum()  # reads all pages
    dist.barrier()
    report['memory'] = memory_of(path)
    dist.barrier()
    reports = [None] * WORLD
    dist.all_gather_object(reports, report)
    if rank == 0:
        torch.save(reports, f'{folder}/reports.pt')
    dist.destroy_process_group()


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('distributed')
    write_graph(folder / 'graph.pt')
    start(process, (str(folder),), WORLD)
    return folder


@pytest.fixture(scope='module')
def reports(folder):
    return torch.load(folder / 'reports.pt', weights_only=False)


def test_two_processes_have_the_batches_of_one(folder, reports):
    data, sampler = torch.load(folder / 'graph.pt', weights_only=False)
    alone = loaders(data, sampler, rank=0, world_size=1)
    for i, loader in enumerate(alone):
        want = [values(batch) for batch in loader]
        shares = [report['batches'][i] for report in reports]
        assert [len(share) for share in shares] in ([4, 3], [3, 3])
        assert shares == [want[0::2], want[1::2]]


def test_training_ends_with_equal_weights(reports):
    first, second = (report['weights'] for report in reports)
    assert all(map(torch.equal, first, second))


def test_the_graph_is_in_memory_once(folder, reports):
    size = os.path.getsize(folder / 'graph.pt')
    resident, share = zip(*(r['memory'] for r in reports), strict=True)
    assert min(resident) > 0.8 * size
    assert sum(share) < 1.1 * size
