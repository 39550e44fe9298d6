"""The example of distributed training, in two processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent


def test_two_processes_train_on_one_graph(tmp_path):
    command = [sys.executable, '-m', 'torch.distributed.run', '--standalone']
    command += ['--nproc-per-node=2', 'examples/train_ddp.py', '--epochs=1']
    command += ['--max-batches=3', '--batch-size=64', '--hidden=8']
    done = subprocess.run(
        command,
        cwd=TOP,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {'OMP_NUM_THREADS': '1', 'TMPDIR': str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r'(?:loss|accuracy) \d\.\d+', done.stdout)) == 3
    # The features alone have 243 MiB, in one process or in two.
    parts = re.search(r'in MiB: (\d+) \+ (\d+)', done.stdout).groups()
    first, second = map(int, parts)
    assert 243 <= first + second < 300
    assert abs(first - second) < 10
    assert not list(tmp_path.glob('*.pt'))
