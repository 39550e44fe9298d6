"""Runs PyG's example scripts under ``gsample run``, on toy data.

``python -m tests.clients.scripts EXAMPLES [NAME ...]``, where ``EXAMPLES`` is
the folder of a checkout, prints a row of docs/clients.md for each script.
Scripts are run as they are but for what `CUTS` replaces: two epochs each, and
no GPU. Those of several GPUs run in two processes on the CPU, with Gloo.
"""

import importlib
import multiprocessing
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.clients import toy_tables, toys
from torch_gsample.cli import main as gsample

TOP = Path(__file__).resolve().parent.parent.parent

for _name in (
    'ogb.lsc',
    'ogb.nodeproppred',
    'pytorch_lightning',
    'sklearn.metrics',
):
    with suppress(ImportError):
        importlib.import_module(_name)

#: Names of replaced classes: scripts that use one are run.
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
    (r"""['"]nccl['"]""", "'gloo'"),
    (r'num_workers=\d+', 'num_workers=1'),
    (r'num_parts=1500', 'num_parts=30'),
)
#: Replacements in scripts of several GPUs: each process has the CPU.
_ON_CPU = (
    (r'torch\.cuda\.device_count\(\)', '2'),
    (r'torch\.cuda\.(synchronize\(\)|set_device\(\w+\))', 'None'),
    (r'torch\.device\(local_id\)', "torch.device('cpu')"),
    (r'\.to\((local_)?rank\b', ".to('cpu'"),
    (r'(\n +)local_rank,\n', r"\1'cpu',\n"),
    (r'device=rank', "device='cpu'"),
    (r'device_ids=\[\w+\]', 'device_ids=None'),
    (r'ReduceOp\.AVG', 'ReduceOp.SUM'),  # Gloo has no mean
    (r'batch_size=1024', 'batch_size=64'),
    (r'warmup_steps = \d+', 'warmup_steps = 1'),
)
#: Scripts that something else starts, once for each rank.
_RANKED = (
    'multi_gpu/distributed_sampling_multinode.py',
    'multi_gpu/papers100m_gcn_multinode.py',
)
#: Further arguments to run with.
ARGUMENTS = {
    'graph_saint.py': ([], ['--use_normalization']),
    'hetero/hierarchical_sage.py': ([], ['--use-sparse-tensor']),
    'hetero/to_hetero_mag.py': ([], ['--use_hgt_loader']),
    'multi_gpu/mag240m_graphsage.py': (
        ['--num_epochs', '2', '--batch_size', '64', '--hidden_channels', '32'],
    ),
    'multi_gpu/papers100m_gcn.py': (
        ['--n_devices', '2', '--epochs', '2', '--batch_size', '4'],
    ),
    'multi_gpu/taobao.py': (
        ['--epochs', '3', '--batch_size', '64', '--num_workers', '1'],
    ),
    'ogbn_train.py': (
        [
            *('--dataset', 'ogbn-arxiv', '-e', '2', '--num_workers', '1'),
            *('--fan_out', '5', '--hidden_channels', '32'),
        ],
        ['--dataset', 'ogbn-products', '--model', 'SAGE', '-e', '2'],
    ),
    'rdl.py': (['--task', 'driver-dnf', '--epochs', '2', '--channels', '32'],),
}
#: Scripts that need what there is not here.
LEFT_OUT = {
    'distributed/graphlearn_for_pytorch/': 'not run: needs graphlearn-torch',
    'distributed/kuzu/': 'not run: needs Kuzu and papers100M in it',
    'llm/glem.py': 'not run: needs a GPU and a language model',
    'multi_gpu/distributed_sampling_xpu.py': "not run: needs Intel's GPUs",
    'quiver/': 'not run: needs Quiver, which takes a GPU',
}
_SECONDS = 480


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
    cuts = CUTS + _ON_CPU * name.startswith('multi_gpu/')
    for pattern, other in cuts:
        text = re.sub(pattern, other, text)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / Path(name).name).write_text(text)
        processes = [
            multiprocessing.get_context('fork').Process(
                target=_run, args=(folder, [Path(name).name, *arguments], rank)
            )
            for rank in range(2 if name in _RANKED else 1)
        ]
        for process in processes:
            process.start()
        end = time.monotonic() + _SECONDS
        for process in processes:
            process.join(max(end - time.monotonic(), 0))
        late = [process for process in processes if process.is_alive()]
        for process in late:
            process.kill()
            process.join()
        said = [file.read_text() for file in Path(folder).glob('stderr-*')]
    if late:
        return f'more than {_SECONDS} s'
    statuses = [process.exitcode for process in processes]
    if not any(statuses):
        return ''
    lines = [text.strip().rpartition('\n')[2] for text in said]
    return next(filter(None, lines), f'exit status {statuses}')


def _run(folder: str, arguments: list[str], rank: int) -> None:
    os.chdir(folder)
    for number, name in ((1, 'stdout'), (2, 'stderr')):
        os.dup2(os.open(f'{name}-{rank}', os.O_WRONLY | os.O_CREAT), number)
    # What torchrun sets, and where spawned processes find the toys.
    os.environ |= {
        'PYTHONPATH': f'{TOP}:{os.environ.get("PYTHONPATH", "")}',
        'MASTER_ADDR': 'localhost', 'MASTER_PORT': '12355',
        'WORLD_SIZE': '2', 'RANK': f'{rank}', 'LOCAL_RANK': f'{rank}',
    }  # fmt: skip
    toys.install()
    toy_tables.install()
    sys.exit(gsample(['run', *arguments]))


def main() -> int:
    os.environ.setdefault('MPLBACKEND', 'agg')
    examples = Path(sys.argv[1])
    # A checkout of RelBench next to PyG's, as `python -m tests.clients` makes.
    sys.path.append(str(examples.absolute().parent.parent / 'relbench'))
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
