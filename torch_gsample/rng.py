"""Seeds, epochs and batches: what becomes the key of a draw.

Every draw of this package is a pure function of a key, (seed, epoch, batch),
and of its place in the sample (hop, relation, node, slot). See
``docs/randomness.md``.
"""

import contextlib
import hashlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling
from torch.utils.data import get_worker_info

#: The batch of a key when all batches of an epoch share their draws.
EPOCH_SCOPE = -1

_INT63 = 2**63 - 1


class BatchNumber(NamedTuple):
    """The epoch and index of a batch in a training run."""

    epoch: int
    batch: int


_current: ContextVar[BatchNumber | None] = ContextVar(
    'torch_gsample_batch', default=None
)


@contextlib.contextmanager
def batch_scope(epoch: int, batch: int) -> Iterator[None]:
    """Sets the epoch and batch index for samplers that run inside it.

    The loaders of :mod:`torch_gsample.loader` use it. Use it in a loop without
    a loader:

    .. code-block:: python

        for batch, seeds in enumerate(all_seeds):
            with batch_scope(epoch, batch):
                out = sampler.sample_from_nodes(NodeSamplerInput(None, seeds))
    """
    token = _current.set(BatchNumber(epoch, batch))
    try:
        yield
    finally:
        _current.reset(token)


def current_batch() -> BatchNumber | None:
    """Returns the batch of the innermost :func:`batch_scope`, if any."""
    return _current.get()


def warn_unnumbered(name: str, hint: str) -> None:
    """Warns that a sampler got no batch index, and of the consequences.

    Args:
        name (str): Name of the sampler.
        hint (str): The remedy.
    """
    info = get_worker_info()
    if info is None or info.id == 0:  # and not each worker
        warnings.warn(
            f'{name}: a batch has no index, so its draws depend on its seeds '
            'alone: without shuffling, all epochs have equal samples. '
            f'{hint}',
            stacklevel=4,
        )


class _Program:
    """A run of a sampling program: its key, and how many draws it made."""

    def __init__(self, key: Tensor, num_calls: int = 0):
        self.key, self.num_calls = key, num_calls

    def draw(self) -> tuple[Tensor, int]:
        self.num_calls += 1
        return self.key, self.num_calls - 1


class _DrawnKeys:
    """A run whose draws take keys that were drawn before it, in order."""

    def __init__(self, keys: list[Tensor]):
        self._keys = iter(keys)

    def draw(self) -> tuple[Tensor, int]:
        return next(self._keys), 0


_program: ContextVar[_Program | _DrawnKeys | None] = ContextVar(
    'torch_gsample_program', default=None
)


@contextlib.contextmanager
def program_scope(key: Tensor) -> Iterator[None]:
    """Makes the draws of a sampling program a function of a key.

    The samplers run programs inside it. Each draw of a run has its own index,
    so that no two draws are equal.

    Args:
        key (torch.Tensor): int64 ``[1, 3]``, see :func:`make_key`; one row per
            batch around a result of :func:`torch_gsample.super_batch`.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(torch.arange(20).view(2, 10) % 4)
        >>> def draw():
        ...     with program_scope(make_key(12)):
        ...         return A.individual_sample(1).edge_id
        >>> torch.equal(draw(), draw())
        True
    """
    with _running(_Program(key)):
        yield


@contextlib.contextmanager
def _running(program: _Program | _DrawnKeys) -> Iterator[None]:
    token = _program.set(program)
    try:
        yield
    finally:
        _program.reset(token)


class BatchKeys:
    """The keys of several batches, run together or one by one.

    Inside a :func:`program_scope`, they are the rows of its key, one per
    batch. Elsewhere they come from torch's default generator, in the order in
    which single batches would draw them.

    Args:
        num_batches (int): Number of batches.

    Raises:
        ValueError: If the key of the scope does not have one row per batch.
    """

    def __init__(self, num_batches: int):
        scope = _program.get()
        self._num_batches = num_batches
        self._scope = scope if isinstance(scope, _Program) else None
        self._first = 0
        self._drawn: list[list[Tensor]] | None = None
        if self._scope is not None:
            rows, self._first = self._scope.key.shape[0], self._scope.num_calls
            if rows != num_batches:
                raise ValueError(
                    'super_batch: the key of the program_scope must have a '
                    f'row for each of {num_batches} batches (got {rows})'
                )

    def draw(self, num_draws: int) -> None:
        """Draws the keys of all batches before several run together.

        Args:
            num_draws (int): Number of draws of the program per batch.
        """
        if self._scope is None and self._drawn is None:
            self._drawn = [
                [current_program()[0] for _ in range(num_draws)]
                for _ in range(self._num_batches)
            ]

    @contextlib.contextmanager
    def of(self, first: int, last: int) -> Iterator[None]:
        """Sets the keys of some of the batches for the draws of a run."""
        if self._scope is not None:
            key = self._scope.key[first:last].contiguous()
            program = _Program(key, self._first)
            with _running(program):
                yield
            calls = self._scope.num_calls, program.num_calls
            self._scope.num_calls = max(calls)
        elif self._drawn is not None:
            draws = zip(*self._drawn[first:last], strict=True)
            with _running(_DrawnKeys([torch.cat(keys) for keys in draws])):
                yield
        else:
            yield


