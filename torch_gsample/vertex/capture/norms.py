"""Layer norm of values of edges, by the kernels' operators."""

from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import Node

aten = torch.ops.aten


def layer_norm(call: Any, over: list[int]) -> Node:
    """Records a layer norm by simpler operators.

    Args:
        call (Call): The norm.
        over (List[int]): The dimensions of its statistics.
    """
    x, _, weight, bias, eps = call.args
    mean = call.call(aten.mean.dim, x, over, True)
    out = call.call(aten.sub.Tensor, x, mean)
    square = call.call(aten.mul.Tensor, out, out)
    scale = call.call(aten.mean.dim, square, over, True)
    scale = call.call(aten.add.Tensor, scale, eps)
    scale = call.call(aten.rsqrt.default, scale)
    out = call.call(aten.mul.Tensor, out, scale)
    if weight is not None:
        out = call.call(aten.mul.Tensor, out, weight)
    if bias is not None:
        out = call.call(aten.add.Tensor, out, bias)
    return out
