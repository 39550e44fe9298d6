"""Features stored in fewer bits, which become float32 in batches.

Attributes of a graph come in; what is collected as float32, and how, goes out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.ops import gather_rows

#: Ends the name of the attribute that has the scales of int8 rows.
_SCALE = '_scale'


class Narrow(NamedTuple):
    """An attribute ``[num_nodes, *]`` in fewer bits."""

    key: str
    value: Tensor
    #: float32 ``[num_nodes]``, of int8.
    scale: Tensor | None

    def gather(self, index: Tensor) -> Tensor:
        """Returns some of its rows in float32."""
        return gather_rows(self.value, index, self.scale, widen=True)

    def take_scale(self, store: Any) -> None:
        """Removes the scales, which are no features of their own."""
        if self.scale is not None:
            del store[self.key + _SCALE]


def narrow_tensors(data: Any, store: Any) -> Iterator[Narrow]:
    """Finds the attributes of nodes that become float32."""
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
        ValueError: If its features are in stores, or would be copied whole
            for each batch, or need gradients, or lack scales.
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
                    f"{list(value.shape[:1])} where '{key}' is, without "
                    f'gradients (got {scale.dtype} of shape '
                    f'{list(scale.shape)} on {scale.device})'
                )
