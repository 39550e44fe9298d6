"""Checks a GPU, stage by stage.

    python tests/cuda/on_gpu.py --out DIR build smoke parity bench ...

It needs torch for CUDA, torch-geometric, nvcc, pytest, and no installed
package of ours. Every stage ends after `--minutes` and writes its results to
`DIR/<stage>.jsonl` as they come, a line a case.

    build     versions; the extension for this GPU; the first call of CUDA
    smoke     every operator, loaders, a CUDA graph, generated kernels
    parity    the tests with the marker `gpu`
    bench     benchmark/gpu.py
    profile   benchmark/gpu_profile.py, with and without ncu
    sanitize  tests with the marker `sanitize` under compute-sanitizer
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, product
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP))

from tests.cuda.processes import (  # noqa: E402
    Stage,
    clean_environment,
    pytest,
    run_tests,
)

PYTHON = sys.executable
LOAD = """
import torch, torch_gsample.ops
print(torch.__version__, torch.version.cuda, torch_gsample.__file__)
has = torch._C._dispatch_has_kernel_for_dispatch_key
assert has('gsample::sample_neighbors', 'CUDA'), 'it was built without CUDA'
print(torch.ones(3, device='cuda').sum().item(), torch.cuda.get_device_name())
"""
#: Tools that a planted bug of this name proves to work.
TOOLS = 'memcheck', 'racecheck', 'synccheck'
MOST_TESTS = 60  # of a process
FEW_THREADS = {'OMP_NUM_THREADS': '2'}


def build(stage, args):
    """Facts about the machine, and the extension."""
    for command in (
        ['nvidia-smi'],
        ['nvcc', '--version'],
        [PYTHON, '-m', 'torch.utils.collect_env'],
    ):
        if shutil.which(command[0]) is None:
            stage.write(command[0], 'FAILED: it was not found')
        else:
            stage.run(' '.join(command[-2:]), command, 60, keep_text=True)
    environment = {'GSAMPLE_CUDA': '1'}
    if 'GSAMPLE_CUDA_ARCHS' not in os.environ and (here := capability()):
        environment['GSAMPLE_CUDA_ARCHS'] = here
    command = [PYTHON, 'setup.py', '--quiet', 'build_ext', '--inplace']
    stage.run('the extension', command, 450, **environment)
    stage.run('it loads', [PYTHON, '-c', LOAD], 120, keep_text=True)


def capability():
    """The compute capability of the GPU as of nvcc, or nothing."""
    if shutil.which('nvidia-smi') is None:
        return ''
    query = ['nvidia-smi', '--query-gpu=compute_cap', '--format=csv,noheader']
    done = subprocess.run(query, capture_output=True, text=True)
    return done.stdout.partition('\n')[0].replace('.', '')


def smoke(stage, args):
    """A process for each case of `smoke_cases.py`."""
    module = [PYTHON, '-m', 'tests.cuda.smoke_cases', '--device', args.device]
    names = args.only or printed(stage, 'the cases', module)

    def run(name):
        stage.run(name, [*module, name], args.limit, **FEW_THREADS)

    in_parallel(args.jobs, run, names)


def parity(stage, args):
    """All tests that run on a GPU, up to 60 of a file in a process."""
    tests = args.only or collect(stage, 'gpu')
    parts = []
    for _, part in groupby(tests, lambda test: test.split('::')[0]):
        part = list(part)
        for i in range(0, len(part), MOST_TESTS):
            parts.append(part[i : i + MOST_TESTS])
    parts.sort(key=len, reverse=True)
    in_parallel(
        args.jobs, lambda part: run_tests(stage, part, args.limit), parts
    )


def bench(stage, args):
    """The benchmark."""
    command = [PYTHON, 'benchmark/gpu.py', '--graph', args.graph]
    command += ['--minutes', '5.5', '--out', stage.folder]
    stage.run('gpu.py', command, 440, keep_text=True)


def profile(stage, args):
    """Times of kernels, and metrics by ncu."""
    calls = [PYTHON, 'benchmark/gpu_profile.py', '--graph', args.graph]
    times = [*calls, '--out', stage.folder / 'kernels.jsonl']
    stage.run('gpu_profile.py', times, 120, keep_text=True)
    if shutil.which('ncu') is None:
        stage.write('ncu', 'left out: it was not found')
        return
    ncu = ['ncu', '--clock-control', 'none', '--csv']
    ncu += ['--kernel-name-base', 'demangled', '-k', 'regex:gsample']
    for section in ('SpeedOfLight', 'Occupancy', 'MemoryWorkloadAnalysis'):
        ncu += ['--section', section]
    ncu += ['--log-file', stage.folder / 'ncu.csv']
    stage.run('ncu', [*ncu, *calls, '--once'], 300)


def sanitize(stage, args):
    """Small tests of each kernel, under each tool that works here."""
    for tool in ('compute-sanitizer', 'nvcc'):
        if shutil.which(tool) is None:
            stage.write(tool, 'FAILED: it was not found')
            return
    tests = args.only or collect(stage, 'gpu and sanitize')
    files = groupby(tests, lambda test: test.split('::')[0])
    files = {file: list(part) for file, part in files}
    with tempfile.TemporaryDirectory() as folder:
        planted = Path(folder) / 'planted'
        command = ['nvcc', '-o', planted, 'tests/sanitize/planted.cu']
        stage.run('a program with bugs', command, 60)
        tools = [tool for tool in TOOLS if sees_bug(stage, tool, planted)]
    options = FEW_THREADS | {'PYTORCH_NO_CUDA_MEMORY_CACHING': '1'}

    def run(case):
        tool, file = case
        command = [*sanitizer(tool), *pytest(*files[file])]
        stage.run(f'{tool} {file}', command, args.limit, **options)

    in_parallel(args.jobs, run, list(product(tools, files)))


def sanitizer(tool):
    """The start of a command under a tool of compute-sanitizer."""
    return ['compute-sanitizer', '--tool', tool, '--error-exitcode', '9']


def sees_bug(stage, tool, planted):
    """Whether a tool finds a planted bug: some machines admit no tool."""
    case = f'{tool}: a planted bug'
    process = stage.process([*sanitizer(tool), planted, tool], 60)
    if process.status == 9:
        stage.write(case, 'ok', process.seconds)
        return True
    said = f'FAILED: {process.said()}, so that the tool is left out'
    stage.write(case, said, process.seconds, text=process.text())
    return False


def collect(stage, marker):
    """The ids of the tests with a marker."""
    command = pytest('--collect-only', '-q', '-m', marker, 'tests/cuda')
    lines = printed(stage, f'the tests of {marker}', command)
    return [line for line in lines if line.startswith('tests/cuda/')]


def printed(stage, case, command):
    """The lines that a process prints; none is a failure."""
    try:
        done = subprocess.run(
            command,
            cwd=TOP,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=max(1, min(120, stage.left())),
        )
    except subprocess.TimeoutExpired as error:
        stage.write(case, f'HANG: ended after {error.timeout:.0f} s')
        return []
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = f'FAILED: status {done.returncode}'
        stage.write(case, said, text=done.stdout[-2000:] + done.stderr[-2000:])
        return []
    return lines


def in_parallel(jobs, function, items):
    """Calls a function for each item, some at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(function, items):
            pass


STAGES = {
    stage.__name__: stage
    for stage in (build, smoke, parity, bench, profile, sanitize)
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('stages', nargs='+', choices=STAGES)
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--minutes', type=float, default=7.5, help='of each')
    parser.add_argument('--limit', type=float, default=90, help='of a case')
    parser.add_argument('--jobs', type=int, default=8)
    parser.add_argument('--device', default='cuda', help='cpu: a dry run')
    parser.add_argument('--graph', default='large', help='of the benchmark')
    parser.add_argument('--only', nargs='+', help='cases of smoke, or tests')
    args = parser.parse_args()
    folder, well = args.out.resolve(), True
    for name in args.stages:
        stage = Stage(name, folder, args.minutes)
        STAGES[name](stage, args)
        well &= stage.close()
    sys.exit(not well)


if __name__ == '__main__':
    main()
