"""Values that are computed once for their input tensors."""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_gsample import placement
from torch_gsample.locks import new_lock
from torch_gsample.snapshot import Snapshot, add_keeper
from torch_gsample.torch_private import tree_map_only

#: Number of graphs with cached values in each program.
_GRAPHS = 8


class InvariantCache:
    """Calls a function of tensors once, until one is changed or freed.

    Values from before an in-place change are not reused;
    :class:`~torch_gsample.snapshot.Snapshot` documents which changes are
    detected. The tensors are not kept alive.

    Args:
        function (Callable): A pure function of tensors.
    """

    def __init__(self, function: Callable[..., tuple[Any, ...]]):
        self._function = function
        self._lock = new_lock()
        self._kept: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        add_keeper(self)

    def __call__(self, *tensors: Tensor) -> tuple[Any, ...]:
        """Returns the values for tensors."""
        if any(tensor.is_inference() for tensor in tensors):
            return self._function(*tensors)  # they have no version counter
        key = tuple(map(id, tensors))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                alive = all(
                    reference() is tensor
                    for reference, tensor in zip(
                        found[1], tensors, strict=True
                    )
                )
                if alive and found[0].holds(tensors):
                    self._kept.move_to_end(key)
                    return found[2]
        snapshot = Snapshot(tensors)
        # No inference tensors, as later calls may need gradients.
        with torch.inference_mode(False), torch.no_grad():
            values = self._function(*tensors)
        if any(map(placement.is_pinned, tensors)):
            # A GPU reads pinned inputs, so it must be able to read these.
            values = tree_map_only(Tensor, placement.pin, values)

        def forget(_: Any) -> None:
            self._kept.pop(key, None)

        references = [weakref.ref(tensor, forget) for tensor in tensors]
        with self._lock:
            self._kept[key] = snapshot, references, values
            while len(self._kept) > _GRAPHS:
                self._kept.popitem(last=False)
        return values

    def forget(self) -> None:
        """Drops all values."""
        with self._lock:
            self._kept.clear()
