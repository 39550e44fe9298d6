"""The next frontier is what was sampled, each once, in any number of turns."""

import pytest
import torch

from torch_gsample.storage.frontiers import next_keys
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
    pieces = next_keys([(keys, folder, 'h')], num_times, 50, mask_bytes)
    want = (row * num_times + rank).unique()
    assert torch.cat([*pieces]).tolist() == want.tolist()
    folder.remove()
