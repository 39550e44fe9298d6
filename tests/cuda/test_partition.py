"""Processes with a part of a graph on a GPU each: they draw for one another.

The GPUs are simulated, the exchange is Gloo's.
"""

import pytest
import torch
import torch.distributed as dist

from tests.cuda.emulated import Emulator
from tests.cuda.simulated import OnSimulated
from tests.fresh import start
from tests.storage.test_partition import (
    WORLD,
    loader_of,
    parted,
    values,
    whole,
)
from torch_gsample.storage.partition.sampler import Turn

CASES = ['disjoint', 'temporal', 'weighted', 'typed']


def process(rank, folder, operators):
    torch.set_num_threads(1)
    dist.init_process_group(
        'gloo', f'file://{folder}/meet', rank=rank, world_size=WORLD
    )
    gpu, draw, own = OnSimulated(Emulator(operators)), Turn._draw, set()

    def drawn(*args):
        with gpu.running():
            out = draw(*args)
        gpu.assert_own()
        own.update(gpu.simulated.kernels)
        return out

    Turn._draw = drawn
    report = {}
    for name in CASES:
        data, sampler, seeds, _ = parted(name, rank)
        with gpu.running():
            sampler._part = sampler._part.to('cuda:0')
        loader = loader_of(name, data, sampler, seeds, rank, WORLD)
        report[name] = [values(batch) for batch in loader]
    reports = [None] * WORLD
    dist.all_gather_object(reports, (report, own))
    if rank == 0:
        torch.save(reports, f'{folder}/reports.pt')
    dist.destroy_process_group()


@pytest.fixture(scope='module')
def reports(tmp_path_factory, builder):
    folder = tmp_path_factory.mktemp('partition')
    start(process, (str(folder), str(builder.operators())), WORLD)
    return torch.load(folder / 'reports.pt', weights_only=False)


@pytest.mark.parametrize('name', CASES)
def test_processes_have_the_batches_of_one_machine(reports, name):
    data, seeds, sampler = whole(name)
    loader = loader_of(name, data, sampler, seeds, 0, 1)
    want = [values(batch) for batch in loader]
    for rank, (report, operators) in enumerate(reports):
        assert report[name] == want[rank::WORLD]
        assert operators == {'sample_columns'}
