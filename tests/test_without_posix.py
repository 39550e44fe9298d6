"""Python without the calls that Windows lacks: simulated, on this system."""

import subprocess
import sys
import textwrap

_WITHOUT = """
import mmap, os, sys, warnings

import torch
import torch_geometric.loader
from torch_geometric.data import Data

modules = "fcntl", "resource", "pwd", "grp", "termios"
sys.modules.update(dict.fromkeys(modules))
names = (
    "register_at_fork fork getuid geteuid getegid sched_getaffinity sysconf "
    "O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_DIRECT O_CLOEXEC memfd_create "
    "MFD_CLOEXEC pread preadv pwrite statvfs posix_fadvise"
)
for name in names.split():
    delattr(os, name)
for name in dir(mmap):
    if name.startswith(("MAP_", "PROT_", "MADV_")):
        delattr(mmap, name)
"""


def _run_without_posix(program: str) -> str:
    source = _WITHOUT + textwrap.dedent(program)
    command = [sys.executable, '-c', source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_samples_and_kernels_without_posix():
    out = _run_without_posix("""
        from torch_gsample.codegen.build import BuildError, build
        from torch_gsample.doctor import _cpu
        from torch_gsample.loader import NeighborLoader

        edge_index = torch.arange(200).view(2, 100) % 50
        data = Data(torch.ones(50, 2), edge_index, num_nodes=50)
        batches = list(NeighborLoader(data, [2, 2], batch_size=25, seed=1))
        print(len(batches), _cpu().state)
        try:
            build("")
        except BuildError as error:
            print(error)
        try:
            import torch_gsample.storage
        except ImportError as error:
            print(error)
    """)
    assert out.splitlines() == [
        '2 ok',
        'kernels are not compiled on Windows',
        'torch_gsample.storage needs Linux: graphs and features on disk use '
        'calls that this system lacks. Graphs in memory work without it',
    ]


def test_vertex_programs_fall_back_without_posix():
    out = _run_without_posix("""
        import torch_gsample as gsample

        @gsample.vertex_program
        def scaled(v):
            return sum(u.h * torch.exp(u.e) for u in v.innbs)

        edge_index = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = scaled(edge_index, h=torch.eye(3), e=torch.zeros(3, 1))
        print(out.tolist())
        print({str(w.message) for w in caught})
    """)
    assert out.splitlines() == [
        '[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]',
        "{'gsample: kernels are not compiled on Windows: torch operators run "
        "instead of generated kernels'}",
    ]
