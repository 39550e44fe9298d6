"""The operators of captured programs that read a graph on disk.

A handle, an int64 tensor ``[1]``, names a graph. Each operator is a pure
function of its arguments, because the graph never changes.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops._walk_arguments import empty_walks
from torch_gsample.storage.columns import concat_ranges
from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.matrices import scan, trees, walks
from torch_gsample.storage.matrices.edges import edges_of
from torch_gsample.storage.matrices.shared_vector import SharedVector
from torch_gsample.storage.matrices.steps import Step, Steps

#: The stored values of an edge.
ARRAYS = ('neighbor', 'edge_id', 'weight')


@torch.library.custom_op('gsample::stored_columns', mutates_args=())
def stored_columns(pointers: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the positions of the edges of columns.

    Args:
        pointers (torch.Tensor): int64 ``[num_cols + 1]``.
        cols (torch.Tensor): int64 ``[n]``.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``[n + 1]``, the pointers of
        the columns, and int64 ``[num_edges]``, the positions of their edges.

    Raises:
        IndexError: If a column does not exist.
    """
    pointers, cols = pointers.contiguous(), cols.contiguous()
    size, count = pointers.shape[0] - 1, cols.shape[0]
    indptr = torch.empty(count + 1, dtype=torch.int64)
    start, length = torch.empty(2, count, dtype=torch.int64)
    parts = start, length, indptr
    wrong = functions().gsample_slice_pointers(
        ctypes.c_void_p(pointers.data_ptr()),
        ctypes.c_int64(size),
        ctypes.c_void_p(cols.data_ptr()),
        ctypes.c_int64(count),
        *(ctypes.c_void_p(part.data_ptr()) for part in parts),
    )
    if wrong >= 0:
        raise IndexError(
            f"SparseSample: 'cols' must be in [0, {size}) (got "
            f'{int(cols[wrong])})'
        )
    return indptr, concat_ranges(start, length)


@stored_columns.register_fake
def _(pointers, cols):  # type: ignore[no-untyped-def]
    return (
        pointers.new_empty(cols.shape[0] + 1),
        pointers.new_empty(dynamic_size()),
    )


@torch.library.custom_op('gsample::read_edges', mutates_args=())
def read_edges(
    handle: Tensor, position: Tensor, array: int, dtype: torch.dtype
) -> Tensor:
    """Reads the stored values of edges.

    Args:
        handle (torch.Tensor): int64 ``[1]``.
        position (torch.Tensor): int64 ``[n]``.
        array (int): The index of one of :data:`ARRAYS`.
        dtype (torch.dtype): The dtype of the result.
    """
    return edges_of(handle).read(ARRAYS[array], position)


@read_edges.register_fake
def _(handle, position, array, dtype):  # type: ignore[no-untyped-def]
    return position.new_empty(position.shape[0], dtype=dtype)


@torch.library.custom_op('gsample::stored_reduce', mutates_args=())
def stored_reduce(
    handle: Tensor,
    name: str,
    dim: int,
    is_weighted: bool,
    steps: str,
    operands: Sequence[Tensor],
    size: int,
    dtype: torch.dtype,
) -> Tensor:
    """Reduces all values of a graph on disk, once for its content.

    Args:
        handle (torch.Tensor): int64 ``[1]``.
        name (str): See :func:`scan.reduce`.
        dim (int): See :func:`scan.reduce`.
        is_weighted (bool): See :class:`Steps`.
        steps (str): The text from :func:`spell`.
        operands (List[torch.Tensor]): The vectors from :func:`spell`.
        size (int): The length of the result.
        dtype (torch.dtype): Its dtype.
    """
    edges = edges_of(handle)
    todo = Steps(is_weighted, _parse(steps, operands))
    key = (
        f'{name}-{dim}' if name == 'degree' else f'{name}-{dim}-{todo.name()}'
    )
    found = edges.known.get(key)
    if found is None:
        found = SharedVector(
            edges.derived.vector(
                key, lambda: scan.reduce(edges, name, dim, todo)
            )
        )
        edges.remember(key, found)
    return found.copy()


