"""Features of edges, which PyG's loaders do not read from a store."""

from collections.abc import Iterable
from typing import Any

from torch_geometric.data import Data, FeatureStore, HeteroData, TensorAttr

#: The group of edges in a graph without types, as in PyG's distributed stores.
EDGES = (None, None)


def add_edge_features(
    store: FeatureStore,
    keys: Iterable[tuple[Any, str]],
    batch: Data | HeteroData,
) -> Any:
    """Adds the features of edges to a batch that has their ids.

    Args:
        store (FeatureStore): Has the features.
        keys (Iterable[Tuple]): Group and name of its attributes; those of
            nodes are passed over.
        batch (Data or HeteroData): A batch with ``e_id``.

    Raises:
        ValueError: If it has no ``e_id``.
    """
    for group, name in keys:
        if not isinstance(group, tuple):
            continue
        if group == EDGES:
            edges = batch
        elif isinstance(batch, HeteroData) and group in batch.edge_types:
            edges = batch[group]
        else:
            continue
        if 'e_id' not in edges:
            raise ValueError(
                f'{type(store).__name__}: features {name!r} of edges need '
                "'e_id' in the batch (it has none)"
            )
        edges[name] = store.get_tensor(TensorAttr(group, name, edges.e_id))
    return batch
