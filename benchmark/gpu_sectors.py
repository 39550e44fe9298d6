"""Random reads of a GPU's memory by a plain kernel: the bound of other rows.

Adjacent lanes read a sector of 32 to 256 bytes at the position that a hash of
the read's number returns, so that only sectors are read, and any number of
reads may be in flight. On other devices torch gathers rows instead, for tests.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_gsample.codegen.cuda_driver import driver
from torch_gsample.codegen.nvrtc import build_cubin

WIDTHS = 32, 64, 128, 256  # bytes
THREADS, BLOCKS_A_PROCESSOR = 256, 8
NAME = 'random_sectors'
SOURCE = """
struct alignas(16) Part { unsigned x, y, z, w; };

// A lane reads 16 bytes of each sector of its group, and writes their sum.
extern "C" __global__ void random_sectors(long long sectors, long long reads,
                                          long long lanes, const Part* table,
                                          Part* out) {
  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long groups = (long long)gridDim.x * blockDim.x / lanes;
  const long long lane = thread % lanes;
  Part sum{0, 0, 0, 0};
#pragma unroll 8
  for (long long i = thread / lanes; i < reads; i += groups) {
    unsigned long long hash = (unsigned long long)i * 0x9E3779B97F4A7C15ull;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ull;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBull;
    const long long sector = __umul64hi(hash ^ (hash >> 31), sectors);
    const Part part = table[sector * lanes + lane];
    sum.x ^= part.x; sum.y ^= part.y; sum.z ^= part.z; sum.w ^= part.w;
  }
  out[thread] = sum;
}
"""


def random_reads(
    table: Tensor, width: int, reads: int
) -> Callable[[int], object]:
    """Returns a function that reads sectors of a table.

    Args:
        table (torch.Tensor): int32, of a multiple of 256 bytes.
        width (int): Bytes of a sector.
        reads (int): Number of reads.
    """
    device, sectors = table.device, table.nbytes // width
    if device.type != 'cuda':
        rows = table.view(sectors, -1)
        index = torch.randint(sectors, (reads,), device=device)
        return lambda _: rows[index].sum()
    properties = torch.cuda.get_device_properties(device)
    blocks = BLOCKS_A_PROCESSOR * properties.multi_processor_count
    out = table.new_empty(blocks * THREADS, 4)
    arch = f'sm_{properties.major}{properties.minor}'
    with build_cubin(SOURCE, arch) as file:
        function = driver().load(device.index or 0, file.read(), NAME)

    def run(_: int) -> None:
        driver().launch(
            device.index or 0,
            function,
            (blocks, THREADS),
            [sectors, reads, width // 16, table, out],
            torch.cuda.current_stream(device).cuda_stream,
        )

    return run


def measure_sectors(
    device: torch.device,
    seconds: Callable[..., tuple[float, object]],
    size: int,
) -> dict[int, float]:
    """Returns the sectors of each width read per second.

    Args:
        device (torch.device): The device.
        seconds (Callable): Times a call.
        size (int): Bytes of the table.
    """
    table = torch.ones(size // 4, dtype=torch.int32, device=device)
    rates = {}
    for width in WIDTHS:
        reads = size // (2 * width)
        time, _ = seconds(random_reads(table, width, reads), 9)
        rates[width] = reads / time
    return rates
