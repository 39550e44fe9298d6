"""Attributes of a batch that are gathered when they are first read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

#: The place of a value that is not gathered yet.
LATE = object()

#: Returns a value of a dictionary that is never late, faster than its `get`.
stored = dict.get


@dataclass
class LateKeys:
    """Which attributes of edges are late in a batch.

    Models rarely read the ids of edges, and the times by which a sampler
    selects them. Nobody changes these in a graph that is sampled, so they may
    be gathered at any time.

    Args:
        time_attr (str, optional): The attribute with the times of edges.
        ahead (bool): Whether the batch is made in advance: what was read of
            earlier batches is not late then.
        reads (Set[Tuple]): Edge type and key of what was read; added to.
    """

    time_attr: str | None
    ahead: bool
    reads: set[Any]

    def has(self, edge_type: Any, key: str) -> bool:
        """Whether an attribute is late."""
        late = key == 'e_id' or key == self.time_attr
        return late and not (self.ahead and (edge_type, key) in self.reads)


class LateEdges:
    """The late attributes of a batch's edges of one type.

    Args:
        edge_type (EdgeType, optional): The type.
        edge (torch.Tensor): int64, ids of the edges, or positions in ``perm``.
        perm (torch.Tensor, optional): Ids by position.
        gather (Dict[str, Callable]): Returns an attribute for some ids; the
            key ``e_id`` may be missing.
        reads (Set[Tuple]): See :class:`LateKeys`.
    """

    def __init__(
        self,
        edge_type: Any,
        edge: Tensor,
        perm: Tensor | None,
        gather: Mapping[str, Callable[[Tensor], Any]],
        reads: set[Any],
    ):
        self._type, self._edge, self._perm = edge_type, edge, perm
        self._gather, self._reads = gather, reads
        self._ids = edge if perm is None else None

    def __call__(self, key: str) -> Any:
        """Returns an attribute."""
        self._reads.add((self._type, key))
        with torch.inference_mode(False):  # training may use it later
            ids = self._ids
            if ids is None:
                assert self._perm is not None
                self._ids = ids = self._perm.index_select(0, self._edge)
            return self._gather[key](ids) if key in self._gather else ids


class LateValues(dict[str, Any]):
    """The attributes of a store, some of which are late.

    It behaves as the dictionary of all values; its copies are plain ones.

    Args:
        values (Dict[str, Any]): The attributes; late ones are :obj:`LATE`.
        make (Callable): Returns the value of a late attribute.

    Example:
        >>> values = LateValues({'x': 1, 'e_id': LATE}, lambda key: [2, 3])
        >>> list(values), values['e_id']
        (['x', 'e_id'], [2, 3])
    """

    __slots__ = ('_make',)
    __hash__ = None

    def __init__(self, values: dict[str, Any], make: Callable[[str], Any]):
        super().__init__(values)
        self._make: Callable[[str], Any] | None = make

    def _complete(self) -> dict[str, Any]:
        """Returns a plain dictionary of all values."""
        values = {key: self[key] for key in self}
        self._make = None  # and what it holds
        return values

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if value is LATE:
            make = self._make
            # Another thread has made them all meanwhile.
            value = super().__getitem__(key) if make is None else make(key)
            super().__setitem__(key, value)
        return value

    def __iter__(self) -> Any:
        # As iteration is ours, `dict(self)`, `{**self}`, `self | other` and
        # `self.copy()` read values by key.
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a value, or the default."""
        value = super().get(key, default)
        return self[key] if value is LATE else value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Returns a value, or sets the default."""
        value = super().setdefault(key, default)
        return self[key] if value is LATE else value

    def pop(self, key: str, *default: Any) -> Any:
        """Removes a value and returns it."""
        self.get(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        """Removes the last attribute and returns it."""
        self._complete()
        return super().popitem()

    def values(self) -> Any:
        """Returns all values."""
        self._complete()
        return super().values()

    def items(self) -> Any:
        """Returns all attributes."""
        self._complete()
        return super().items()

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Of copies, too: without the graph, whose values are gathered.
        return dict, (self._complete(),)

    def __eq__(self, other: object) -> bool:
        return self._complete() == other

    def __ne__(self, other: object) -> bool:
        return self._complete() != other

    def __repr__(self) -> str:
        return repr(self._complete())
