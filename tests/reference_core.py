"""A reference of the sampling core (csrc/core): plain Python integers.

Functions have the core's names. `draw(slot)` is a 64-bit draw, weights are
fixed-point integers, one per position.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

MASK32 = 2**32 - 1
MASK64 = 2**64 - 1

# Random numbers.


# Tests of other dtypes, threads and wrappers draw the same numbers.
@functools.lru_cache(maxsize=2**16)
def philox(key, counter):
    """Philox4x32-10 of a key of 64 bits and a counter of four words."""
    k0, k1 = key & MASK32, key >> 32
    c0, c1, c2, c3 = counter
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & MASK32,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & MASK32,
        )
        k0 = (k0 + 0x9E3779B9) & MASK32
        k1 = (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def half(block, i):
    return block[2 * i] + (block[2 * i + 1] << 32)


def stream_key(key, call, relation):
    """The key of the draws of one hop of one relation in one batch."""
    seed, epoch, batch = (number & MASK64 for number in key)
    counter = (
        epoch & MASK32,
        call + (relation << 16),
        batch & MASK32,
        batch >> 32,
    )
    return half(philox(seed, counter), 0)


class Stream:
    """The 64-bit draws of one column, by slot."""

    def __init__(self, key, root, id):
        self.key, self.root, self.id = key & MASK64, root, id & MASK64

    def block(self, i):
        return philox(
            self.key, (i, self.root, self.id & MASK32, self.id >> 32)
        )

    def __call__(self, slot):
        return half(self.block(slot // 2), slot % 2)


def bounded(draw, n):
    """A uniform integer in [0, n)."""
    return draw * n // 2**64


def unit_interval(draw):
    """A uniform number in [0, 1): the high 53 bits."""
    return (draw >> 11) / 2**53


# Selection of positions.


def select_with_replacement(draw, n, k):
    return [bounded(draw(slot), n) for slot in range(k)]


def select_without_replacement(draw, n, k):
    """Floyd's algorithm."""
    out = []
    for slot in range(k):
        last = n - k + slot
        t = bounded(draw(slot), last + 1)
        out.append(last if t in out else t)
    return out


def ceil_log2(n):
    return next(bits for bits in range(64) if 2**bits >= n)


def fixed_point(weight, shift):
    if weight == 0:
        return 0
    return max(1, math.floor(Fraction(weight) * Fraction(2) ** shift))


def fixed_point_shift(max_weight, n):
    """The shift under which n weights below 2^exponent sum to at most 2^62."""
    exponent = math.frexp(max_weight)[1] if max_weight > 0 else -1021
    return 62 - ceil_log2(n) - max(exponent, -1021)


def find(weights, r):
    """The position of unit r in the concatenated weights."""
    for i, weight in enumerate(weights):
        if r < weight:
            return i
        r -= weight
    raise ValueError('beyond the last weight')


def select_weighted_with_replacement(draw, weights, k):
    total = sum(weights)
    if total == 0:
        return []
    return [find(weights, bounded(draw(slot), total)) for slot in range(k)]


def select_weighted_without_replacement(draw, weights, k):
    """Selected positions have weight zero afterwards."""
    weights, out = list(weights), []
    for slot in range(k):
        if sum(weights) == 0:
            break
        i = find(weights, bounded(draw(slot), sum(weights)))
        weights[i] = 0
        out.append(i)
    return out


# Walks.

WALK = 0xFFFD
WALK_TRIES = 64


@dataclass
class WalkDraws:
    """The draws of one walker."""

    key: int
    walker: int

    def position(self, step):
        return Stream(self.key, 0, self.walker)(step)

    def restart(self, step):
        return Stream(self.key, 1, self.walker)(step)

    def candidate(self, step, attempt):
        return Stream(self.key, 2 + attempt, self.walker)(2 * step)

    def coin(self, step, attempt):
        return Stream(self.key, 2 + attempt, self.walker)(2 * step + 1)


def restart_threshold(probability):
    return math.floor(Fraction(probability) * 2**63)


def restarts(draw, threshold):
    return draw // 2 < threshold


def relative_weight(weight):
    return max(1, math.floor(Fraction(weight) * 2**32))


@dataclass
class SecondOrder:
    """Weights of a step back, to a neighbour, and away."""

    back: int
    near: int
    far: int


def second_order(p, q):
    """1 / p, 1 and 1 / q relative to the largest of them."""
    least = min(1.0, p, q)
    return SecondOrder(*(relative_weight(least / x) for x in (p, 1.0, q)))


def accepts(coin, weight):
    return coin // 2**32 < weight


def select_by_mass(draw, masses):
    return find(masses, bounded(draw, sum(masses)))
