"""Values that are computed once for the tensors that they come from."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from torch_gsample import placement

#: Graphs whose values are kept at a time, in each program.
_GRAPHS = 8


class InvariantCache:
    """Calls a function of tensors once, until one is changed or freed.

    A change in place raises the version of a tensor, and what was computed
    before is not used again; nor is it when a tensor gets other memory. The
    tensors are not kept alive.

    Args:
        function (Callable): A pure function of tensors.
    """

    def __init__(self, function: Callable[..., tuple[Any, ...]]):
        self._function = function
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    def __call__(self, *tensors: Tensor) -> tuple[Any, ...]:
        """Returns the values for tensors."""
        if any(tensor.is_inference() for tensor in tensors):
            return self._function(*tensors)  # these have no version
        key = tuple(map(id, tensors))
        versions = tuple((t._version, t.data_ptr()) for t in tensors)
        with self._lock:
            found = self._kept.get(key)
            if found is not None and found[0] == versions:
                alive = all(
                    reference() is tensor
                    for reference, tensor in zip(
                        found[1], tensors, strict=True
                    )
                )
                if alive:
                    self._kept.move_to_end(key)
                    return found[2]
        # Not as inference tensors: later calls may need gradients.
        with torch.inference_mode(False), torch.no_grad():
            values = self._function(*tensors)
        if any(map(placement.is_pinned, tensors)):
            # A GPU reads the tensors, and so it is to read these.
            values = tree_map_only(Tensor, placement.pin, values)

        def forget(_: Any) -> None:
            self._kept.pop(key, None)

        references = [weakref.ref(tensor, forget) for tensor in tensors]
        with self._lock:
            self._kept[key] = versions, references, values
            while len(self._kept) > _GRAPHS:
                self._kept.popitem(last=False)
        return values
