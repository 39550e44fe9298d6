"""Checks the CUDA half of an installed wheel, on a machine without a GPU."""

import os
import re
import struct
import subprocess
from pathlib import Path

import torch


def check_cuda(library: Path) -> None:
    """An extension loads without a driver and holds all that was asked for.

    Args:
        library: The extension; `GSAMPLE_CUDA_ARCHS` names the compute
            capabilities that it was built for.
    """
    torch.ops.load_library(library)
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    for device in 'CPU', 'CUDA':
        assert has_kernel('gsample::sample_neighbors', device), device
    wanted = set(map(int, os.environ['GSAMPLE_CUDA_ARCHS'].split(';')))
    found = architectures(library)
    assert found == wanted, found
    needed = libraries(library)
    assert needed
    assert not [name for name in needed if 'cuda' in name], needed


def architectures(path: Path) -> set[int]:
    """Architectures of the machine code in the fat binaries of a file."""
    data, found = path.read_bytes(), set()
    header = struct.pack('<IHH', 0xBA55ED50, 1, 16)  # magic, version, size
    for match in re.finditer(re.escape(header), data):
        (size,) = struct.unpack_from('<Q', data, match.end())
        at = match.start() + 16
        end = at + size
        while at < end:
            kind, _, before, length = struct.unpack_from('<HHIQ', data, at)
            if kind == 2:  # ELF; 1 is PTX
                found.add(struct.unpack_from('<I', data, at + 28)[0])
            at += before + length
    return found


def libraries(path: Path) -> list[str]:
    """Names of the libraries that an extension asks the loader for."""
    done = subprocess.run(
        ['readelf', '--dynamic', path],
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r'NEEDED.*\[(.*)\]', done.stdout)
