"""Checks an installed wheel: its files, its operators, its entry points."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from cuda_checks import check_cuda

import torch_gsample
from torch_gsample import SparseSample, ops
from torch_gsample.csc import CSC
from torch_gsample.datasets import DebianPackages, GccChangelog, power_law
from torch_gsample.graph import Graph
from torch_gsample.rng import make_key, program_scope

PACKAGE = Path(torch_gsample.__file__).parent
#: Sums of the nodes that two hops reach: the same with every torch.
SUMS = [84327, 694723]


def check_files() -> None:
    distribution = importlib.metadata.distribution('torch_gsample')
    assert PACKAGE.is_relative_to(sys.prefix), PACKAGE
    assert distribution.version == torch_gsample.__version__
    tops = {str(file).split('/')[0] for file in distribution.files}
    info = f'torch_gsample-{distribution.version}.dist-info'
    extra = tops - {'torch_gsample', '..'}
    assert extra == {info}, extra
    assert (PACKAGE / 'py.typed').exists()
    assert list(PACKAGE.glob('codegen/*.h'))
    [tag] = [
        line.split()[1]
        for line in distribution.read_text('WHEEL').splitlines()
        if line.startswith('Tag:')
    ]
    assert tag.startswith('py3-none-manylinux'), tag


def check_operators() -> None:
    csc = power_law(1000, 10_000, 200)
    graph = Graph.from_csc(CSC(csc.indptr, csc.indices, csc.num_rows))
    key = make_key(12, 3, 4)
    out = ops.sample_neighbors(graph, torch.arange(10), [5, 3], key)
    sums = [int(out.node.sum()), int(out.edge.sum())]
    assert sums == SUMS, sums
    assert DebianPackages(homogeneous=True)[0].num_nodes > 0
    assert GccChangelog()[0].num_edges > 0


def check_compiler() -> None:
    """The backend is found by its entry point."""
    A = SparseSample.from_data(power_law(1000, 10_000, 200))

    def program(A: SparseSample, seeds: torch.Tensor) -> torch.Tensor:
        return A[:, seeds].individual_sample(3).edge_id

    compiled = torch.compile(program, backend='gsample', fullgraph=True)
    outs = []
    for call in (program, compiled):
        with program_scope(make_key(0, 0, 0)):
            outs.append(call(A, torch.arange(20)))
    assert outs[0].numel() > 0
    assert torch.equal(*outs)


def check_command() -> None:
    command = Path(sys.executable).parent / 'gsample'

    def run(*args: str) -> str:
        done = subprocess.run([command, *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert torch_gsample.__version__ in run('--version')
    findings = {f['part']: f for f in json.loads(run('doctor', '--json'))}
    assert findings['extension']['state'] == 'ok'
    counts = json.loads(run('sample', 'gcc', '--node-type=file', '--json'))
    assert len(counts['seeds']) == 8
    Path('script.py').write_text(
        'import torch_geometric.loader\n'
        'print(torch_geometric.loader.NeighborLoader.__module__)\n'
    )
    assert run('run', 'script.py').startswith('torch_gsample.')


def main() -> None:
    check_files()
    check_operators()
    check_compiler()
    check_command()
    if os.environ.get('GSAMPLE_CUDA') == '1':
        check_cuda(PACKAGE / '_C.so')
    print(f'torch {torch.__version__}: the wheel is whole')


if __name__ == '__main__':
    main()
