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
    """The place of a batch in a training run."""

    epoch: int
    batch: int


_current: ContextVar[BatchNumber | None] = ContextVar(
    'torch_gsample_batch', default=None
)


@contextlib.contextmanager
def batch_scope(epoch: int, batch: int) -> Iterator[None]:
    """Tells the samplers that run inside it which batch they sample.

    The loaders of :mod:`torch_gsample.loader` use it. A loop without a loader
    can use it, too:

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
    """Returns the innermost :func:`batch_scope`, if there is one."""
    return _current.get()


def warn_unnumbered(name: str, hint: str) -> None:
    """Says what it means that the number of a batch was lost on its way.

    Args:
        name (str): Who samples the batch.
        hint (str): What to do.
    """
    info = get_worker_info()
    if info is None or info.id == 0:  # and not each worker
        warnings.warn(
            f'{name}: a batch came without its number, so what is drawn for '
            'it depends on its seeds alone: without shuffling, each epoch '
            f'samples alike. {hint}',
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
    """Makes what a sampling program draws a function of a key.

    The samplers run programs inside it. The draws of a run are numbered, so
    that two of them differ.

    Args:
        key (torch.Tensor): int64 ``[1, 3]``, see :func:`make_key`; a row for
            each batch around what :func:`torch_gsample.super_batch` returns.

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
    """The keys of several batches, whether they run together or one by one.

    Inside of a :func:`program_scope`, whose key then has a row for each
    batch, these are its rows. Elsewhere they come from torch's default
    generator, in the order in which the batches would draw them one by one.

    Args:
        num_batches (int): How many batches there are.

    Raises:
        ValueError: If the key of the scope has not a row for each batch.
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
        """Draws the keys of all batches, before several run together.

        Args:
            num_draws (int): How many draws the program makes for a batch.
        """
        if self._scope is None and self._drawn is None:
            self._drawn = [
                [current_program()[0] for _ in range(num_draws)]
                for _ in range(self._num_batches)
            ]

    @contextlib.contextmanager
    def of(self, first: int, last: int) -> Iterator[None]:
        """Gives the draws of a run the keys of some of the batches."""
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
    """Returns the key and the number of the next draw of a program.

    Outside of a :func:`program_scope`, the key comes from torch's default
    generator. So it does in a graph that Dynamo captures, where the compiler
    puts the key of the scope of each call.
    """
    # Of this thread: `torch.compiler.is_compiling` holds for all of them.
    program = None if is_compiling() else _program.get()
    if program is None:
        from torch_gsample.ops import next_key

        return next_key(), 0
    return program.draw()


def draw_seed() -> int:
    """Draws a seed from torch's default generator.

    So ``torch.manual_seed`` also reproduces what has no seed of its own.
    """
    return int(torch.randint(_INT63, (1,)).item())


def make_key(seed: int, epoch: int = 0, batch: int = 0) -> Tensor:
    """Returns the key of a batch.

    Args:
        seed (int): Any integer that fits in 64 bits.
        epoch (int, optional): The epoch, from 0 to 2^32 - 1.
        batch (int, optional): The number of the batch in the epoch, or
            :obj:`EPOCH_SCOPE`.

    Returns:
        torch.Tensor: int64 of shape ``[1, 3]``.

    Raises:
        TypeError: If a number is no integer.
        ValueError: If a number is outside its range.

    Example:
        >>> make_key(12, epoch=1, batch=5)
        tensor([[12,  1,  5]])
    """
    for name, number in (('seed', seed), ('epoch', epoch), ('batch', batch)):
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise TypeError(
                f"make_key: '{name}' must be an integer (got {number!r})"
            )
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"make_key: 'seed' must fit in 64 bits (got {seed})")
    if not 0 <= epoch < 2**32:
        raise ValueError(
            f"make_key: 'epoch' must be in [0, 2^32) (got {epoch})"
        )
    if not EPOCH_SCOPE <= batch <= _INT63:
        raise ValueError(
            f"make_key: 'batch' must be in [-1, 2^63) (got {batch})"
        )
    key = [[seed - 2**64 if seed > _INT63 else seed, epoch, batch]]
    if is_compiling():
        return torch.tensor(key)
    # Half the time, and this is called for each batch.
    return torch.from_numpy(np.array(key, dtype=np.int64))


def hash_ids(*ids: Tensor | int | None) -> int:
    """Returns a 63-bit hash of the given ids, which does not vary over runs.

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
    """Returns the base seed of the epoch in a loader's worker, else 0.

    :class:`torch.utils.data.DataLoader` draws a new one for every epoch,
    unless its workers persist.
    """
    info = get_worker_info()
    return 0 if info is None else info.seed - info.id
