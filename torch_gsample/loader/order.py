"""The order of an epoch's seeds: a permutation with random access.

A seed, an epoch and positions go in; the indices at these positions come out.
The result depends on nothing else, not even on earlier reads.
"""

import functools

import numpy as np
import torch

from torch_gsample import ops, rng

#: Maximum size of sorted draws, where all permutations are equally likely.
_MOST_SORTED = 1 << 14
#: Rounds of the network for larger sizes; 4 make pairs look independent.
_ROUNDS = 12
#: Call id of the draws: the last possible one of a program.
_CALL = 0xFFFF


class Order:
    r"""A random permutation of ``range(size)`` with random access.

    Small permutations sort a draw for each index. Large ones are a Feistel
    network: an index is a pair (left, right) in :math:`Z_a \times Z_b` with
    :math:`a b \ge size`. Rounds add a random function of ``right`` to
    ``left``, modulo ``a``, and one of ``left`` to ``right``, modulo ``b``. A
    result outside of ``range(size)`` goes through the network again. So a
    position takes constant time after :math:`O(\sqrt{size})` draws.

    Args:
        seed (int): The seed.
        epoch (int): The epoch.
        size (int): Number of indices.

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
    """Returns numbers in [0, 1), exact in 53 bits, of ids below ``count``."""
    ids = torch.arange(count)
    return ops.random_uniform(ids, key=key, call_id=_CALL).numpy()


#: Two entries: an epoch of the loader, and one of a batch accessed by index.
order_of = functools.lru_cache(maxsize=2)(Order)
