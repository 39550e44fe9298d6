"""Our samplers in the place of PyG's, for scripts that stay as they are."""

import re
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType, TracebackType
from typing import Any

import torch_geometric
from torch_geometric import loader as pyg_loader
from torch_geometric import nn as pyg_nn
from torch_geometric import sampler as pyg_sampler

from torch_gsample import loader, nn, samplers

#: Versions of PyG: the first that is supported, the first that was not tried.
_VERSIONS = (2, 7), (2, 9)

#: PyG's modules, and the classes of them that are replaced by ours.
_REPLACED: tuple[tuple[ModuleType, Any, tuple[str, ...]], ...] = (
    (
        pyg_loader,
        loader,
        (
            'NeighborLoader',
            'LinkNeighborLoader',
            'HGTLoader',
            'ShaDowKHopSampler',
            'GraphSAINTSampler',
            'GraphSAINTNodeSampler',
            'GraphSAINTEdgeSampler',
            'GraphSAINTRandomWalkSampler',
        ),
    ),
    (pyg_sampler, samplers, ('NeighborSampler', 'HGTSampler')),
    (pyg_nn, nn, ('Node2Vec',)),
)


class Patch:
    """What :func:`patch_pyg` changed; a context manager that changes it back.

    Args:
        changes (List[Tuple[module, str, type]]): The attributes that were
            changed, and what they were.
    """

    def __init__(self, changes: list[tuple[ModuleType, str, type]]):
        self._changes = changes

    @property
    def names(self) -> list[str]:
        """The attributes that were changed, by their full names."""
        return sorted(
            f'{module.__name__}.{name}' for module, name, _ in self._changes
        )

    def undo(self) -> None:
        """Gives PyG its own classes back; does nothing the second time."""
        while self._changes:
            module, name, theirs = self._changes.pop()
            setattr(module, name, theirs)

    def __enter__(self) -> 'Patch':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f'{type(self).__name__}({len(self._changes)} attributes)'


def patch_pyg() -> Patch:
    """Puts our samplers and loaders in the place of PyG's.

    From here on, or within a ``with`` statement, ``NeighborLoader``,
    ``LinkNeighborLoader``, ``HGTLoader``, ``ShaDowKHopSampler``, the
    ``GraphSAINT`` samplers, ``Node2Vec``, and the samplers behind PyG's
    Lightning data modules are ours wherever PyG's modules hold them; so
    scripts run without pyg-lib and torch-sparse. A name that was imported
    from PyG before is what it was: patch first, import then. The command
    ``gsample run script.py`` does so for a whole script.

    Returns:
        Patch: Undoes it by ``undo()``, or at the end of a ``with`` statement.

    Raises:
        ImportError: If the installed version of PyG is too old.

    Example:
        >>> import torch_gsample
        >>> import torch_geometric
        >>> with torch_gsample.patch_pyg():
        ...     torch_geometric.loader.NeighborLoader.__module__
        'torch_gsample.loader.neighbor_loader'
        >>> torch_geometric.loader.NeighborLoader.__module__
        'torch_geometric.loader.neighbor_loader'
    """
    _check_version()
    changes = []
    for module, name, theirs, ours in _places():
        setattr(module, name, ours)
        changes.append((module, name, theirs))
    return Patch(changes)


def _places() -> Iterator[tuple[ModuleType, str, type, type]]:
    """Every attribute of a module of PyG that is a class we have."""
    ours = {
        getattr(theirs, name): getattr(own, name)
        for theirs, own, names in _REPLACED
        for name in names
    }
    for key, module in list(sys.modules.items()):
        if not f'{key}.'.startswith('torch_geometric.'):
            continue
        for name, value in list(vars(module).items()):
            replacement = ours.get(value) if isinstance(value, type) else None
            if replacement not in (None, value):
                yield module, name, value, replacement


def _check_version() -> None:
    first, untried = _VERSIONS
    text = torch_geometric.__version__
    match = re.match(r'(\d+)\.(\d+)', text)
    version = tuple(map(int, match.groups())) if match else untried
    if version < first:
        raise ImportError(
            f'patch_pyg: torch-geometric {first[0]}.{first[1]} or later is '
            f'needed (found {text}); pip install --upgrade torch-geometric'
        )
    if version >= untried:
        warnings.warn(
            f'patch_pyg: torch-geometric {text} was not tried with this '
            f'torch_gsample (before {untried[0]}.{untried[1]} was)',
            stacklevel=3,
        )
