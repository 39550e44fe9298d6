"""The next frontier is what was sampled, each once, in any number of turns."""

import pytest
import torch

from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.storage.frontiers import Times, next_keys
from torch_gsample.storage.spill import Folder


@pytest.mark.parametrize('num_times', [1, 2])
@pytest.mark.parametrize('mask_bytes', [1_000, 64, 10, 7, 1])
def test_next_keys_are_distinct_and_ascend(tmp_path, num_times, mask_bytes):
    generator = torch.Generator().manual_seed(0)
    row = torch.randint(50, (200,), generator=generator)
    keys, length = torch.tensor([3, 8]), torch.tensor([80, 120])
    folder = Folder(tmp_path / 'disk', 0)
    folder.write('h-indptr', [torch.tensor([0, 80, 200])])
    folder.write('h-row', [row.int()])
    rank = (keys % num_times).repeat_interleave(length)
    times = torch.arange(num_times)
    follow = Times(times, times, TimeInterval())
    pieces = next_keys([(keys, folder, 'h')], follow, 50, mask_bytes)
    want = (row * num_times + rank).unique()
    assert torch.cat([*pieces]).tolist() == want.tolist()
    folder.remove()


@pytest.mark.parametrize('most', [0, 1_000])
def test_keys_of_a_hop_have_the_times_of_the_edges_before(tmp_path, most):
    """One relation has times; edges of the other pass theirs on."""
    keys = torch.tensor([3, 8])  # nodes 1 and 4, at times 30 and 20
    folder = Folder(tmp_path / 'disk', 0)
    for name in 'timed', 'other':
        folder.write(f'{name}-indptr', [torch.tensor([0, 1, 3])])
        folder.write(f'{name}-row', [torch.tensor([7, 5, 7])])
    folder.write('timed-time', [torch.tensor([12, 20, 12])])
    sampled = [(keys, folder, 'timed'), (keys, folder, 'other')]
    times = Times(torch.tensor([20, 30]), None, TimeInterval('edge', 'left'))
    times.later = times.distinct(sampled, most)
    assert times.later.tolist() == [11, 19, 20, 30]
    got = torch.cat([*next_keys(sampled, times, 9, 64)])
    want = [5 * 4 + 1, 5 * 4 + 2, 7 * 4, 7 * 4 + 2, 7 * 4 + 3]
    assert got.tolist() == want
    folder.remove()
