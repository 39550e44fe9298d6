"""Tensors move to large pages as they are."""

import re
from pathlib import Path

import pytest
import torch

from torch_gsample import quantize_rows, use_huge_pages

SETTING = Path('/sys/kernel/mm/transparent_hugepage/enabled')


def huge_bytes(tensor):
    """The bytes on large pages of the mappings that hold a tensor."""
    first = tensor.data_ptr()
    last, total, inside = first + tensor.nbytes, 0, False
    for line in Path('/proc/self/smaps').read_text().splitlines():
        if found := re.match(r'([0-9a-f]+)-([0-9a-f]+) ', line):
            begin, end = (int(x, 16) for x in found.groups())
            inside = begin < last and first < end
        elif inside and line.startswith('AnonHugePages:'):
            total += int(line.split()[1]) << 10
    return total


def kernel_collapses():
    version = Path('/proc/sys/kernel/osrelease').read_text().split('.')
    major, minor = (int(re.match(r'\d+', part)[0]) for part in version[:2])
    return SETTING.exists() and (major, minor) >= (6, 1)


needs_kernel = pytest.mark.skipif(
    not Path('/proc/self/smaps').exists() or not kernel_collapses(),
    reason='needs Linux 6.1 with transparent huge pages',
)


@pytest.fixture
def large_pages():
    """Memory that is too scattered for 64 MiB of large pages has none."""
    lines = Path('/proc/buddyinfo').read_text().splitlines()
    blocks = [line.split()[4:] for line in lines]  # by order, 4 KiB * 2^i
    free = sum(
        int(count) << (order - 9)
        for counts in blocks
        for order, count in enumerate(counts)
        if order >= 9
    )
    if free < 128:
        pytest.skip(f'there are only {free} free blocks of 2 MiB')


@needs_kernel
@pytest.mark.usefixtures('large_pages')
def test_written_memory_moves_to_large_pages():
    x = torch.arange(16 << 20, dtype=torch.int32)  # 64 MiB
    before = huge_bytes(x)
    address = x.data_ptr()
    assert use_huge_pages(x) is x
    assert x.data_ptr() == address
    assert huge_bytes(x) >= max(before, x.nbytes // 2)
    assert torch.equal(x, torch.arange(16 << 20, dtype=torch.int32))


@needs_kernel
@pytest.mark.usefixtures('large_pages')
def test_quantized_rows_are_on_large_pages():
    values, _ = quantize_rows(torch.rand(1 << 18, 256))  # 64 MiB
    assert huge_bytes(values) >= values.nbytes // 2


@pytest.mark.parametrize('size', [0, 1, 1000])
def test_small_tensors_and_parameters_stay_as_they_are(size):
    x = torch.nn.Parameter(torch.rand(size))
    want = x.clone()
    assert use_huge_pages(x) is x
    assert torch.equal(x, want)


def test_bad_input_is_named():
    with pytest.raises(TypeError, match=r"use_huge_pages: 'input' must be a "):
        use_huge_pages([1.0])
    with pytest.raises(ValueError, match=r'contiguous on the CPU.*\[1, 3\]'):
        use_huge_pages(torch.rand(2, 3).t())
    with pytest.raises(ValueError, match='on meta'):
        use_huge_pages(torch.rand(2, device='meta'))
