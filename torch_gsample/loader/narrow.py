"""Narrow features that become float32 in batches.

Attributes of a graph come in; those to widen, with their scales, go out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.ops import gather_rows

#: Suffix of the attribute with the scales of int8 rows.
_SCALE = '_scale'


class Narrow(NamedTuple):
    """An attribute ``[num_nodes, *]`` of a narrow dtype."""

    key: str
    value: Tensor
    #: float32 ``[num_nodes]``, of int8 attributes only.
    scale: Tensor | None

    def gather(self, index: Tensor) -> Tensor:
        """Returns selected rows in float32."""
        return gather_rows(self.value, index, self.scale, widen=True)

    def take_scale(self, store: Any) -> None:
        """Removes the scales, which are not features themselves."""
        if self.scale is not None:
            del store[self.key + _SCALE]


def narrow_tensors(data: Any, store: Any) -> Iterator[Narrow]:
    """Yields the node attributes that become float32."""
    for key, value in store.items():
        if (
            type(value) is not Tensor
            or not store.is_node_attr(key)
            or data.__cat_dim__(key, value, store) != 0
        ):
            continue
        scale = store.get(key + _SCALE)
        if value.dtype in (torch.bfloat16, torch.float16):
            yield Narrow(key, value, None)
        elif value.dtype == torch.int8 and isinstance(scale, Tensor):
            yield Narrow(key, value, scale)


def check_narrow(name: str, data: Any) -> None:
    """Checks the graph of a loader that widens features.

    Raises:
        ValueError: If its features are in stores, not contiguous (then each
            batch would copy them whole), need gradients, or lack scales.
    """
    if not isinstance(data, (Data, HeteroData)):
        raise ValueError(
            f"{name}: 'widen_features' needs 'data' as Data or HeteroData "
            f'(got {type(data).__name__})'
        )
    for store in data.node_stores:
        for key, value, scale in narrow_tensors(data, store):
            if not value.is_contiguous() or value.requires_grad:
                raise ValueError(
                    f"{name}: 'widen_features' needs contiguous features "
                    f"without gradients (got '{key}', strides "
                    f'{value.stride()}, requires_grad={value.requires_grad})'
                )
            if scale is not None and (
                scale.dtype != torch.float32
                or scale.shape != value.shape[:1]
                or scale.device != value.device
                or scale.requires_grad
            ):
                raise ValueError(
                    f"{name}: '{key}{_SCALE}' must be float32 of shape "
                    f'{list(value.shape[:1])} on {value.device}, without '
                    f'gradients (got {scale.dtype} of shape '
                    f'{list(scale.shape)} on {scale.device})'
                )
