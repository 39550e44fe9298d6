"""The state of a loader: seed, epoch, batch, and the loader's arguments.

A loader and a saved state come in; the name of the first difference goes out.
"""

import hashlib
from collections.abc import Iterator, Mapping
from enum import Enum
from numbers import Number
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import (
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
)

#: The format of states.
VERSION = 1
#: Number of elements of a long tensor that its fingerprint reads.
_LOOKED_AT = 4096
#: Attributes of samplers and loaders that do not affect samples.
_EXECUTION = frozenset(
    'batch_size collate_fn compile dataset drop_last edge_label_index epoch '
    'filter_per_worker in_order input_id input_nodes input_time is_seeded log '
    'num_threads num_workers options persistent_workers pin_memory '
    'pin_memory_device prefetch prefetch_factor progress save_dir seed '
    'timeout trigger'.split()
)
#: Arguments that are private attributes of samplers.
_PRIVATE = frozenset({'_disjoint', '_fanouts'})


def check_state(name: str, state: Any, own: Mapping[str, Any]) -> None:
    """Checks that a state is one of this loader.

    Args:
        name (str): The loader, for errors.
        state (Any): The state.
        own (Mapping[str, Any]): The current state of the loader.

    Raises:
        TypeError: If it is not a state.
        ValueError: If it has another version or is from another loader.
    """
    if not isinstance(state, Mapping) or not own.keys() <= state.keys():
        raise TypeError(
            f"{name}: 'state_dict' must be a result of 'state_dict()', with "
            f'{sorted(own)} (got {_shown(state)})'
        )
    if state['version'] != VERSION:
        raise ValueError(
            f"{name}: 'state_dict' must be of version {VERSION} (got "
            f'{state["version"]!r})'
        )
    for key in ('epoch', 'batch'):
        value = state[key]
        if type(value) is not int or value < 0:
            raise ValueError(
                f"{name}: '{key}' of 'state_dict' must be a "
                'non-negative integer '
                f'(got {value!r})'
            )
    for key in own:
        if key in ('version', 'epoch', 'batch'):
            continue
        for path, want, got in _differences(key, own[key], state[key]):
            raise ValueError(
                f"{name}: 'state_dict' must be of a loader with the same "
                f'{path}, here {want!r} (got {got!r})'
            )


def _differences(
    path: str, want: Any, got: Any
) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(want, Mapping) and isinstance(got, Mapping):
        for key in sorted({*want, *got}):
            yield from _differences(
                f'{path}.{key}', want.get(key), got.get(key)
            )
    elif want != got:
        yield path, want, got


def _shown(state: Any) -> str:
    if isinstance(state, Mapping):
        return f'a dictionary of {sorted(map(str, state))}'
    return type(state).__name__


def arguments_of(*owners: Any) -> dict[str, Any]:
    """Returns the arguments of loaders and samplers that affect samples.

    Only plain values, and fingerprints of tensors.
    """
    out: dict[str, Any] = {}
    for owner in owners:
        for key, value in vars(owner).items():
            if key in _EXECUTION or (key[0] == '_' and key not in _PRIVATE):
                continue
            plain = _plain(value)
            if plain is not _NOT_PLAIN:
                out[key.lstrip('_')] = plain
    return out


_NOT_PLAIN = object()
_RECORDS = NegativeSampling, NodeSamplerInput, EdgeSamplerInput


def _plain(value: Any) -> Any:
    """Returns a value in plain form, or ``_NOT_PLAIN``."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _RECORDS):
        value = vars(value)
    if isinstance(value, Tensor):
        return fingerprint(value)
    if value is None or isinstance(value, (str, Number)):
        return value
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return _NOT_PLAIN if _NOT_PLAIN in items else items
    if isinstance(value, Mapping):
        pairs = {str(key): _plain(item) for key, item in value.items()}
        return _NOT_PLAIN if _NOT_PLAIN in pairs.values() else pairs
    return _NOT_PLAIN


def fingerprint(*tensors: Tensor | None) -> str:
    """Returns a hash of tensors: of sizes, and of evenly spaced elements.

    It takes microseconds for any size.
    """
    digest = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        if tensor is None:
            digest.update(b'-')
            continue
        flat = tensor.detach().reshape(-1)
        step = max(-(-flat.numel() // _LOOKED_AT), 1)
        some = flat[::step].cpu().contiguous()
        if not some.is_floating_point():
            some = some.to(torch.int64)  # the same for all integer dtypes
        digest.update(f'{list(tensor.shape)}'.encode())
        digest.update(some.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def graph_of(data: Any, sampler: Any) -> dict[str, Any]:
    """Returns a graph's identity: sizes of types, and hashes of edges.

    Args:
        data (Any): The graph of a loader.
        sampler (Any): Its sampler, which may know the sizes.
    """
    out: dict[str, Any] = {}
    graph = getattr(sampler, 'graph', None)
    counts = getattr(graph, 'counts', None)
    if isinstance(counts, Mapping):
        out['nodes'] = {str(t): int(n) for t, n in counts.items()}
    elif isinstance(data, (Data, HeteroData)):
        out['nodes'] = {str(s._key): s.num_nodes for s in data.node_stores}
    if isinstance(data, (Data, HeteroData)):
        edges = {str(s._key): s.get('edge_index') for s in data.edge_stores}
        out['edges'] = {
            key: fingerprint(value)
            for key, value in edges.items()
            if isinstance(value, Tensor) and value.layout == torch.strided
        }
    elif hasattr(sampler, 'chunked'):
        edges = sampler.chunked.num_edges
        out['edges'] = {str(t): int(n) for t, n in edges.items()}
    return out