def current_program() -> tuple[Tensor, int]:
    """Returns the key and the index of the next draw of a program.

    Outside a :func:`program_scope`, and in a graph captured by Dynamo, the key
    comes from torch's default generator. The compiler replaces it by the key
    of the scope of each call.
    """
    # Of this thread: `torch.compiler.is_compiling` holds for all of them.
    program = None if is_compiling() else _program.get()
    if program is None:
        from torch_gsample.ops import next_key

        return next_key(), 0
    return program.draw()


def draw_seed() -> int:
    """Draws a seed from torch's default generator.

    ``torch.manual_seed`` thereby also reproduces samplers without a seed.
    """
    return int(torch.randint(_INT63, (1,)).item())


def make_key(seed: int, epoch: int = 0, batch: int = 0) -> Tensor:
    """Returns the key of a batch.

    Args:
        seed (int): Any integer that fits in 64 bits.
        epoch (int, optional): The epoch, from 0 to 2^32 - 1.
        batch (int, optional): The index of the batch in the epoch, or
            :obj:`EPOCH_SCOPE`.

    Returns:
        torch.Tensor: int64 of shape ``[1, 3]``.

    Raises:
        TypeError: If an argument is not an integer.
        ValueError: If an argument is out of range.

    Example:
        >>> make_key(12, epoch=1, batch=5)
        tensor([[12,  1,  5]])
    """
    check_key('make_key', seed, epoch, batch)
    key = [[seed - 2**64 if seed > _INT63 else seed, epoch, batch]]
    if is_compiling():
        return torch.tensor(key)
    # Half the time, and this is called for each batch.
    return torch.from_numpy(np.array(key, dtype=np.int64))


def check_key(op: str, seed: int, epoch: int = 0, batch: int = 0) -> None:
    """Checks the numbers of a key.

    Args:
        op (str): The operator, for errors.
        seed (int): See :func:`make_key`.
        epoch (int, optional): Likewise.
        batch (int, optional): Likewise.

    Raises:
        TypeError: If an argument is not an integer.
        ValueError: If an argument is out of range.
    """
    for name, number in (('seed', seed), ('epoch', epoch), ('batch', batch)):
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise TypeError(
                f"{op}: '{name}' must be an integer (got {number!r})"
            )
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"{op}: 'seed' must fit in 64 bits (got {seed})")
    if not 0 <= epoch < 2**32:
        raise ValueError(f"{op}: 'epoch' must be in [0, 2^32) (got {epoch})")
    if not EPOCH_SCOPE <= batch <= _INT63:
        raise ValueError(f"{op}: 'batch' must be in [-1, 2^63) (got {batch})")


def hash_ids(*ids: Tensor | int | None) -> int:
    """Returns a 63-bit hash of ids, which is the same in every run.

    Args:
        *ids (torch.Tensor or int, optional): Integer tensors, in order.
    """
    digest = hashlib.blake2b(digest_size=8)
    for item in ids:
        if isinstance(item, Tensor):
            digest.update(item.to(torch.int64).contiguous().numpy().tobytes())
        else:
            digest.update(str(item).encode())
        digest.update(b'|')
    return int.from_bytes(digest.digest(), 'little') & _INT63


def worker_base_seed() -> int:
    """Returns the epoch's base seed in a loader's worker, otherwise 0.

    :class:`torch.utils.data.DataLoader` draws a new base seed for each epoch,
    unless its workers persist.
    """
    info = get_worker_info()
    return 0 if info is None else info.seed - info.id
