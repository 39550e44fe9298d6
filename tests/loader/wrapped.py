"""What tests of wrappers share: a loader, and two processes."""

import multiprocessing
import os
import socket

import torch

from tests.fresh import start
from tests.loader.batches import graph

DATA = graph()
NODES = {'shuffle': True, 'batch_size': 6}
LOST = 'a batch has no index'


def in_two_processes(job, tmp_path):
    """The results of a function of the rank in each of two processes."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    start(_process, (job, port, tmp_path), 2)
    return [
        torch.load(tmp_path / f'{rank}.pt', weights_only=False)
        for rank in range(2)
    ]


def _process(rank, job, port, tmp_path):
    torch.set_num_threads(1)
    # Workers of a process that is spawned would be spawned, too.
    multiprocessing.set_start_method('fork', force=True)
    names = {'RANK': rank, 'LOCAL_RANK': rank, 'GROUP_RANK': 0}
    sizes = {'WORLD_SIZE': 2, 'LOCAL_WORLD_SIZE': 2, 'MASTER_PORT': port}
    others = {'MASTER_ADDR': '127.0.0.1', 'TORCHELASTIC_RUN_ID': 1}
    for name, value in {**names, **sizes, **others}.items():
        os.environ[name] = str(value)
    torch.save(job(rank), tmp_path / f'{rank}.pt')
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
