"""Builds the extension: g++ for csrc/, nvcc too where CUDA is wanted.

The build does not import torch, and so needs none in its build environment:
it finds an installed torch >= 2.11 and uses its headers. The extension is
written against torch's stable ABI, so one build serves every later torch.

Why not scikit-build-core: CMake and ninja would be two more dependencies of a
build from source, for a list of sources, flags and architectures of the same
length. An object file is compiled again if its content or command changes.

Environment variables:
    GSAMPLE_CUDA: ``auto`` (default: when both a CUDA torch and nvcc are
        found), ``1`` or ``0``.
    GSAMPLE_CUDA_ARCHS: compute capabilities (default ``75;80;90``).
    GSAMPLE_TORCH_DIR: directory that holds the ``torch`` package to build for.
    GSAMPLE_SANITIZE: ``address`` (with undefined behaviour) or ``thread``.
    CXX, CUDA_HOME, MAX_JOBS, NVCC_APPEND_FLAGS: as usual; ``CXX`` may be a
        cross compiler, with a torch for its machine.
"""

import functools
import hashlib
import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
CSRC = ROOT / 'csrc'
# Object files are kept, and made again when what they are made of changes.
OBJECTS = ROOT / 'build' / 'objects'
STABLE_ABI = '0x020b000000000000'  # torch 2.11
MIN_TORCH = (2, 11)
# By what a compiler is for. Every x86-64 processor has these since 2009: a bit
# count is one instruction. For aarch64, GCC 12 adds up comparisons in straight
# code as vectors of 0 and -1, so that a count of 8 is -8.
MACHINE = {
    'x86_64': ['-msse4.2', '-mpopcnt'],
    'aarch64': ['-fno-tree-slp-vectorize'],
}

SANITIZERS = {
    '': ['-O3'],
    'address': [
        '-O1',
        '-g',
        '-fno-omit-frame-pointer',
        '-fno-sanitize-recover=all',
        '-fsanitize=address,undefined',
    ],
    # ThreadSanitizer does not know OpenMP's barriers, so kernels then run on
    # threads of their own.
    'thread': ['-O1', '-g', '-fsanitize=thread', '-DGSAMPLE_STD_THREADS'],
}


def find_torch() -> tuple[Path, str | None]:
    """Returns torch's directory and the CUDA version that it was built for."""
    search = [
        os.environ.get('GSAMPLE_TORCH_DIR', ''),
        *sys.path,
        sysconfig.get_path('platlib'),
        sysconfig.get_path('purelib'),
    ]
    spec = importlib.machinery.PathFinder.find_spec('torch', search)
    if spec is None or spec.origin is None:
        sys.exit(
            'torch_gsample: torch was not found. Install torch>=2.11 '
            'first, then build with --no-build-isolation.'
        )
    root = Path(spec.origin).parent
    text = (root / 'version.py').read_text()
    version = re.search(r"__version__ = '(\d+)\.(\d+)", text)
    if version is None or tuple(map(int, version.groups())) < MIN_TORCH:
        sys.exit(f'torch_gsample: torch>=2.11 is needed (found {root})')
    cuda = re.search(r"^cuda.*?= *'([\d.]+)'", text, re.MULTILINE)
    return root, cuda.group(1) if cuda else None


def find_nvcc() -> Path | None:
    home = os.environ.get('CUDA_HOME') or os.environ.get('CUDA_PATH')
    candidates = [Path(home) / 'bin' / 'nvcc'] if home else []
    candidates += sorted(Path('/usr/local').glob('cuda*/bin/nvcc'))
    on_path = shutil.which('nvcc')
    candidates += [Path(on_path)] if on_path else []
    return next((path for path in candidates if path.exists()), None)


def wants_cuda(torch_cuda: str | None, nvcc: Path | None) -> bool:
    mode = os.environ.get('GSAMPLE_CUDA', 'auto')
    if mode not in ('auto', '0', '1'):
        sys.exit(
            f"torch_gsample: GSAMPLE_CUDA must be 'auto', '0' or '1' "
            f"(got '{mode}')"
        )
    if mode == '1' and nvcc is None:
        sys.exit('torch_gsample: GSAMPLE_CUDA=1, but nvcc was not found')
    return mode == '1' or (mode == 'auto' and None not in (torch_cuda, nvcc))


def cuda_arch_flags() -> list[str]:
    archs = os.environ.get('GSAMPLE_CUDA_ARCHS', '75;80;90').split(';')
    flags = [f'-gencode=arch=compute_{a},code=sm_{a}' for a in archs]
    return flags + [
        f'-gencode=arch=compute_{archs[-1]},code=compute_{archs[-1]}'
    ]


def cuda_flags(compiler: str) -> list[str]:
    return [
        '-O3',
        '-std=c++17',
        f'-ccbin={compiler}',
        '--threads=0',  # architectures at a time
        '-fmad=false',  # as -ffp-contract=off
        '-Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off',
        *cuda_arch_flags(),
    ]


def target_of(compiler: str) -> str:
    """What a compiler makes code for, as ``aarch64-linux-gnu``."""
    try:
        command = [compiler, '-dumpmachine']
        return subprocess.check_output(command, text=True).strip()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(
            f"torch_gsample: 'CXX' must be GCC or clang: {compiler!r} does "
            f'not tell its target ({error}). The sources use their extensions '
            f'of C++, which MSVC lacks'
        )


