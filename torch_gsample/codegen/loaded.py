"""The loaded kernels of this process, by content.

The table is weak: a library is closed with the last user of its kernel. Equal
kernels share a library.
"""

import hashlib
import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.codegen.build import BuildError, build, warn_once

_run = torch.ops.gsample.run_kernel.default
_NO_GRAPH = (None,) * 4


class Loaded:
    """A loaded kernel, callable as an edge map.

    Args:
        number (int): Of :func:`torch_gsample.ops.kernels.load_kernel`.
    """

    #: Passes may merge, move and drop its calls.
    is_pure = True
    __module__ = 'torch_gsample.codegen'
    __name__ = 'run_kernel'

    def __init__(self, number: int):
        self.number = number
        unload = weakref.finalize(self, ops.kernels.unload_kernel, number)
        unload.atexit = False

    def __call__(
        self, operands: Sequence[Tensor], num_rows: int = 0
    ) -> Tensor:
        """Returns the result of an edge map.

        Args:
            operands (Sequence[torch.Tensor]): The operands.
            num_rows (int, optional): Rows of the result, if it reduces rows.
        """
        if num_rows == 0:  # faster with fewer arguments
            return _run(self.number, operands)[0]
        return _run(self.number, operands, *_NO_GRAPH, num_rows)[0]

    def over_graph(
        self,
        operands: Sequence[Tensor],
        graph: Sequence[Tensor | None],
        num_rows: int,
        num_edges: int,
    ) -> list[Tensor]:
        """Returns the results of a kernel of a vertex program.

        Args:
            operands (Sequence[torch.Tensor]): The operands.
            graph (Sequence[torch.Tensor]): As :func:`.ops.kernels.run_kernel`
                takes it.
            num_rows (int): Rows of operands of neighbours.
            num_edges (int): Rows of operands of edges.
        """
        return _run(self.number, operands, *graph, num_rows, num_edges)


_loaded: weakref.WeakValueDictionary[bytes, Loaded] = (
    weakref.WeakValueDictionary()
)


def load(
    source: str, layout: Sequence[int], flags: tuple[str, ...] = ()
) -> Loaded | None:
    """Compiles and loads a kernel; None if that fails.

    Args:
        source (str): Its C++ source.
        layout (Sequence[int]): See
            :func:`torch_gsample.ops.kernels.load_kernel`.
        flags (Tuple[str, ...], optional): Of the compiler.
    """
    key = hashlib.sha256(repr((source, layout, flags)).encode()).digest()
    kernel = _loaded.get(key)
    if kernel is not None:
        return kernel
    try:
        with build(source, flags) as file:
            number = ops.kernels.load_kernel(file.fileno(), layout)
    except BuildError as error:
        warn_once(error)
        return None
    except RuntimeError as error:
        warn_once(BuildError(f'a kernel does not load: {error}'))
        return None
    return _loaded.setdefault(key, Loaded(number))
