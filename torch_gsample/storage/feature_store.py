"""PyG's store of features, with rows on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, FeatureStore, HeteroData, TensorAttr

from torch_gsample.storage.feature_file import FeatureFile

#: The group of edges in a graph without types, as PyG's distributed stores
#: have it.
EDGES = (None, None)
#: Group and name of an attribute.
Key = tuple[Any, str]


class DiskFeatureStore(FeatureStore):
    """Features of nodes and edges on disk: the first part of a loader's data.

    PyG's loaders and ours take ``(store, graph_store)``, where the second one
    is a :class:`ChunkedGraph`, or any ``GraphStore``. What is small, as labels
    are, may be a tensor in memory.

    PyG's loaders do not ask stores for features of edges. Ours add them; PyG's
    do with ``transform=store.add_edge_features``.

    Args:
        features (Dict, optional): Each value a :class:`FeatureFile`, the path
            of one, or a tensor. Keys are names (``'x'``) in a graph without
            types, and else ``(type, name)``, where the type is that of nodes
            or of edges; edges without a type are ``EDGES``, ``(None, None)``.

    Raises:
        OSError: If a file cannot be read.
        TypeError: If a key or value is of another type.
        ValueError: If a file breaks a rule of the format.

    Example:
        >>> import tempfile
        >>> from torch_gsample.loader import NeighborLoader
        >>> from torch_gsample.storage import ChunkedGraph, RandomReadSampler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     edges = torch.tensor([[1, 2, 0], [0, 1, 2]])
        ...     graph = ChunkedGraph.write(f'{folder}/graph', edges)
        ...     x = FeatureFile.write(f'{folder}/x.gsf', torch.eye(3))
        ...     store = DiskFeatureStore({'x': x, 'y': torch.arange(3)})
        ...     sampler = RandomReadSampler(graph, [1], seed=0)
        ...     loader = NeighborLoader(
        ...         (store, graph),
        ...         input_nodes=torch.arange(3),
        ...         sampler=sampler,
        ...         batch_size=2,
        ...     )
        ...     next(iter(loader)).x.argmax(1)
        tensor([0, 1, 2])
    """

    def __init__(self, features: Mapping[Any, Any] | None = None):
        super().__init__()
        self._values: dict[Key, FeatureFile | Tensor] = {}
        for key, value in (features or {}).items():
            group, name = (None, key) if isinstance(key, str) else key
            self.put_tensor(value, group, name, None)

    @property
    def files(self) -> dict[Key, FeatureFile]:
        """The features that are on disk, by group and name."""
        return {
            key: value
            for key, value in self._values.items()
            if isinstance(value, FeatureFile)
        }

    def add_edge_features(self, batch: Data | HeteroData) -> Any:
        """Adds the features of edges to a batch that has their ids.

        Args:
            batch (Data or HeteroData): A batch with ``e_id``.

        Raises:
            ValueError: If it has no ``e_id``.
        """
        for group, name in self._values:
            if not isinstance(group, tuple):
                continue
            if group == EDGES:
                store = batch
            elif isinstance(batch, HeteroData) and group in batch.edge_types:
                store = batch[group]
            else:
                continue
            if 'e_id' not in store:
                raise ValueError(
                    f"DiskFeatureStore: features {name!r} of edges need 'e_id'"
                    ' in the batch (it has none)'
                )
            attr = TensorAttr(group, name, store.e_id)
            store[name] = self._get_tensor(attr)
        return batch

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Returns the attributes, but for those of edges without a type.

        A loader of PyG would look these up by nodes.
        """
        return [
            TensorAttr(group, name)
            for group, name in self._values
            if group != EDGES
        ]

    def _find(self, attr: TensorAttr) -> FeatureFile | Tensor:
        key = attr.group_name, attr.attr_name
        if key not in self._values:
            raise KeyError(
                f'DiskFeatureStore: there must be an attribute {key} (there '
                f'are {sorted(map(str, self._values))})'
            )
        return self._values[key]

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        value = self._find(attr)
        return value[:] if attr.index is None else value[attr.index]

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return tuple(self._find(attr).shape)

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        group, name = attr.group_name, attr.attr_name
        edges = isinstance(group, tuple)
        if not (group is None or isinstance(group, str) or edges):
            raise TypeError(
                "DiskFeatureStore: 'group_name' must be a type of nodes or "
                f'edges, or None (got {group!r})'
            )
        if not isinstance(name, str):
            raise TypeError(
                f"DiskFeatureStore: 'attr_name' must be a string (got "
                f'{name!r})'
            )
        if attr.index is not None:
            raise NotImplementedError(
                'DiskFeatureStore: rows cannot be replaced; write a new file '
                "by 'FeatureFile.write' (and put it with index=None)"
            )
        if isinstance(tensor, (str, Path)):
            tensor = FeatureFile(tensor)
        elif isinstance(tensor, np.ndarray):
            tensor = torch.from_numpy(tensor)
        if not isinstance(tensor, (FeatureFile, Tensor)):
            raise TypeError(
                f'DiskFeatureStore: {name!r} must be a FeatureFile, the path '
                f'of one, or a tensor (got {type(tensor).__name__})'
            )
        self._values[group, name] = tensor
        return True

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        key = attr.group_name, attr.attr_name
        return self._values.pop(key, None) is not None

    def __repr__(self) -> str:
        shapes = {
            (name if group is None else (group, name)): list(value.shape)
            for (group, name), value in self._values.items()
        }
        return f'{type(self).__name__}({shapes})'
