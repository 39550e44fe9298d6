"""Host time of a call on a GPU, measured without a GPU.

    python benchmark/gpu_host.py

Operators for CUDA are built with kernels that do not run, and tensors are on
the CPU: the rest is Python, the dispatcher, checks, torch's CPU allocations
and arguments. CUDA's own calls are missing. Microseconds of processor time per
call, the least of several rounds.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

from tests.cuda.emulated import (  # noqa: E402
    EMULATOR,
    OPERATOR_FLAGS,
    TORCH,
    Builder,
    Emulator,
)
from torch_gsample import CSC, Graph, ops  # noqa: E402
from torch_gsample.rng import make_key  # noqa: E402

#: Source files of the operator.
HOST = 'sample_neighbors', 'device_memory', 'list_cache', 'host_reads'
KERNELS = 'neighbor_*.cu', 'split_*.cu', 'pad_sample.cu', 'arguments.cu'
CALLS, ROUNDS = 200, 15
FANOUTS = [15, 10, 5]
BATCHES = 8


def microseconds(call: Callable[[], object]) -> float:
    """The least time of a call in several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(CALLS):
            call()
        rounds.append((time.process_time() - begin) / CALLS)
    return 1e6 * min(rounds)


def stubs(folder: Path) -> Path:
    """A library with the operator, whose kernels do not run."""
    builder, csrc = Builder(folder), TOP / 'csrc'
    bind = [csrc / 'bind' / f'{name}_cuda.cpp' for name in HOST]
    host = [*bind, csrc / 'emu' / 'device.cpp']
    kernels = [path for name in KERNELS for path in csrc.glob(f'cuda/{name}')]
    flags = ['-DGSAMPLE_STUB']
    objects = builder.compile(host, [*OPERATOR_FLAGS, *flags, '-O2'])
    objects += builder.compile([*EMULATOR, *kernels], [*flags, '-O0'])
    link = ['-shared', f'-L{TORCH / "lib"}', '-ltorch_cpu', '-lc10']
    return builder.link(objects, 'stubs.so', flags=link)


def main() -> None:
    """Prints one line per kind of call."""
    torch.set_num_threads(1)
    module = sys.modules['torch_gsample.ops.sample_neighbors']
    with tempfile.TemporaryDirectory() as folder:
        library = stubs(Path(folder))
        emulator = Emulator(library)  # it keeps the schemas
        operator = emulator.operator('sample_neighbors')
    indptr = torch.arange(1001) * 10
    csc = CSC(indptr, torch.arange(10_000) % 1000, 1000, checked=True)
    graph, key = Graph.from_csc(csc), make_key(0)
    seeds = torch.arange(64)
    keys = torch.cat([make_key(0, batch=b) for b in range(BATCHES)])
    padded = ops.sample_neighbors(graph, seeds, FANOUTS, key)
    most = [padded.row.numel()]
    calls = {
        'the operator itself': lambda: operator(
            *(graph.tensors, graph.ends, graph.num_nodes, [seeds], FANOUTS),
            key,
        ),
        'ops.sample_neighbors': lambda: ops.sample_neighbors(
            graph, seeds, FANOUTS, key
        ),
        'with max_edges': lambda: ops.sample_neighbors(
            graph, seeds, FANOUTS, key, max_edges=most
        ),
        f'ops.sample_batches of {BATCHES}, all': lambda: ops.sample_batches(
            graph, [seeds] * BATCHES, FANOUTS, keys
        ),
    }
    with mock.patch.object(module, '_operator', operator):
        for name, call in calls.items():
            print(f'{name}: {microseconds(call):.1f} us', flush=True)


if __name__ == '__main__':
    main()
