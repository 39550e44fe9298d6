"""Saves the normalisation of a GraphSAINT sampler to a file.

A normalisation goes out with a fingerprint of its graph and arguments, and is
loaded only for the same graph and arguments.
"""

import os
from pathlib import Path

import torch
from torch import Tensor

from torch_gsample import rng
from torch_gsample.algorithms.graphsaint import SaintNorm
from torch_gsample.owned_folder import owned_folder
from torch_gsample.sparse_sample import SparseSample


def fingerprint(matrix: SparseSample, edge_id: Tensor, *numbers: int) -> str:
    """Returns a hash of a graph and the arguments of a sampler."""
    csc = matrix.csc
    ids = rng.hash_ids(*numbers, csc.indptr, csc.indices, edge_id)
    return f'{ids:016x}'


def save_norm(path: Path, norm: SaintNorm, mark: str) -> None:
    """Writes a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with owned_folder(path.parent, '.') as folder:
        part = folder / path.name
        part.touch(0o600)
        with open(part, 'wb') as file:
            torch.save({'fingerprint': mark, **norm._asdict()}, file)
        os.replace(part, path)


def load_norm(
    name: str, path: Path, mark: str, num_nodes: int, num_edges: int
) -> SaintNorm:
    """Reads a file, which may be of any origin.

    Raises:
        ValueError: If it is not the normalisation of this graph.
    """
    try:
        saved = torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:
        raise _wrong(name, path, f'a file of torch.save ({error})') from error
    keys = {'fingerprint', *SaintNorm._fields}
    if not isinstance(saved, dict) or set(saved) != keys:
        raise _wrong(name, path, f'a dictionary of {sorted(keys)}')
    if saved['fingerprint'] != mark:
        raise _wrong(name, path, 'of this graph and these arguments')
    for key, size in (('node', num_nodes), ('edge', num_edges)):
        value = saved[key]
        if (
            not isinstance(value, Tensor)
            or value.dtype != torch.float32
            or value.layout != torch.strided
            or value.shape != (size,)
        ):
            raise _wrong(name, path, f"with '{key}' as float32 [{size}]")
        if not bool((torch.isfinite(value) & (value > 0)).all()):
            raise _wrong(name, path, f"with '{key}' positive and finite")
    return SaintNorm(saved['node'], saved['edge'])


def _wrong(name: str, path: Path, rule: str) -> ValueError:
    return ValueError(
        f"{name}: the saved normalisation '{path}' must be {rule}; delete it "
        'to have it computed again'
    )
