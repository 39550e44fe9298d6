"""Neighbour lists of a graph on the host that a GPU has in its memory, too.

Columns and how often each is met come in. Operators that sample from the
columns find the lists by the address of the columns.
"""

import ctypes
import functools
import weakref
from typing import Any

import torch
from torch import Tensor

from torch_gsample import _library, ops, placement

#: Edges of a list that a visit is taken to read: it is worth its memory by
#: reads a byte, and long lists are read in part.
_READS = 10
_SIGNATURE: list[Any] = [
    ctypes.c_void_p,
    *[ctypes.c_int64] * 2,
    *[ctypes.c_void_p] * 3,
]


class ListCache:
    """The neighbour lists of a graph that are read most.

    Samples do not change. The cache lasts as long as this object.

    Args:
        indptr (torch.Tensor): ``[num_cols + 1]``, on the CPU.
        indices (torch.Tensor): ``[num_edges]``, as operators are given them.
        met (torch.Tensor): int64 ``[num_cols]``, in proportion to which
            columns are met.
        num_bytes (int): Memory for it.
        device (torch.device): Where samples are made.
    """

    def __init__(
        self,
        indptr: Tensor,
        indices: Tensor,
        met: Tensor,
        num_bytes: int,
        device: torch.device,
    ):
        cols = choose_lists(indptr, indices.element_size(), met, num_bytes)
        #: How many lists and edges there are.
        self.num_lists = cols.numel()
        self._reads = torch.zeros(2, dtype=torch.int64, device=device)
        if self.num_lists == 0:
            return
        ptr, lists, _ = ops.slice_cols(indptr, indices, cols)
        start = torch.full((indptr.numel() - 1,), -1)
        start[cols] = ptr[:-1].to(torch.int64)
        self._kept = lists.to(device), start.to(device)
        extension = _extension()
        extension.gsample_cache_lists(
            indices.data_ptr(),
            start.numel(),
            indices.numel(),
            *[tensor.data_ptr() for tensor in (*self._kept, self._reads)],
        )
        forget = extension.gsample_forget_lists
        weakref.finalize(self, forget, indices.data_ptr()).atexit = False

    def reads(self) -> tuple[int, int]:
        """Returns how many edges were read from the cache, and in all.

        Waits for the GPU.
        """
        cached, both = self._reads.tolist()
        return cached, both


def keep_lists(indptr: Tensor, indices: Tensor, num_bytes: int) -> None:
    """Makes a cache on the current GPU that lasts as long as ``indices``.

    Args:
        indptr (torch.Tensor): ``[num_nodes + 1]``, on the CPU.
        indices (torch.Tensor): ``[num_edges]``, pinned: nodes are met as often
            as they are in it.
        num_bytes (int): Memory for it.
    """
    met = torch.bincount(indices, minlength=indptr.numel() - 1)
    device = placement.read_device('pin', 'cuda')
    cache = ListCache(indptr, indices, met, num_bytes, device)
    # The finalizer holds it.
    weakref.finalize(indices, lambda held: None, cache).atexit = False


def choose_lists(
    indptr: Tensor, item_bytes: int, met: Tensor, num_bytes: int
) -> Tensor:
    """Returns the columns that are worth most for their memory, by their id.

    Args:
        indptr (torch.Tensor): ``[num_cols + 1]``.
        item_bytes (int): Of an edge.
        met (torch.Tensor): int64 ``[num_cols]``, in proportion to which
            columns are met.
        num_bytes (int): Memory for their lists and where these start.

    Example:
        >>> import torch
        >>> indptr = torch.tensor([0, 3, 4, 6])
        >>> met = torch.tensor([5, 1, 0])
        >>> choose_lists(indptr, 8, met, 60)
        tensor([0, 1])
    """
    size = indptr.diff().to(torch.int64)
    left = (num_bytes - 8 * size.numel()) // item_bytes
    worth = met * size.clamp(max=_READS) / size.clamp(min=1)
    order = torch.argsort(worth, descending=True, stable=True)
    order = order[(worth > 0)[order]]
    taken = order[size[order].cumsum(0) <= left]
    return taken.sort().values


@functools.cache
def _extension() -> Any:
    """The functions of the extension that know caches."""
    library = ctypes.CDLL(str(_library.PATH))
    library.gsample_cache_lists.argtypes = _SIGNATURE
    library.gsample_cache_lists.restype = None
    library.gsample_forget_lists.argtypes = [ctypes.c_void_p]
    library.gsample_forget_lists.restype = None
    return library
