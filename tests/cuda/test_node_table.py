"""The table of nodes of the kernels: an entry is half a sector of L2."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name('node_table_test.cpp')


def test_probes_take_sector_after_sector(builder):
    program = builder.program(SOURCE, 'address', ['-O0'])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.stdout + done.stderr == 'ok\n'