def host_sources(with_cuda: bool) -> list[Path]:
    """What g++ compiles: not the emulator, which is for tests."""
    sources = set(CSRC.rglob('*.cpp')) - set((CSRC / 'emu').rglob('*'))
    if not with_cuda:
        sources -= set(CSRC.rglob('*_cuda.cpp'))
    return sorted(sources)


class BuildExtension(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        # Not a Python module, hence no Python version in its name:
        return os.path.join(*fullname.split('.')) + '.so'

    def build_extension(self, ext: Extension) -> None:
        torch, torch_cuda = find_torch()
        nvcc = find_nvcc()
        with_cuda = wants_cuda(torch_cuda, nvcc) and any(CSRC.rglob('*.cu'))
        sanitizer = SANITIZERS[os.environ.get('GSAMPLE_SANITIZE', '')]
        compiler = os.environ.get('CXX', 'g++')
        target = target_of(compiler)
        windows = 'windows' in target or 'mingw' in target
        # No contraction of a * b + c: floating-point results must not depend
        # on the instruction set.
        flags = [
            '-std=c++17',
            *([] if windows else ['-fPIC']),
            '-fvisibility=hidden',
            '-Wall',
            '-ffp-contract=off',
            f'-DTORCH_TARGET_VERSION={STABLE_ABI}',
            f'-I{torch / "include"}',
            *MACHINE.get(target.partition('-')[0], []),
            *sanitizer,
        ]
        jobs = []
        for source in host_sources(with_cuda):
            jobs.append([compiler, *flags, '-c', from_root(source)])
        for source in sorted(CSRC.rglob('*.cu')) if with_cuda else []:
            command = [str(nvcc), *cuda_flags(compiler), '-c']
            jobs.append([*command, from_root(source)])
        output = Path(self.get_ext_fullpath(ext.name)).resolve()
        output.parent.mkdir(parents=True, exist_ok=True)
        link = ['-ltorch_cpu', '-lc10']
        link += [] if windows else ['-ldl', '-lpthread']
        if with_cuda and nvcc is not None:
            link += [f'-L{nvcc.parent.parent / "lib64"}', '-lcudart_static']
            link += ['-lrt']
        subprocess.check_call(
            [
                compiler,
                '-shared',
                *self.compile(jobs),
                '-o',
                str(output),
                f'-L{torch / "lib"}',
                *link,
                *[f for f in sanitizer if 'san' in f],
            ]
        )

    def compile(self, jobs: list[list[str]]) -> list[str]:
        """Runs the jobs whose object files are not there already."""
        objects, needed = [], []
        for job in jobs:
            source = ROOT / job[-1]
            target = folder_of(source) / f'{source.relative_to(CSRC)}.o'
            job += ['-o', from_root(target)]
            made_of = fingerprint(source, job)
            note = target.with_suffix('.sha256')
            found = target.exists() and note.exists()
            if not found or note.read_text() != made_of:
                needed.append((job, note, made_of))
            objects.append(str(target))
        workers = int(os.environ.get('MAX_JOBS') or os.cpu_count() or 1)
        with ThreadPoolExecutor(workers) as executor:
            list(executor.map(lambda item: run_job(*item), needed))
        return objects


class BuildWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        # The extension is no Python module: one wheel for every Python.
        return 'py3', 'none', super().get_tag()[2]


def from_root(path: Path) -> str:
    """A path that is the same in any checkout."""
    return str(path.relative_to(ROOT))


@functools.cache
def included(path: Path) -> frozenset[Path]:
    """What a file of csrc/ is made of there: itself and what it includes."""
    names = re.findall(r'(?m)^ *# *include +"(.+)"', path.read_text())
    found = [(path.parent / name).resolve() for name in names]
    inner = [included(file) for file in found if file.exists()]
    return frozenset({path}).union(*inner)


def more_of_nvcc() -> list[str]:
    """Flags that nvcc takes from the environment, too."""
    names = 'NVCC_PREPEND_FLAGS', 'NVCC_APPEND_FLAGS'
    return [os.environ[name] for name in names if os.environ.get(name)]


def folder_of(source: Path) -> Path:
    """Where objects are kept; those of nvcc's own flags replace no others."""
    if source.suffix != '.cu' or not more_of_nvcc():
        return OBJECTS
    digest = hashlib.sha256(repr(more_of_nvcc()).encode()).hexdigest()
    return OBJECTS / f'nvcc-{digest[:8]}'


def fingerprint(source: Path, job: list[str]) -> str:
    """A hash of what an object file is made of."""
    torch, _ = find_torch()
    files = [torch / 'version.py', *sorted(included(source))]
    command = [*job, *more_of_nvcc()] if source.suffix == '.cu' else job
    parts = [repr(command).encode(), *[path.read_bytes() for path in files]]
    return hashlib.sha256(b'\0'.join(parts)).hexdigest()


def run_job(job: list[str], note: Path, made_of: str) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    note.unlink(missing_ok=True)
    subprocess.check_call(job, cwd=ROOT)
    note.write_text(made_of)


setup(
    ext_modules=[Extension('torch_gsample._C', [])],
    cmdclass={'build_ext': BuildExtension, 'bdist_wheel': BuildWheel},
)
