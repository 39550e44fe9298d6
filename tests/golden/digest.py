"""The hash of a nest of tensors."""

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from torch_gsample import SparseSample

#: The fields of a sampler's output.
OUTPUT = (
    *('node', 'row', 'col', 'edge', 'batch', 'num_sampled_nodes'),
    *('num_sampled_edges', 'orig_row', 'orig_col', 'metadata'),
)


def digest(nest: Any) -> str:
    """Hashes the name, dtype, shape and bytes of each tensor, by name."""
    out = hashlib.sha256()
    for name, tensor in sorted(flat(nest), key=lambda item: item[0]):
        tensor = tensor.detach().cpu().contiguous()
        head = f'{name} {tensor.dtype} {list(tensor.shape)}\n'
        out.update(head.encode())
        out.update(tensor.view(-1).view(torch.uint8).numpy().tobytes())
    return out.hexdigest()


def flat(nest: Any, name: str = '') -> Iterator[tuple[str, Tensor]]:
    """The tensors of a nest; numbers, too. What is none has no name."""
    nest = plain(nest)
    if isinstance(nest, dict):
        for key, value in nest.items():
            yield from flat(value, f'{name}/{key}')
    elif isinstance(nest, (list, tuple)):
        yield f'{name}/length', torch.tensor(len(nest))
        for i, value in enumerate(nest):
            yield from flat(value, f'{name}/{i:06}')
    elif isinstance(nest, (bool, int, float)):
        yield name, torch.tensor(nest)
    elif isinstance(nest, Tensor):
        yield name, nest
    elif nest is not None:
        raise TypeError(f'{name}: no hash of {type(nest)}')


def plain(nest: Any) -> Any:
    """Samples, matrices and mini-batches as dictionaries."""
    if isinstance(nest, (SamplerOutput, HeteroSamplerOutput)):
        return {name: getattr(nest, name) for name in OUTPUT}
    if isinstance(nest, SparseSample):
        return edges(nest) | {'value': nest.values()}
    if isinstance(nest, HeteroData):
        stores = [*nest.node_items(), *nest.edge_items()]
        return {str(key): dict(store) for key, store in stores}
    if isinstance(nest, Data):
        return plain(nest.to_dict())
    if isinstance(nest, dict):  # blocks are made of the rest
        return {key: x for key, x in nest.items() if key != 'blocks'}
    if hasattr(nest, '_asdict'):
        return nest._asdict()
    return nest


def edges(matrix: SparseSample) -> dict[str, Any]:
    """The edges of a matrix without their values."""
    row, col = matrix.edges()
    return {
        'shape': list(matrix.shape),
        'row': row,
        'col': col,
        'edge': matrix.edge_id,
    }


def structure(nest: Any) -> Any:
    """A nest without values of edges, which depend on the machine."""
    if isinstance(nest, SparseSample):
        return edges(nest)
    if isinstance(nest, dict):
        return {key: structure(value) for key, value in nest.items()}
    if hasattr(nest, '_asdict'):
        return structure(nest._asdict())
    if isinstance(nest, (list, tuple)):
        return [structure(value) for value in nest]
    if isinstance(nest, Tensor) and nest.is_floating_point():
        return None
    return nest
