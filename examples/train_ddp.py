"""Trains GraphSAGE in several processes, on one graph that they share.

.. code-block:: sh

    torchrun --nproc-per-node=2 examples/train_ddp.py
    python examples/train_ddp.py    # one process, the same batches

One process of each machine writes the graph and its sampler to a file that all
of them map; the memory that is printed is the system's count (PSS), in which a
page of two processes counts half for each. The share of the largest class is
printed, too.
"""

import argparse
import os
import tempfile
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch.nn.parallel import DistributedDataParallel
from torch_geometric import seed_everything
from torch_geometric.nn import GraphSAGE

from torch_gsample import NeighborSampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader


def map_graph(is_first: bool, seed: int):
    """Returns the mapped graph, its sampler, and the name of their file."""
    names = [f'gsample-{os.getpid()}.pt']
    dist.broadcast_object_list(names)
    path = Path(tempfile.gettempdir(), names[0])
    if is_first:
        undirected = T.ToUndirected()
        data = DebianPackages(homogeneous=True, pre_transform=undirected)[0]
        torch.save((data, NeighborSampler(data, [10, 5], seed=seed)), path)
    dist.barrier()
    data, sampler = torch.load(path, mmap=True, weights_only=False)
    dist.barrier()
    if is_first:
        path.unlink()  # the last process that maps it keeps it
    return data, sampler, path.name


def memory_of(name: str) -> float:
    """Returns this process's part of the pages of a file, in MiB."""
    total, ours = 0, False
    for line in Path('/proc/self/smaps').read_text().splitlines():
        if '-' in line.split(' ')[0]:  # a mapping begins
            ours = name in line
        elif ours and line.startswith('Pss:'):
            total += int(line.split()[1])
    return total / 1024


def train(
    args: argparse.Namespace, is_first: bool, rank: int, world_size: int
) -> None:
    """Trains and tests a model, and prints from the first process."""
    data, sampler, name = map_graph(is_first, args.seed)
    loaders = {
        split: NeighborLoader(
            data,
            sampler=sampler,
            input_nodes=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=split == 'train',
            rank=rank,
            world_size=world_size,
        )
        for split in ('train', 'test')
    }
    sizes = data.num_features, args.hidden, 2, int(data.y.max()) + 1
    model = DistributedDataParallel(GraphSAGE(*sizes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        with model.join():  # a process may have a batch more than another
            for batch in islice(loaders['train'], args.max_batches):
                out = model(batch.x, batch.edge_index)[: batch.batch_size]
                loss = F.cross_entropy(out, batch.y[: batch.batch_size])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if rank == 0:
            print(f'Epoch {epoch}: loss {loss.item():.4f}')
    correct = torch.zeros(2)
    for batch in islice(loaders['test'], args.max_batches):
        with torch.no_grad():
            out = model.module(batch.x, batch.edge_index)[: batch.batch_size]
        hits = out.argmax(dim=1) == batch.y[: batch.batch_size]
        correct += torch.tensor([int(hits.sum()), len(hits)])
    dist.all_reduce(correct)
    data.x.sum(), data.edge_index.sum()  # reads all pages of the largest
    dist.barrier()
    parts = [None] * world_size
    dist.all_gather_object(parts, memory_of(name))
    if rank == 0:
        largest = data.y[data.train_mask].bincount().argmax()
        share = (data.y[data.test_mask] == largest).double().mean()
        print(f'Largest class: test accuracy {share:.4f}')
        print(f'GraphSAGE: test accuracy {correct[0] / correct[1]:.4f}')
        print(f'The graph in MiB: {" + ".join(f"{p:.0f}" for p in parts)}')


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=256)
    add('--hidden', type=int, default=64)
    add('--max-batches', type=int, default=10**9, help='per process and pass')
    add('--seed', type=int, default=0)
    args = parser.parse_args()
    rank, local_rank = (int(os.getenv(n, '0')) for n in ('RANK', 'LOCAL_RANK'))
    world_size = int(os.getenv('WORLD_SIZE', '1'))
    store = None if 'RANK' in os.environ else dist.HashStore()
    dist.init_process_group(store=store, rank=rank, world_size=world_size)
    seed_everything(args.seed)  # equal weights in all processes
    # The model is freed before its process group. Were it the last to hold the
    # group, it would wait for the group's threads with Python's lock, which
    # those threads may want.
    train(args, local_rank == 0, rank, world_size)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
