"""The random numbers of ids as expressions of Spark SQL.

They are those of :func:`torch_gsample.graph_sampling.draws.uniform`:
Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
2011), of which ``csrc/core/philox.h`` says how a draw gets its counter. So no
row leaves the JVM.
"""

from collections.abc import Mapping

from torch_gsample.spark.frames import OWN, DataFrame

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
#: Rounds of one projection: an expression of k rounds has about 2.4^k terms,
#: and each projection is a node of the plan.
_AT_ONCE = 2
_WORD = 2**32 - 1
#: The consumer of randomness, as ``csrc/core/philox.h`` numbers them.
_RANDOM_UNIFORM = 0xFFF1


def with_draws(
    frame: DataFrame, ids: Mapping[str, str], seed: int, call_id: int
) -> DataFrame:
    """Adds columns of numbers in [0, 1).

    Args:
        frame (DataFrame): With int64 columns of ids.
        ids (Dict[str, str]): For each new column, that of its ids.
        seed (int): Seed of all draws.
        call_id (int): What the numbers are for.
    """
    words = {}
    for name, id in ids.items():
        value = f'coalesce({id}, 0L)'
        high = f'shiftrightunsigned({value}, 32)'
        words[name] = ['0L', '0L', f'({value} & {_WORD}L)', high]
    own: list[str] = []
    for round_, key in enumerate(_keys(_stream(seed, call_id))):
        if round_ % _AT_ONCE == 0:
            frame, words = _named(frame, words, round_)
            own += [word for row in words.values() for word in row]
        words = {name: _round(row, key) for name, row in words.items()}
    draws = []
    for name, (low, high, _, _) in words.items():
        bits = f'(shiftleft({high}, 21) | shiftright({low}, 11))'
        # Spark copies the expressions of a projection into a filter above it,
        # once for each use, unless one of them is not deterministic: rounds
        # in rounds would be a term of 2.4^10.
        bits = f'({bits} | (spark_partition_id() & 0))'
        draws.append(f'cast({bits} as double) * {2.0**-53!r}D as {name}')
    return frame.selectExpr('*', *draws).drop(*own)


def _named(
    frame: DataFrame, words: dict[str, list[str]], round_: int
) -> tuple[DataFrame, dict[str, list[str]]]:
    """Adds the words of counters as columns, and returns their names."""
    names = {
        name: [f'{OWN}{i}_{round_}_{j}' for j in range(len(row))]
        for i, (name, row) in enumerate(words.items())
    }
    columns = [
        f'{word} as {column}'
        for name, row in words.items()
        for word, column in zip(row, names[name], strict=True)
    ]
    return frame.selectExpr('*', *columns), names


def _round(word: list[str], key: tuple[int, int]) -> list[str]:
    (high0, low0), (high1, low1) = (
        _product(word[2 * i], factor) for i, factor in enumerate(_FACTORS)
    )
    return [
        f'({high1} ^ {word[1]} ^ {key[0]}L)',
        low1,
        f'({high0} ^ {word[3]} ^ {key[1]}L)',
        low0,
    ]


def _product(word: str, factor: int) -> tuple[str, str]:
    """The upper and the lower 32 bits of a product.

    A product of 64 bits would be an overflow to Spark. With the factor less
    2^32, which is negative and more than -2^31, it fits in 63 bits and a sign,
    and is too small by the word in its upper half.
    """
    less = f'({word} * {factor - 2**32}L)'
    return f'(shiftright({less}, 32) + {word})', f'({less} & {_WORD}L)'


def _keys(key: int) -> list[tuple[int, int]]:
    """The two words of the key of each round."""
    low, high = key & _WORD, key >> 32
    return [
        (
            (low + r * _INCREMENTS[0]) & _WORD,
            (high + r * _INCREMENTS[1]) & _WORD,
        )
        for r in range(_ROUNDS)
    ]


def _stream(seed: int, call_id: int) -> int:
    """The key of the draws of a seed and call, in epoch and batch 0."""
    words = [0, call_id | _RANDOM_UNIFORM << 16, 0, 0]
    for key in _keys(seed % 2**64):
        products = [words[2 * i] * f for i, f in enumerate(_FACTORS)]
        words = [
            (products[1] >> 32) ^ words[1] ^ key[0],
            products[1] & _WORD,
            (products[0] >> 32) ^ words[3] ^ key[1],
            products[0] & _WORD,
        ]
    return words[1] << 32 | words[0]
