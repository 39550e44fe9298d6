"""Runs PyG's example scripts under ``gsample run``, on toy data.

``python -m tests.clients.scripts EXAMPLES [NAME ...]``, where ``EXAMPLES`` is
the folder of a checkout, prints a row of docs/clients.md for each script.
Scripts are run as they are but for what `CUTS` replaces: two epochs each, and
no GPU.
"""

import importlib
import multiprocessing
import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.clients import toys
from torch_gsample.cli import main as gsample

for _name in ('ogb.nodeproppred', 'pytorch_lightning', 'sklearn.metrics'):
    with suppress(ImportError):
        importlib.import_module(_name)

#: Names whose scripts are run.
REPLACED = re.compile(
    r'\b(NodeLoader|LinkLoader|NeighborLoader|LinkNeighborLoader|HGTLoader|'
    r'ShaDowKHopSampler|GraphSAINT\w*Sampler|ClusterData|Node2Vec|'
    r'NeighborSampler|LightningNodeData|LightningLinkData|'
    r'LastNeighborLoader)\b'
)
CUTS = (
    (r'(for epoch in range\()(\w+), [^)]*\)', r'\1\2, \2 + 2)'),
    (r'max_epochs=\d+', 'max_epochs=2'),
    (r"'cuda:0'", "'cpu'"),
    (r"'nccl'", "'gloo'"),
    (r'num_workers=\d+', 'num_workers=1'),
    (r'num_parts=1500', 'num_parts=30'),
)
#: Further arguments to run with.
ARGUMENTS = {
    'graph_saint.py': ([], ['--use_normalization']),
    'hetero/hierarchical_sage.py': ([], ['--use-sparse-tensor']),
    'hetero/to_hetero_mag.py': ([], ['--use_hgt_loader']),
    'ogbn_train.py': (
        ['--dataset', 'ogbn-arxiv', '-e', '2', '-le', '2'],
        ['--dataset', 'ogbn-products', '--model', 'SAGE', '-e', '2'],
    ),
}
_GPUS = 'not run: it starts a process for each GPU'
#: Scripts that need what there is not here.
LEFT_OUT = {
    'distributed/graphlearn_for_pytorch/': 'not run: needs graphlearn-torch',
    'distributed/kuzu/': 'not run: needs Kuzu and papers100M in it',
    'llm/glem.py': 'not run: needs a GPU and a language model',
    'multi_gpu/distributed_sampling_xpu.py': "not run: needs Intel's GPUs",
    'multi_gpu/': _GPUS,
    'quiver/': 'not run: needs Quiver, which takes a GPU',
    'rdl.py': 'not run: needs RelBench data and a language model',
}
_SECONDS = 240


def named(examples: Path) -> list[str]:
    """Returns the scripts that name a class that is replaced."""
    return sorted(
        path.relative_to(examples).as_posix()
        for path in examples.rglob('*.py')
        if REPLACED.search(path.read_text())
    )


def run(examples: Path, name: str, arguments: list[str]) -> str:
    """Returns the last line of a script's error, or nothing.

    It runs in a fork of this process, which has imported most of what
    scripts import.
    """
    text = (examples / name).read_text()
    for pattern, other in CUTS:
        text = re.sub(pattern, other, text)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / Path(name).name).write_text(text)
        process = multiprocessing.get_context('fork').Process(
            target=_run, args=(folder, [Path(name).name, *arguments])
        )
        process.start()
        process.join(_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            return f'more than {_SECONDS} s'
        said = (Path(folder) / 'stderr').read_text().strip()
    if process.exitcode == 0:
        return ''
    return said.rpartition('\n')[2] or f'exit status {process.exitcode}'


def _run(folder: str, arguments: list[str]) -> None:
    os.chdir(folder)
    for number, name in ((1, 'stdout'), (2, 'stderr')):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    toys.install()
    sys.exit(gsample(['run', *arguments]))


def main() -> int:
    os.environ.setdefault('MPLBACKEND', 'agg')
    examples = Path(sys.argv[1])
    for name in sys.argv[2:] or named(examples):
        start = next(filter(name.startswith, LEFT_OUT), None)
        if start is not None:
            print(f'| `{name}` | {LEFT_OUT[start]} |', flush=True)
            continue
        for arguments in ARGUMENTS.get(name, ([],)):
            error = run(examples, name, arguments)
            call = ' '.join([name, *arguments])
            print(f'| `{call}` | {error or "runs"} |', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
