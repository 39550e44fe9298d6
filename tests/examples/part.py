"""Runs an example on a part of its graph: `part.py EXAMPLE [ARGUMENT ...]`.

At toy size, most of the time goes to tests of accuracy on all nodes.
"""

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch

from torch_gsample.datasets import DebianPackages


@contextmanager
def part_of_debian() -> Iterator[None]:
    """Makes the graph of packages one of the first 8,000."""
    build = DebianPackages._build

    def build_part(self, arrays):
        first = torch.arange(8000)
        return build(self, arrays).subgraph(
            first if self.homogeneous else {'package': first}
        )

    with mock.patch.object(DebianPackages, '_build', build_part):
        yield


if __name__ == '__main__':
    del sys.argv[0]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))  # as of a script
    with part_of_debian():
        runpy.run_path(sys.argv[0], run_name='__main__')
