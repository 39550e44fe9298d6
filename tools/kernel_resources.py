"""Prints what each CUDA kernel takes of a GPU: registers, spills, occupancy.

    python tools/kernel_resources.py [--arch 90] [file.cu ...]

It takes nvcc, and no GPU: ``ptxas`` says what it made of each kernel. Of all
of ``csrc/cuda`` without files; a minute for each ten.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: As of setup.py: contraction would change samples.
FLAGS = ['-O3', '-std=c++17', '-fmad=false', '--resource-usage', '-cubin']
REPORT = re.compile(
    r'Function properties for (?P<name>\S+)\n'
    r'\s*(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill '
    r'stores, (?P<loads>\d+) bytes spill loads\n'
    r'.*: Used (?P<registers>\d+) registers(?P<rest>.*)'
)
#: Limits of a processor (SM) of compute capability 7.0 to 9.0.
REGISTERS, GRANULE, WARPS = 65_536, 256, {75: 32, 86: 48, 89: 48}


class Kernel(NamedTuple):
    """The report of ptxas on a kernel; sizes are in bytes."""

    name: str
    registers: int
    stack: int
    stores: int
    loads: int
    shared: int

    def warps(self, arch: int, block: int) -> int:
        """How many warps of a processor registers leave room for."""
        each = -(-self.registers * 32 // GRANULE) * GRANULE
        fit = REGISTERS // each // (block // 32) * (block // 32)
        return min(fit, WARPS.get(arch, 64))


def read(report: str) -> Iterator[Kernel]:
    """Reads the kernels of what nvcc prints; device functions are none."""
    for found in REPORT.finditer(report):
        shared = re.search(r'(\d+) bytes smem', found['rest'])
        yield Kernel(
            found['name'],
            int(found['registers']),
            int(found['stack']),
            int(found['stores']),
            int(found['loads']),
            int(shared[1]) if shared else 0,
        )


def compile_report(source: Path, arch: int) -> str:
    """What nvcc says of a file."""
    nvcc = shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')
    if nvcc is None:
        sys.exit('kernel_resources: nvcc was not found')
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, 'kernels.cubin')
        done = subprocess.run(
            [nvcc, *FLAGS, f'-arch=sm_{arch}', source, '-o', cubin],
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout + done.stderr


def demangled(names: list[str]) -> list[str]:
    """The names of kernels with their template arguments only."""
    done = subprocess.run(
        ['c++filt'],
        input='\n'.join(names),
        capture_output=True,
        text=True,
        check=True,
    )
    casts = r'gsample::|void |\((?:gsample::WalkKind|bool)\)'
    lines = done.stdout.splitlines()
    return [re.sub(casts, '', line).split('(')[0] for line in lines]


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--arch', type=int, default=90)
    parser.add_argument('--block', type=int, default=256, help='threads')
    parser.add_argument('files', nargs='*', type=Path)
    args = parser.parse_args()
    files = args.files or sorted((ROOT / 'csrc' / 'cuda').glob('*.cu'))
    print('| kernel | registers | spilled | stack | shared | warps |')
    print('|---|---|---|---|---|---|')
    for source in files:
        kernels = list(read(compile_report(source, args.arch)))
        names = demangled([kernel.name for kernel in kernels])
        for name, kernel in sorted(zip(names, kernels, strict=True)):
            spilled = f'{kernel.stores} + {kernel.loads}'
            warps = kernel.warps(args.arch, args.block)
            print(
                f'| `{name}` | {kernel.registers} | {spilled} '
                f'| {kernel.stack} | {kernel.shared} | {warps} |',
                flush=True,
            )


if __name__ == '__main__':
    main()
