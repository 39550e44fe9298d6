"""The random numbers of vertices and edges, wherever these are stored.

A number is a function of the seed, of what it is for (a call id), and of the
id of the vertex or edge. So no partitioning of a graph changes a sample.
"""

from torch import Tensor

from torch_gsample import ops, rng

#: Call ids: what a number decides.
KEEP, EDGE_ORDER, JUMP_ORDER, JUMP = range(4)
#: Of wedges that estimate clustering: of vertices and of their neighbours.
VERTEX_WEDGES, ALL_WEDGES, FIRST_NEIGHBOR, SECOND_NEIGHBOR = range(4, 8)


def uniform(ids: Tensor, seed: int, call_id: int) -> Tensor:
    """Draws a number of [0, 1) for each id, float64."""
    return ops.random_uniform(ids, key=rng.make_key(seed), call_id=call_id)


def edge_ids(src: Tensor, dst: Tensor) -> Tensor:
    """Returns ids for edges that have none: a hash of their ends.

    Parallel edges have one id, and are kept or dropped together.

    Args:
        src (torch.Tensor): int64 ``[num_edges]``.
        dst (torch.Tensor): int64 ``[num_edges]``.
    """
    return _mix(_mix(src) + dst)


# The finalizer of SplitMix64 (Steele et al., "Fast splittable pseudorandom
# number generators", OOPSLA 2014). Products of int64 wrap.
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * _FACTORS[0]
    x = (x ^ _shift(x, 27)) * _FACTORS[1]
    return x ^ _shift(x, 31)


def _shift(x: Tensor, bits: int) -> Tensor:
    """A logical shift to the right."""
    return (x >> bits) & (2 ** (64 - bits) - 1)


def checked_fraction(op: str, name: str, value: float) -> float:
    """Returns a share.

    Raises:
        TypeError: If it is not a number.
        ValueError: If it is outside [0, 1].
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{op}: '{name}' must be a number (got {value!r})")
    if not 0 <= value <= 1:
        raise ValueError(f"{op}: '{name}' must be in [0, 1] (got {value})")
    return float(value)


def checked_seed(op: str, seed: int | None) -> int:
    """Returns the seed, drawn from torch's default generator if not given.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it does not fit in 64 bits.
    """
    if seed is None:
        return rng.draw_seed()
    rng.check_key(op, seed)
    return int(rng.make_key(seed)[0, 0])


def checked_direction(op: str, direction: str) -> str:
    """Returns the direction in which neighbours are looked for.

    Raises:
        ValueError: If it is none.
    """
    if direction not in ('in', 'out', 'both'):
        raise ValueError(
            f"{op}: 'direction' must be 'in', 'out' or 'both' "
            f'(got {direction!r})'
        )
    return direction


def checked_keep_edges(op: str, keep_edges: str) -> str:
    """Returns which edges of a neighbourhood are kept.

    Raises:
        ValueError: If it is not known.
    """
    if keep_edges not in ('incident', 'induced'):
        raise ValueError(
            f"{op}: 'keep_edges' must be 'incident' or 'induced' (got "
            f'{keep_edges!r})'
        )
    return keep_edges
