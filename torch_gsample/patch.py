"""Our samplers in the place of PyG's, for scripts that stay as they are."""

import importlib
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType, TracebackType
from typing import Any

import torch_geometric
from torch_geometric import loader as pyg_loader
from torch_geometric import nn as pyg_nn
from torch_geometric import sampler as pyg_sampler
from torch_geometric.nn.models import tgn
from torch_geometric.utils import _trim_to_layer

from torch_gsample import loader, nn, samplers
from torch_gsample.loader import adjacency
from torch_gsample.samplers.neighbor import bidirectional

#: Versions of PyG: the first that is supported, the first that was not tried.
_VERSIONS = (2, 7), (2, 9)

#: A package that reads the arrays of PyG's sampler, for pyg-lib.
_LEFT_ALONE = 'torch_geometric.distributed'

#: PyG's modules, and what is replaced by ours in them.
_REPLACED: tuple[tuple[ModuleType, Any, tuple[str, ...]], ...] = (
    (
        pyg_loader,
        loader,
        (
            'NodeLoader',
            'LinkLoader',
            'NeighborLoader',
            'LinkNeighborLoader',
            'HGTLoader',
            'ClusterData',
            'ShaDowKHopSampler',
            'GraphSAINTSampler',
            'GraphSAINTNodeSampler',
            'GraphSAINTEdgeSampler',
            'GraphSAINTRandomWalkSampler',
        ),
    ),
    (pyg_sampler, samplers, ('NeighborSampler', 'HGTSampler')),
    (pyg_sampler, bidirectional, ('BidirectionalNeighborSampler',)),
    (pyg_nn, nn, ('Node2Vec',)),
    (tgn, loader, ('LastNeighborLoader',)),
    (_trim_to_layer, adjacency, ('trim_adj',)),
)
#: Our class or function for each of PyG's.
_OURS: dict[Any, Any] = {
    getattr(theirs, name): getattr(ours, name)
    for theirs, ours, names in _REPLACED
    for name in names
}


#: Patched names and their patches; the last patch to end restores a name.
_changed: list[tuple[ModuleType, str, Any, Any]] = []
_active: list['Patch'] = []
_lock = threading.RLock()


class Patch:
    """The changes of :func:`patch_pyg`; a context manager that undoes them.

    Args:
        names (List[str]): The attributes that were changed.
        fusion (Any, optional): What fuses models meanwhile.
    """

    def __init__(self, names: list[str], fusion: Any = None):
        #: The attributes that were changed, by their full names.
        self.names = sorted(names)
        self._fusion = fusion

    def undo(self) -> None:
        """Gives PyG its own classes back; does nothing the second time.

        While another patch is active, ours stay.
        """
        with _lock:
            if self in _active:
                _active.remove(self)
                self.names = []
                if self._fusion is not None:
                    self._fusion.undo()
                if not _active:
                    _restore()

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
        return f'{type(self).__name__}({len(self.names)} attributes)'


def patch_pyg(layers: bool = False) -> Patch:
    """Replaces PyG's samplers and loaders by those of this package.

    The patch holds from the call on, or within a ``with`` statement. It
    replaces ``NodeLoader``, ``LinkLoader``, ``NeighborLoader``,
    ``LinkNeighborLoader``, ``HGTLoader``, ``LastNeighborLoader``,
    ``ShaDowKHopSampler``, the ``GraphSAINT`` samplers, ``ClusterData``,
    ``Node2Vec``, and the samplers and loaders behind PyG's Lightning data
    modules and GraphRAG store, in PyG and in all modules that imported them
    before. Scripts then run without pyg-lib and torch-sparse. Modules that
    import a name while the patch holds keep the replacement. Existing objects,
    classes already derived from PyG's, and ``torch_geometric.distributed``,
    which needs pyg-lib itself, do not change. The command
    ``gsample run script.py`` patches a whole script.

    The patch holds for all threads of the process. Patches may be nested, or
    overlap in several threads; the end of the last one restores PyG's classes.

    Args:
        layers (bool, optional): Whether to fuse models as well, as by
            :func:`~torch_gsample.fuse`: each outermost module with layers that
            is called with the edges of a batch. The first batch runs unfused.
            If the script reads only the seeds' rows of the outputs, layers
            compute blocks from the third batch on. With other edges, such as
            those of a whole graph, the layers of a module are fused at its
            second call. A report is printed.

    Returns:
        Patch: A context manager; ``undo()`` or its exit ends the patch.

    Raises:
        ImportError: If the installed version of PyG is too old.
        TypeError: If ``layers`` is not a bool.

    Example:
        >>> import torch_gsample
        >>> import torch_geometric
        >>> with torch_gsample.patch_pyg():
        ...     torch_geometric.loader.NeighborLoader.__module__
        'torch_gsample.loader.neighbor_loader'
        >>> torch_geometric.loader.NeighborLoader.__module__
        'torch_geometric.loader.neighbor_loader'
    """
    if not isinstance(layers, bool):
        raise TypeError(
            f"patch_pyg: 'layers' must be True or False (got {layers!r})"
        )
    _check_version()
    # Imported later, it would find our samplers without their inner arrays.
    importlib.import_module(_LEFT_ALONE)
    with _lock:
        places = list(_places(_OURS))
        for module, name, _, ours in places:
            setattr(module, name, ours)
        _changed.extend(places)
        names = [f'{m.__name__}.{name}' for m, name, *_ in places]
        patch = Patch(names, _fuse_models() if layers else None)
        _active.append(patch)
    return patch


def _fuse_models() -> Any:
    # The generators of kernels are imported at first use: it takes a while.
    from torch_gsample.fusion import AutomaticFusion

    return AutomaticFusion()


def _restore() -> None:
    for module, name, theirs, ours in _changed:
        if vars(module).get(name) is ours:
            setattr(module, name, theirs)
    _changed.clear()
    # Modules of PyG that were imported meanwhile.
    back = {ours: theirs for theirs, ours in _OURS.items()}
    for module, name, _, theirs in _places(back, 'torch_geometric'):
        setattr(module, name, theirs)


def _places(
    classes: dict[Any, Any], package: str = ''
) -> Iterator[tuple[ModuleType, str, Any, Any]]:
    """The attributes of modules that are one of some classes or functions.

    Args:
        classes (Dict[Any, Any]): What there is instead of each class or
            function.
        package (str, optional): Only modules of it.
    """
    # By identity: what a module holds may have any idea of equality.
    instead = {id(key): (key, value) for key, value in classes.items()}
    for key, module in list(sys.modules.items()):
        top = key.partition('.')[0]
        if (
            top == 'torch_gsample'
            or key.startswith(_LEFT_ALONE)
            or (package and top != package)
            or not isinstance(module, ModuleType)
        ):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in instead:
                yield module, name, *instead[id(value)]


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
            f'patch_pyg: torch-geometric {text} was not tested with '
            'this torch_gsample (versions before '
            f'{untried[0]}.{untried[1]} was)',
            stacklevel=3,
        )
