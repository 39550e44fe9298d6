"""Checks of this machine, and how to install missing parts."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from typing import Literal

import torch

from torch_gsample._library import PATH, has_cuda_kernel
from torch_gsample.codegen.build import FLAGS, BuildError, build

State = Literal['ok', 'missing', 'too old', 'broken', 'slow']

#: The purpose of each package, its first version, and whether nothing works
#: without it. A package without a version is not ours to choose.
_PACKAGES = {
    'torch': ('everything', '2.11', True),
    'torch-geometric': ('everything', '2.7', True),
    'duckdb': ('edge files larger than memory (storage)', '', False),
    'pyarrow': ('edge files and Spark (storage, spark)', '18', False),
    'pyspark': ('graphs larger than a machine (spark)', '4.1', False),
    'matplotlib': ('pictures (viz)', '', False),
    'graphviz': ('pictures of compiled programs (viz)', '', False),
    'scipy': ('SciPy matrices, node2vec with PyG', '', False),
    'rich': ('colours on a terminal (cli)', '', False),
}
_PROGRAMS = {
    'nvcc': ('building the extension for GPUs', "NVIDIA's CUDA toolkit"),
    'java': (
        'spark',
        'a Java 17 runtime: apt install openjdk-17-jre-headless',
    ),
    'dot': ('pictures of compiled programs', 'apt install graphviz'),
}
_KERNEL = 'extern "C" int gsample_kernel() { return 0; }\n'


@dataclass(frozen=True)
class Finding:
    """The state of a package, a program or a setting.

    Args:
        part (str): The name.
        state (str): ``'ok'``, ``'missing'``, ``'too old'``, ``'broken'`` or
            ``'slow'``.
        found (str): The version, path or value.
        used_for (str): The features that need it.
        advice (str): The remedy, if the state is not ``'ok'``.
        needed (bool): Whether all features need it.
    """

    part: str
    state: State
    found: str
    used_for: str
    advice: str = ''
    needed: bool = False


def examine() -> list[Finding]:
    """Checks all dependencies and settings.

    Example:
        >>> from torch_gsample.doctor import examine
        >>> findings = examine()
        >>> [finding.state for finding in findings if finding.part == 'torch']
        ['ok']
    """
    packages = [_package(name) for name in _PACKAGES]
    programs = [_program(name) for name in _PROGRAMS]
    return [
        _python(),
        *packages,
        _extension(),
        _cpu(),
        _gpu(),
        _compiler(),
        _waiting(),
        _allocator(),
        *programs,
    ]


def is_sound(findings: list[Finding]) -> bool:
    """Whether all requirements are ``'ok'``."""
    return all(f.state == 'ok' for f in findings if f.needed)


def as_dicts(findings: list[Finding]) -> list[dict[str, object]]:
    """Returns findings for JSON."""
    return [asdict(finding) for finding in findings]


def _python() -> Finding:
    found = f'{platform.python_version()}, {platform.platform()}'
    return Finding('python', 'ok', found, 'everything', needed=True)


def _package(name: str) -> Finding:
    use, least, needed = _PACKAGES[name]
    wanted = f'{name}>={least}' if least else name
    advice = f"pip install '{wanted}'"
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, 'missing', '', use, advice, needed)
    if _numbers(found) < _numbers(least):
        return Finding(name, 'too old', found, use, advice, needed)
    return Finding(name, 'ok', found, use, needed=needed)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r'\d+', version)[:2]))


def _program(name: str) -> Finding:
    use, advice = _PROGRAMS[name]
    path = shutil.which(name)
    if path is None:
        return Finding(name, 'missing', '', use, advice)
    return Finding(name, 'ok', path, use)


def _extension() -> Finding:
    kind = 'CPU and CUDA' if has_cuda_kernel('sample_neighbors') else 'CPU'
    found = f'{kind}, {PATH.stat().st_size >> 10} KiB'
    return Finding('extension', 'ok', found, 'everything', needed=True)


def _cpu() -> Finding:
    affinity = getattr(os, 'sched_getaffinity', None)  # of Linux only
    usable = len(affinity(0)) if affinity else os.cpu_count()
    vector = torch.backends.cpu.get_cpu_capability()
    found = f'{usable} cores, {torch.get_num_threads()} threads, {vector}'
    return Finding('cpu', 'ok', found, 'everything', needed=True)


def _waiting() -> Finding:
    """Checks that OpenMP threads do not spin while they wait."""
    policy = os.environ.get('OMP_WAIT_POLICY', '')
    found, use = f'OMP_WAIT_POLICY={policy}', 'operators of torch on the CPU'
    if torch.get_num_threads() == 1 or policy.lower() == 'passive':
        return Finding('waiting', 'ok', found, use)
    advice = 'set OMP_WAIT_POLICY=PASSIVE if other programs run as well'
    return Finding('waiting', 'slow', found, use, advice)


def _allocator() -> Finding:
    """Checks that freed memory is not returned to the system."""
    use = 'large tensors of torch on the CPU'
    preloaded = os.environ.get('LD_PRELOAD', '')
    for name in ('jemalloc', 'tcmalloc', 'mimalloc'):
        if name in preloaded:
            return Finding('allocator', 'ok', name, use)
    if platform.libc_ver()[0] != 'glibc':
        return Finding('allocator', 'ok', 'not of glibc', use)
    tunables = os.environ.get('GLIBC_TUNABLES', '')
    kept = os.environ.get('MALLOC_MMAP_MAX_') == '0'
    if kept or 'glibc.malloc.mmap_max=0' in tunables.split(':'):
        return Finding('allocator', 'ok', 'glibc, keeps pages', use)
    advice = (
        'to keep their pages, call torch_gsample.keep_memory(), or set '
        'MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=17179869184'
    )
    return Finding('allocator', 'slow', 'glibc', use, advice)


def _gpu() -> Finding:
    use = 'samplers on a GPU'
    if not torch.cuda.is_available():
        built = torch.version.cuda
        found = f'torch is for CUDA {built}' if built else 'torch is for CPUs'
        advice = 'a GPU with its driver, and torch for CUDA'
        return Finding('gpu', 'missing', found, use, advice)
    found = f'{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}'
    if not has_cuda_kernel('sample_neighbors'):
        advice = 'build the extension with GSAMPLE_CUDA=1'
        return Finding('gpu', 'missing', f'{found}, no kernels', use, advice)
    return Finding('gpu', 'ok', found, use)


def _compiler() -> Finding:
    """Compiles a kernel, as for compiled programs."""
    name = os.environ.get('CXX', 'g++')
    use = 'kernels of compiled programs (else torch computes)'
    path = shutil.which(name)
    if path is None:
        advice = 'apt install g++, or set CXX'
        return Finding('compiler', 'missing', name, use, advice)
    try:
        build(_KERNEL).close()
    except BuildError as error:
        advice = f'see that `{name} {" ".join(FLAGS)}` works: {error}'
        return Finding('compiler', 'broken', path, use, advice)
    version = subprocess.run([path, '-dumpversion'], capture_output=True)
    return Finding(
        'compiler', 'ok', f'{path} {version.stdout.decode().strip()}', use
    )