@stored_reduce.register_fake
def _(handle, name, dim, is_weighted, steps, operands, size, dtype):  # type: ignore[no-untyped-def]
    return handle.new_empty(size, dtype=dtype)


def spell(steps: Steps) -> tuple[str, list[Tensor]]:
    """Returns steps as a text, and their vectors."""
    words, operands = [], []
    for step in steps.steps:
        operand = step.operand
        if isinstance(operand, Tensor):
            operands.append(operand)
            operand = '#'
        words.append(f'{step.name} {step.dim} {operand!r}')
    return ';'.join(words), operands


def _parse(steps: str, operands: Sequence[Tensor]) -> tuple[Step, ...]:
    vectors, out = iter(operands), []
    for word in filter(None, steps.split(';')):
        name, dim, operand = word.split(' ')
        value: Any = None
        if operand == "'#'":
            value = next(vectors)
        elif operand != 'None':
            value = float(operand) if _is_float(operand) else int(operand)
        out.append(Step(name, value, None if dim == 'None' else int(dim)))
    return tuple(out)


def _is_float(word: str) -> bool:
    return any(letter in word for letter in '.einf')


@torch.library.custom_op('gsample::stored_walk', mutates_args=())
def stored_walk(
    handle: Tensor,
    seeds: Tensor,
    length: int,
    key: Tensor,
    call_id: int,
    restart: float,
    weighted: bool,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """See :func:`walks.random_walk`."""
    edges = edges_of(handle)
    return walks.random_walk(
        edges, seeds, length, key, call_id, restart, weighted, ptr
    )


@stored_walk.register_fake
def _(handle, seeds, length, key, call_id, restart, weighted, ptr=None):  # type: ignore[no-untyped-def]
    return empty_walks(seeds, length)


@torch.library.custom_op('gsample::stored_node2vec', mutates_args=())
def stored_node2vec(
    handle: Tensor,
    seeds: Tensor,
    length: int,
    p: float,
    q: float,
    key: Tensor,
    call_id: int,
    weighted: bool,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """See :func:`walks.node2vec_walk`."""
    edges = edges_of(handle)
    return walks.node2vec_walk(
        edges, seeds, length, p, q, key, call_id, weighted, ptr
    )


@stored_node2vec.register_fake
def _(handle, seeds, length, p, q, key, call_id, weighted, ptr=None):  # type: ignore[no-untyped-def]
    return empty_walks(seeds, length)


@torch.library.custom_op('gsample::stored_metapath', mutates_args=())
def stored_metapath(
    handles: Sequence[Tensor],
    path: Sequence[int],
    seeds: Tensor,
    key: Tensor,
    call_id: int,
) -> tuple[Tensor, Tensor]:
    """See :func:`walks.metapath_walk`."""
    relations = [edges_of(handle) for handle in handles]
    return walks.metapath_walk(relations, path, seeds, key, call_id)


@stored_metapath.register_fake
def _(handles, path, seeds, key, call_id):  # type: ignore[no-untyped-def]
    return empty_walks(seeds, len(path))


@torch.library.custom_op('gsample::stored_frontier', mutates_args=())
def stored_frontier(
    handle: Tensor, seeds: Tensor, length: int, key: Tensor, call_id: int
) -> tuple[Tensor, Tensor]:
    """See :func:`walks.frontier_walk`."""
    return walks.frontier_walk(edges_of(handle), seeds, length, key, call_id)


@stored_frontier.register_fake
def _(handle, seeds, length, key, call_id):  # type: ignore[no-untyped-def]
    return seeds.new_empty(length), seeds.new_empty(length)


@torch.library.custom_op('gsample::stored_trees', mutates_args=())
def stored_trees(
    handle: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Tensor,
    call_id: int,
    replace: bool,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """See :func:`trees.sample_trees`."""
    return trees.sample_trees(
        edges_of(handle), seeds, fanouts, key, call_id, replace, ptr
    )


@stored_trees.register_fake
def _(handle, seeds, fanouts, key, call_id, replace, ptr=None):  # type: ignore[no-untyped-def]
    size = dynamic_size()
    return seeds.new_empty(size), seeds.new_empty(size)
