"""Forest-fire sampling."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size


def forest_fire(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    p: float,
    *,
    key: Tensor,
    call_id: int = 0,
) -> Tensor:
    r"""Returns the nodes that burn in a fire that starts at the seeds.

    A burning node sets :math:`x` of its neighbours that do not burn yet on
    fire, or all if there are fewer, with :math:`P(x \geq j) = p^j`. See
    :func:`torch_gsample.algorithms.forest_fire`.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_nodes + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``, the neighbours
            of each node: rows of the graph, its CSR, for fire along edges.
        seeds (torch.Tensor): ``[num_seeds]``.
        p (float): Burning probability, in [0, 1).
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program.

    Returns:
        torch.Tensor: int64 ``[num_burnt]``, ascending, seeds included.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If ``p`` is not in [0, 1).
        RuntimeError: If a malformed part of the graph burns.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 1, 2, 3, 3])  # 0 -> 1 -> 2 -> 3
        >>> indices = torch.tensor([1, 2, 3])
        >>> forest_fire(
        ...     indptr, indices, torch.tensor([1]), 0.999999, key=make_key(0)
        ... )
        tensor([1, 2, 3])
    """
    op = 'forest_fire'
    if not 0 <= p < 1:
        raise ValueError(f"{op}: 'p' must be in [0, 1) (got {p})")
    device = _check.sampling_device(op, indptr, seeds)
    indptr, indices = _check.graph(op, indptr, indices, device)
    return _check.call(
        torch.ops.gsample.forest_fire.default,
        indptr,
        indices,
        _check.node_ids(op, 'seeds', seeds, indptr.numel() - 1, device),
        float(p),
        _check.random_key(op, key),
        call_id,
    )


@torch.library.register_fake('gsample::forest_fire')
def _(indptr, indices, seeds, p, key, call_id=0):
    return seeds.new_empty(dynamic_size())
