"""Copies of a vector share its pages until they are written to."""

import os

import pytest
import torch

from tests.storage.disk import in_a_fork
from torch_gsample.storage.matrices.shared_vector import SharedVector

DTYPES = [torch.float32, torch.float64, torch.int64, torch.bfloat16]


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('size', [0, 1, 1_000, 200_001])
def test_a_change_of_a_copy_is_of_that_copy_alone(dtype, size):
    value = torch.arange(size).to(dtype)
    vector = SharedVector(value)
    first, second = vector.copy(), vector.copy()
    assert first.dtype == dtype
    first.add_(1)
    value.zero_()
    want = torch.arange(size).to(dtype)
    assert torch.equal(first, want + 1)
    del first
    third = vector.copy()
    del vector  # copies outlive it
    assert torch.equal(second, want)
    assert torch.equal(third, want)


def private_pages():
    """Returns the bytes of this process that no file has."""
    with open('/proc/self/status') as file:
        (line,) = (line for line in file if line.startswith('RssAnon'))
    return 1024 * int(line.split()[1])


def test_a_copy_takes_the_memory_that_is_written():
    vector = SharedVector(torch.ones(8_000_000))
    copies = [vector.copy() for _ in range(4)]
    before = private_pages()
    assert all(float(copy.sum()) == 8e6 for copy in copies)
    copies[0][::4_000_000] = 2
    assert private_pages() - before < 16_000_000


def test_a_forked_process_takes_copies():
    vector = SharedVector(torch.ones(100_000))

    def work():
        copy = vector.copy().numpy()  # it has none of torch's threads
        copy[7] = 0
        assert vector.copy().numpy()[7] == 1

    assert in_a_fork(work) == 0
    assert float(vector.copy()[7]) == 1


def test_the_file_is_closed():
    files = len(os.listdir('/proc/self/fd'))
    vector = SharedVector(torch.ones(100_000))
    copy = vector.copy()
    del vector
    assert float(copy[7]) == 1
    del copy
    assert len(os.listdir('/proc/self/fd')) == files
