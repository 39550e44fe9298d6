"""The order of the seeds of an epoch: any part of a permutation at once.

A seed, an epoch and positions go in; the indices at these positions come out.
Nothing but these enters, not even the positions that were read before.
"""

import functools

import numpy as np
import torch

from torch_gsample import ops, rng

#: Up to this size draws are sorted: all permutations are equally likely.
_MOST_SORTED = 1 << 14
#: Rounds of the network above it; 4 are needed for pairs to look independent.
_ROUNDS = 12
#: The call id of the draws: in a program, that of its last possible one.
_CALL = 0xFFFF


class Order:
    r"""A random permutation of ``range(size)``, with random access.

    Small ones sort a draw for each index. Large ones are a Feistel network:
    an index is a pair (left, right) in :math:`Z_a \times Z_b` with
    :math:`a b \ge size`, and rounds add to ``left`` a random function of
    ``right``, modulo ``a``, and to ``right`` one of ``left``, modulo ``b``. A
    result outside of ``range(size)`` goes through the network again. So a
    position takes constant time, after :math:`O(\sqrt{size})` draws.

    Args:
        seed (int): The seed.
        epoch (int): The epoch.
        size (int): How many indices there are.

    Example:
        >>> order = Order(seed=12, epoch=0, size=1_000_000)
        >>> order.at(np.arange(500_000, 500_003))
        array([251408, 903587, 978217])
    """

    def __init__(self, seed: int, epoch: int, size: int):
        self.size = size
        key = rng.make_key(seed, epoch, rng.EPOCH_SCOPE)
        self._sorted: np.ndarray | None = None
        if size <= _MOST_SORTED:
            draws = _uniform(size, key)
            self._sorted = draws.argsort(kind='stable')
            return
        self._width = int(np.ceil(np.sqrt(size)))  # a
        self._height = -(-size // self._width)  # b
        shape = _ROUNDS, self._width
        draws = _uniform(_ROUNDS * self._width, key).reshape(shape)
        moduli = [self._width, self._height] * (_ROUNDS // 2)
        scale = np.array(moduli, dtype=np.float64)[:, None]
        self._tables = (draws * scale).astype(np.int64)

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Returns the indices at some positions, int64 ``[n]``.

        Args:
            positions (numpy.ndarray): int64 ``[n]``, each in ``range(size)``.
        """
        if self._sorted is not None:
            return self._sorted[positions]
        out = self._permute(positions)
        while (beyond := np.flatnonzero(out >= self.size)).size > 0:
            out[beyond] = self._permute(out[beyond])
        return out

    def _permute(self, positions: np.ndarray) -> np.ndarray:
        right, left = np.divmod(positions, self._width)
        for i in range(0, _ROUNDS, 2):
            left += self._tables[i][right]
            left -= self._width * (left >= self._width)
            right += self._tables[i + 1][left]
            right -= self._height * (right >= self._height)
        return right * self._width + left


def _uniform(count: int, key: torch.Tensor) -> np.ndarray:
    """Numbers in [0, 1), exact in 53 bits, of the ids below ``count``."""
    ids = torch.arange(count)
    return ops.random_uniform(ids, key=key, call_id=_CALL).numpy()


#: The loader and whoever asks for one batch read the same epoch.
order_of = functools.lru_cache(maxsize=2)(Order)
