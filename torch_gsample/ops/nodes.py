"""Selection and relabelling of nodes, for one batch or several.

The results of batches are concatenated. ``ptr``, int64 ``[B + 1]``, has the
start of each batch.
"""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size, pointers_like
from torch_gsample.ops.formats import cum_weight_size


def sample_nodes(
    num_nodes: int,
    k: int,
    *,
    key: Tensor,
    call_id: int = 0,
    cum_weight: Tensor | None = None,
    replace: bool = False,
    ptr: Tensor | None = None,
    device: torch.device | None = None,
) -> Any:
    """Samples nodes with or without replacement.

    Args:
        num_nodes (int): Number of candidates of all batches.
        k (int): Number of nodes per batch. Without replacement, at most ``k``
            candidates are all selected, in order (or drawn one by one if a
            weight is 0).
        key (torch.Tensor): int64 ``[1, 3]``, or one row per batch.
        call_id (int, optional): Id of the draw in a program.
        cum_weight (torch.Tensor, optional): A result of
            :func:`cumulate_weights` with one column per batch; default:
            uniform.
        replace (bool, optional): Whether to sample with replacement.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the nodes
            of each batch.
        device (torch.device, optional): The device of the result, which draws
            uniform samples; default: that of ``ptr`` or ``cum_weight``.

    Returns:
        torch.Tensor: int64, ``[k]`` or less; with ``ptr``, a tuple of the
        nodes of all batches and the start of each batch.

    Raises:
        ValueError: If ``k`` is negative, a length does not fit, or the device
            has no kernels.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> sample_nodes(3, 5, key=make_key(0))
        tensor([0, 1, 2])
        >>> keys = torch.cat([make_key(0), make_key(1)])
        >>> sample_nodes(3, 2, key=keys, ptr=torch.tensor([0, 1, 3]))
        (tensor([0, 1, 2]), tensor([0, 1, 3]))
    """
    op = 'sample_nodes'
    if k < 0:
        raise ValueError(f"{op}: 'k' must not be negative (got {k})")
    batches = 1
    first = cum_weight if ptr is None else ptr
    name = 'cum_weight' if ptr is None else 'ptr'
    device_of = None
    if first is None and device is not None and device.type == 'cuda':
        first = torch.empty(0, dtype=torch.int64, device=device)
        device_of, name = first, 'device'
    place = _check.graph_device(op, first, name)
    if ptr is not None:
        ptr = _check.segment_ptr(op, 'ptr', ptr, num_nodes, place)
        batches = ptr.numel() - 1
    if cum_weight is not None:
        size = cum_weight_size(num_nodes, batches)
        cum_weight = _check.int64_vector(
            op, 'cum_weight', cum_weight, size, place
        )
    node, out_ptr = _check.call(
        torch.ops.gsample.sample_nodes.default,
        num_nodes,
        k,
        _check.random_keys(op, key, batches),
        call_id,
        cum_weight,
        replace,
        ptr,
        device_of,
    )
    if device not in (None, node.device):
        node, out_ptr = node.to(device), out_ptr.to(device)
    return node if ptr is None else (node, out_ptr)


def unique_nodes(
    id: Tensor,
    num_nodes: int = 2**62,
    sorted: bool = False,
    *,
    ptr: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Relabels nodes by first occurrence or in ascending order.

    Args:
        id (torch.Tensor): int32 or int64 ``[n]``.
        num_nodes (int, optional): Upper bound of the ids; a small bound saves
            time.
        sorted (bool, optional): Whether local ids ascend with ids.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the ids
            of each batch; nodes of different batches are distinct.

    Returns:
        Tuple[torch.Tensor, ...]: int64 ``node``, the distinct ids, and
        ``local`` ``[n]``, of the dtype of ``id``, the position of each id in
        ``node``. With ``ptr``, also the start of each batch in ``node``.

    Raises:
        IndexError: If an id is outside ``[0, num_nodes)``.
        ValueError: If ``ptr`` is invalid.

    Example:
        >>> unique_nodes(torch.tensor([5, 3, 5]), 6)
        (tensor([5, 3]), tensor([0, 1, 0]))
        >>> unique_nodes(torch.tensor([5, 3, 5]), 6, sorted=True)
        (tensor([3, 5]), tensor([1, 0, 1]))
        >>> ptr = torch.tensor([0, 3, 4])
        >>> unique_nodes(torch.tensor([5, 3, 5, 5]), 6, ptr=ptr)
        (tensor([5, 3, 5]), tensor([0, 1, 0, 2]), tensor([0, 2, 3]))
    """
    op = 'unique_nodes'
    device = _check.graph_device(op, id, 'id')
    id = _check.integer_vector(op, 'id', id, device)
    id = _check.in_range(op, 'id', id, num_nodes)
    if ptr is not None:
        ptr = _check.segment_ptr(op, 'ptr', ptr, id.numel(), device)
    out = _check.call(
        torch.ops.gsample.unique_nodes.default, id, num_nodes, sorted, ptr
    )
    return out[:2] if ptr is None else out


@torch.library.register_fake('gsample::sample_nodes')
def _(
    num_nodes,
    k,
    key,
    call_id=0,
    cum_weight=None,
    replace=False,
    ptr=None,
    device_of=None,
):
    batches = key.shape[0] if ptr is None else ptr.shape[0] - 1
    given = ptr, cum_weight, device_of, key
    like = next(x for x in given if x is not None)
    return like.new_empty(dynamic_size()), like.new_empty(batches + 1)


@torch.library.register_fake('gsample::unique_nodes')
def _(id, num_nodes, sorted=False, ptr=None):
    node = id.new_empty(dynamic_size(), dtype=torch.int64)
    return node, torch.empty_like(id), pointers_like(id, ptr)
