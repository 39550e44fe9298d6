"""Opens the graph that an argument names, whatever its format."""

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

#: What saved data consists of, beside tensors.
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
    """Opens a graph for a while.

    Args:
        name (str): ``debian`` or ``gcc``, a directory of chunks, a ``.pt``
            file of PyG's data, or a file of edges.
        columns (Tuple[str, str], optional): Those of the ends of edges, in a
            file of edges.
        weight (str, optional): The column of weights there.
        time (str, optional): The column of times there.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is none of the above.
    """
    path = Path(name)
    if columns is not None and path.suffix not in _EDGES:
        raise ValueError(f'{name}: --columns is for files of edges')
    if name in ('debian', 'gcc') and not path.exists():
        yield _bundled(name)
    elif not path.exists():
        raise FileNotFoundError(
            f'{name}: there is no such file, nor a bundled graph of that '
            f"name ('debian', 'gcc')"
        )
    elif path.is_dir():
        if weight is not None or time is not None:
            raise ValueError(
                f'{name}: a directory of chunks says itself what are its '
                f'weights and times: give neither --weight nor --time'
            )
        yield ChunkedGraph(path)
    elif path.suffix == '.pt':
        yield _load(path)
    elif path.suffix in _EDGES:
        # Larger than memory or not: sorted into chunks, and sampled there.
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
            f'{name}: must be a directory of chunks, or end with .pt or '
            f'{", ".join(_EDGES)} (got {path.suffix!r})'
        )


def _bundled(name: str) -> HeteroData:
    from torch_gsample.datasets import DebianPackages, GccChangelog

    return (DebianPackages() if name == 'debian' else GccChangelog())[0]


def _load(path: Path) -> Data | HeteroData:
    """Reads tensors and PyG's classes, and runs no code of the file."""
    try:
        with torch.serialization.safe_globals(_CLASSES):
            data = torch.load(path, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        found = re.search(r'GLOBAL (\S+)', str(error))
        reason = f': it holds {found[1]}' if found else ''
        raise ValueError(
            f"{path}: cannot be read as what 'torch.save' wrote of PyG's "
            f'data{reason}'
        ) from error
    if not isinstance(data, (Data, HeteroData)):
        raise ValueError(
            f'{path}: must hold Data or HeteroData of PyG (got '
            f'{type(data).__name__})'
        )
    return data
