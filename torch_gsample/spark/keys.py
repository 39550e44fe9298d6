"""Key columns of any kind, and the two ways to number them."""

from collections.abc import Sequence

from pyspark.sql import Window

from torch_gsample.spark.frames import INTEGERS, OWN, Column, DataFrame, F

#: Types with an exact equality that do not change when written and read.
KEY_TYPES = (*INTEGERS, 'string', 'binary', 'date', 'boolean')
#: Dense ids are counted in 2^14 bins of a 64-bit hash.
_BIN_SHIFT = 50
_HASH, _BIN = OWN + 'hash', OWN + 'bin'


def dense_ids(frame: DataFrame, keys: list[str]) -> DataFrame:
    """Ranks keys within hash bins, and adds the sizes of earlier bins.

    Bins are functions of keys, so a repeated task counts the same.
    """
    counted = frame.groupBy(*keys).agg(F.count(F.lit(1)).alias(OWN + 'n'))
    hashed = F.xxhash64(*keys)
    unique = counted.withColumns(
        {_HASH: hashed, _BIN: F.shiftrightunsigned(hashed, _BIN_SHIFT)}
    )
    in_bin = Window.partitionBy(_BIN).orderBy(_HASH, *keys)
    before = Window.partitionBy(F.lit(0)).orderBy(_BIN)
    sizes = unique.groupBy(_BIN).agg(F.count(F.lit(1)).alias('size'))
    offsets = sizes.select(
        _BIN,
        (F.sum('size').over(before) - F.col('size')).alias(OWN + 'offset'),
    )
    ranked = unique.withColumn(OWN + 'rank', F.row_number().over(in_bin) - 1)
    ranked = ranked.join(F.broadcast(offsets), _BIN)
    id = (F.col(OWN + 'offset') + F.col(OWN + 'rank')).cast('bigint')
    twice = key_error(
        'assign_ids', "keys of 'vertices' must be unique", *map(F.col, keys)
    )
    id = F.when(F.col(OWN + 'n') == 1, id).otherwise(twice.cast('bigint'))
    return ranked.select(*keys, id.alias('id'))


def unique_hashes(frame: DataFrame, keys: list[str]) -> DataFrame:
    """Hashes keys; a hash of two rows is an error that names their keys."""
    row = F.struct(*keys)
    grouped = frame.groupBy(hashed([F.col(k) for k in keys]).alias('id')).agg(
        F.count(F.lit(1)).alias(OWN + 'n'),
        F.min(row).alias(OWN + 'first'),
        F.max(row).alias(OWN + 'last'),
    )
    ends = [
        F.col(f'{OWN}{end}.{k}') for end in ('first', 'last') for k in keys
    ]
    twice = key_error(
        'assign_ids',
        "keys of 'vertices' must be unique, and hashed ids, too "
        "(otherwise use kind='dense')",
        *ends,
    )
    id = F.when(F.col(OWN + 'n') == 1, F.col('id')).otherwise(
        twice.cast('bigint')
    )
    own = [F.col(f'{OWN}first.{k}').alias(k) for k in keys]
    return grouped.select(*own, id.alias('id'))


def hashed(keys: list[Column]) -> Column:
    """Returns 63 bits of the xxHash64 of keys."""
    return F.xxhash64(*keys).bitwiseAND(F.lit(2**63 - 1))


def canonical(
    op: str, name: str, frame: DataFrame, keys: list[str]
) -> dict[str, Column]:
    """Casts key columns to common types, on which hashes depend."""
    types = dict(frame.dtypes)
    for key in keys:
        if '.' in key or '`' in key:
            raise ValueError(
                f"{op}: key columns of '{name}' must have names without dots "
                f'and backticks (got {key!r})'
            )
        if types[key] not in KEY_TYPES:
            raise TypeError(
                f"{op}: key column '{key}' of '{name}' must hold strings, "
                f'integers, bytes, dates or booleans (got {types[key]})'
            )
    return {k: F.col(k).cast(canonical_type(types[k])) for k in keys}


def canonical_type(kind: str) -> str:
    """Returns the type in which a key column is hashed and joined."""
    return 'bigint' if kind in INTEGERS else kind


def not_null(
    op: str, name: str, key: str, keys: list[str], own: dict[str, Column]
) -> Column:
    """Returns a key column; the job fails on a null and names the key."""
    text = f"column '{key}' of '{name}' must not be null"
    row = key_error(op, text, *(own[k] for k in keys))
    return F.when(own[key].isNotNull(), own[key]).otherwise(row)


def key_error(op: str, text: str, *values: Column) -> Column:
    """An error of the job, with the values that caused it."""
    shown = [F.coalesce(v.cast('string'), F.lit('null')) for v in values]
    got = F.concat_ws(', ', *shown)
    message = F.concat(F.lit(f'{op}: {text} (got '), got, F.lit(')'))
    return F.raise_error(message)


def key_names(op: str, name: str, key: str | Sequence[str]) -> list[str]:
    """Returns the columns of a key.

    Raises:
        TypeError: If they are no names.
    """
    names = [key] if isinstance(key, str) else key
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(isinstance(name, str) for name in names)
    ):
        raise TypeError(
            f"{op}: a key in '{name}' must be a column name or a list of "
            f'them (got {key!r})'
        )
    return [*names]


def check_frame(op: str, name: str, frame: DataFrame) -> None:
    """Checks the type of an argument.

    Raises:
        TypeError: If it is not a DataFrame.
    """
    if not isinstance(frame, DataFrame):
        raise TypeError(
            f"{op}: '{name}' must be a Spark DataFrame (got "
            f'{type(frame).__name__})'
        )
