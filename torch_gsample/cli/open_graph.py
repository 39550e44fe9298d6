"""Opens the graph of an argument, in any format."""

import contextlib
import pickle
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.data.storage import (
    BaseStorage,
    EdgeStorage,
    GlobalStorage,
    NodeStorage,
)

from torch_gsample.owned_folder import owned_folder
from torch_gsample.storage import ChunkedGraph

Graph: TypeAlias = Data | HeteroData | ChunkedGraph

#: The classes in saved data, except tensors.
_CLASSES: list[Any] = [
    BaseStorage,
    Data,
    DataEdgeAttr,
    DataTensorAttr,
    EdgeLayout,
    EdgeStorage,
    GlobalStorage,
    HeteroData,
    NodeStorage,
]
_EDGES = ('.parquet', '.pq', '.csv', '.tsv', '.txt', '.gz', '.npy')


@contextlib.contextmanager
def open_graph(
    name: str,
    columns: tuple[str, str] | None = None,
    weight: str | None = None,
    time: str | None = None,
) -> Iterator[Graph]:
    """Opens a graph as a context manager.

    Args:
        name (str): ``debian`` or ``gcc``, a directory of chunks, a ``.pt``
            file of PyG's data, or a file of edges.
        columns (Tuple[str, str], optional): Columns of sources and
            destinations in an edge file.
        weight (str, optional): The column of weights in an edge file.
        time (str, optional): The column of times in an edge file.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the format is unknown.
    """
    path = Path(name)
    if columns is not None and path.suffix not in _EDGES:
        raise ValueError(f'{name}: --columns requires an edge file')
    if name in ('debian', 'gcc') and not path.exists():
        yield _bundled(name)
    elif not path.exists():
        raise FileNotFoundError(
            f'{name}: no such file, directory or bundled graph '
            f"('debian', 'gcc')"
        )
    elif path.is_dir():
        if weight is not None or time is not None:
            raise ValueError(
                f'{name}: --weight and --time require an edge file; a graph '
                f'on disk stores its own weights and times'
            )
        yield ChunkedGraph(path)
    elif path.suffix == '.pt':
        yield _load(path)
    elif path.suffix in _EDGES:
        # Sorted into chunks on disk, as edges may be larger than memory.
        with owned_folder(tempfile.gettempdir(), 'gsample-') as folder:
            yield ChunkedGraph.write(
                folder / 'graph',
                path,
                columns=columns,
                weight_attr=weight,
                time_attr=time,
            )
    else:
        raise ValueError(
            f'{name}: must be a graph on disk, or end with .pt or '
            f'{", ".join(_EDGES)} (got {path.suffix!r})'
        )


def _bundled(name: str) -> HeteroData:
    from torch_gsample.datasets import DebianPackages, GccChangelog

    return (DebianPackages() if name == 'debian' else GccChangelog())[0]


def _load(path: Path) -> Data | HeteroData:
    """Reads tensors and PyG's classes without running code of the file."""
    try:
        with torch.serialization.safe_globals(_CLASSES):
            data = torch.load(path, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        found = re.search(r'GLOBAL (\S+)', str(error))
        reason = f' (got {found[1]})' if found else ''
        raise ValueError(
            f"{path}: must be PyG's data written by 'torch.save'{reason}"
        ) from error
    if not isinstance(data, (Data, HeteroData)):
        raise ValueError(
            f'{path}: must hold Data or HeteroData of PyG (got '
            f'{type(data).__name__})'
        )
    return data
