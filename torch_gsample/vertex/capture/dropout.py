"""Dropout in captured calls; the kernel draws that of edges."""

from typing import Any

import torch

from torch_gsample.codegen.draws import EDGE_ROW
from torch_gsample.vertex.capture.nodes import (
    EDGE,
    MIXED,
    OF_EDGES,
    VERTEX,
    Node,
)
from torch_gsample.vertex.frontend.dropout import mask
from torch_gsample.vertex.frontend.precision import kernel_dtype
from torch_gsample.vertex.frontend.values import Value

aten = torch.ops.aten


def drawn(recorder: Any, like: Node, share: float, where: str) -> Node:
    """Returns a random mask; torch draws it, or the kernel for edges.

    Args:
        recorder (Recorder): The recorder.
        like (Node): A tensor of the same shape with one value.
        share (float): The probability of a one.
        where (str): The line.

    Raises:
        NotCaptured: If the mask is of sources, which messages do not have.
    """
    if like.kind == VERTEX and like.rows != recorder.destinations:
        raise like.fail('random numbers of sources')
    is_drawn = like.kind in OF_EDGES and 0 < share < 1
    return Node(
        *('bernoulli', MIXED if is_drawn else like.kind, like.shape),
        *(like.dtype, like.row, (like, share)),
        func=aten.bernoulli.p,
        where=where,
    )


def native_dropout(call: Any) -> list[Node]:
    """Records the dropout of a GPU, which is one operator.

    Args:
        call (Call): The call.
    """
    x, p, training = call.args
    unused = Node('unused', x.kind, x.shape, torch.bool, x.row)
    if training is False or p == 0:
        return [x, unused]
    rows = EDGE if x.kind in OF_EDGES else x.kind
    ones = Node('fill', rows, x.shape, x.dtype, x.row, (1.0,))
    factor = drawn(call.recorder, ones, 1 - p, call.where)
    if p < 1:
        factor = call.call(aten.div.Tensor, factor, 1 - p)
    return [call.call(aten.mul.Tensor, x, factor), unused]


def mask_of(low: Any, node: Node) -> Value:
    """Returns the draws of edges in a program.

    Args:
        low (Lowering): The run of the program.
        node (Node): What :func:`drawn` returned.
    """
    tracer = low.tracer
    dims = tuple(None if n == 1 else tracer.axis(n) for n in node.features)
    dtype = kernel_dtype(node.dtype)
    return mask(tracer, dims, EDGE_ROW, node.args[1], dtype)
