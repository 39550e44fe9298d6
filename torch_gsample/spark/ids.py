"""Maps vertex keys of any type to int64 ids, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from torch_gsample.spark.frames import (
    INTEGERS,
    OWN,
    Column,
    DataFrame,
    F,
    check_columns,
)
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.keys import (
    KEY_TYPES,
    canonical,
    canonical_type,
    dense_ids,
    hashed,
    key_error,
    key_names,
    not_null,
    unique_hashes,
)

Columns: TypeAlias = Mapping[str, str | Sequence[str]]

KINDS = ('dense', 'hashed')
_METADATA = 'torch_gsample.ids'
_NEW = OWN + 'new_'


@dataclass(frozen=True)
class VertexIds:
    """A map of keys to ids; see :func:`assign_ids`.

    Args:
        frame (DataFrame): The key columns, and ``id``, int64 and nonnegative.
        kind (str): ``'dense'`` or ``'hashed'``.
    """

    frame: DataFrame
    kind: str

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return [name for name in self.frame.columns if name != 'id']

    @operation
    def encode(
        self, frame: DataFrame, columns: Columns, check: bool = True
    ) -> DataFrame:
        """Replaces key columns by columns of ids.

        Args:
            frame (DataFrame): Vertices or edges; other columns do not change.
            columns (Dict[str, str or List[str]]): For each new column, the
                key column, or all columns of a composite key.
            check (bool, optional): Whether the job fails on a key without an
                id. If false, hashed ids are computed without a join.

        Raises:
            TypeError: If an argument or a column has the wrong type.
            ValueError: If a column is missing, or a key has the wrong number
                of columns.

        Example:
            >>> from torch_gsample.spark import assign_ids, local_session
            >>> spark = local_session()
            >>> names = spark.createDataFrame([('ann',), ('bob',)], ['name'])
            >>> edges = spark.createDataFrame([('ann', 'bob')], ['a', 'b'])
            >>> ids = assign_ids(names, 'name')
            >>> coded = ids.encode(edges, {'src': 'a', 'dst': 'b'})
            >>> coded.columns
            ['src', 'dst']
            >>> ids.decode(coded, {'src': 'a', 'dst': 'b'}).collect()
            [Row(a='ann', b='bob')]
        """
        op = 'encode'
        wanted = self._checked_columns(op, frame, columns)
        fields = frame.dtypes
        for name, keys in wanted.items():
            own = canonical(op, 'frame', frame, keys)
            self._check_types(op, fields, keys)
            if check or self.kind == 'dense':
                frame = self._joined(frame, name, own, keys)
            else:
                kept = [not_null(op, 'frame', k, keys, own) for k in keys]
                frame = frame.withColumn(_NEW + name, hashed(kept))
        gone = {key for keys in wanted.values() for key in keys}
        return _renamed(frame, [*wanted], [n for n, _ in fields], gone)

    @operation
    def decode(self, frame: DataFrame, columns: Columns) -> DataFrame:
        """Replaces columns of ids by key columns: inverts :meth:`encode`.

        Args:
            frame (DataFrame): Vertices or edges; other columns do not change.
            columns (Dict[str, str or List[str]]): For each column of ids, the
                name of the key column, or all names of a composite key.

        Raises:
            TypeError: If an argument or a column has the wrong type.
            ValueError: If a column is missing or twice, or a key has the wrong
                number of columns.
        """
        op = 'decode'
        wanted = self._checked_columns(op, frame, columns, back=True)
        names = frame.columns
        made: list[str] = []
        for name, keys in wanted.items():
            made += [key for key in keys if key not in made]
            own = self._own_names(name)
            known = self.frame.withColumnsRenamed({'id': OWN + 'id', **own})
            same = F.col(name) == F.col(OWN + 'id')
            frame = frame.join(known, same, 'left')
            missing = F.col(OWN + 'id').isNull()
            error = key_error(
                op, f"'{name}' has an id of no vertex", F.col(name)
            )
            for key, mine in zip(keys, own.values(), strict=True):
                kind = dict(frame.dtypes)[mine]
                value = F.when(missing, error.cast(kind)).otherwise(
                    F.col(mine)
                )
                frame = frame.withColumn(_NEW + key, value)
            frame = frame.drop(OWN + 'id', *own.values())
        kept = [n for n in names if n not in wanted]
        if both := sorted({*made} & {*kept}):
            raise ValueError(
                f"{op}: 'frame' must not have the key columns already (got "
                f'{both})'
            )
        return _renamed(frame, made, names, {*wanted})

    @operation
    def write(self, path: str, mode: str = 'errorifexists') -> None:
        """Writes Parquet files for :func:`read_ids`.

        Args:
            path (str): A folder in any file system of Spark.
            mode (str, optional): ``'errorifexists'`` or ``'overwrite'``.

        Raises:
            FileExistsError: If ``path`` exists.
            TypeError: If ``path`` is not a string.
            ValueError: If ``mode`` is unknown.
        """
        if mode not in ('errorifexists', 'overwrite'):
            raise ValueError(
                f"write: 'mode' must be 'errorifexists' or 'overwrite' (got "
                f'{mode!r})'
            )
        kind = {_METADATA: self.kind}
        marked = self.frame.withMetadata('id', kind)
        # Spark Connect knows only the short name.
        short = 'error' if mode == 'errorifexists' else mode
        try:
            marked.write.mode(short).parquet(path)
        except AnalysisException as error:
            if 'PATH_ALREADY_EXISTS' not in str(error):
                raise
            raise FileExistsError(
                f"write: 'path' must not exist, unless 'mode' is 'overwrite' "
                f'(got {path!r})'
            ) from error

    def _own_names(self, end: str) -> dict[str, str]:
        return {key: f'{OWN}{end}_{key}' for key in self.keys}

    def _joined(
        self,
        frame: DataFrame,
        name: str,
        own: dict[str, Column],
        keys: list[str],
    ) -> DataFrame:
        """Adds the ids of keys, or an error that names the key."""
        known = self._own_names(name)
        table = self.frame.withColumnsRenamed({'id': OWN + 'id', **known})
        pairs = zip(own.values(), known.values(), strict=True)
        same = reduce(and_, (a == F.col(b) for a, b in pairs))
        text = f"the key of '{name}' must be one of a vertex"
        error = key_error('encode', text, *(F.col(key) for key in keys))
        id = F.coalesce(F.col(OWN + 'id'), error.cast('bigint'))
        joined = frame.join(table, same, 'left').withColumn(_NEW + name, id)
        return joined.drop(OWN + 'id', *known.values())

    def _checked_columns(
        self, op: str, frame: DataFrame, columns: Columns, back: bool = False
    ) -> dict[str, list[str]]:
        if not columns or not all(isinstance(n, str) for n in columns):
            raise TypeError(
                f"{op}: 'columns' must be a dictionary of column names (got "
                f'{columns!r})'
            )
        out = {
            name: key_names(op, 'columns', keys)
            for name, keys in columns.items()
        }
        for name, keys in out.items():
            if len(keys) != len(self.keys):
                raise ValueError(
                    f'{op}: a key must have {len(self.keys)} columns, as '
                    f'{self.keys} (got {keys} for {name!r})'
                )
            check_columns(op, 'frame', frame, [name] if back else keys)
            if back and dict(frame.dtypes)[name] not in INTEGERS:
                raise TypeError(
                    f"{op}: column '{name}' of 'frame' must hold integers "
                    f'(got {dict(frame.dtypes)[name]})'
                )
        return out

    def _check_types(
        self, op: str, fields: list[tuple[str, str]], keys: list[str]
    ) -> None:
        known = dict(self.frame.dtypes)
        for key, own in zip(keys, self.keys, strict=True):
            kind = canonical_type(dict(fields)[key])
            if kind != known[own]:
                raise TypeError(
                    f"{op}: column '{key}' of 'frame' must be {known[own]}, "
                    f"as the key column '{own}' (got {kind})"
                )


@operation
def assign_ids(
    vertices: DataFrame,
    key: str | Sequence[str] = 'id',
    kind: str = 'dense',
) -> VertexIds:
    r"""Assigns an int64 id to each vertex key.

    Keys are strings, UUIDs, integers or several columns.

    Ids are functions of keys, for any order and number of partitions, so
    samples are reproducible. Dense ids are the ranks 0, 1, ... of the keys by
    a 64-bit hash, and so depend on the set of keys. A hashed id is the lower
    63 bits of xxHash64 of its key, and does not change when vertices are
    added. Two of :math:`n` keys collide with a probability of about
    :math:`n^2 / 2^{64}` (one in 1,800 for :math:`10^8` keys); the job then
    fails and names them.

    The result is lazy and recomputed at each use, unless you write it
    (:meth:`VertexIds.write`).

    Args:
        vertices (DataFrame): A row for each vertex.
        key (str or List[str], optional): The column of keys, or the columns
            of a composite key: strings, integers, bytes, dates or booleans.
        kind (str, optional): ``'dense'`` or ``'hashed'``.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        ValueError: If a column is missing, or ``kind`` is unknown. The job
            fails on null and duplicate keys, and names them.

    Example:
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> names = spark.createDataFrame([('ann',), ('bob',)], ['name'])
        >>> ids = assign_ids(names, 'name')
        >>> sorted(row.id for row in ids.frame.collect())
        [0, 1]
    """
    op = 'assign_ids'
    check_kind(op, kind)
    keys = key_names(op, 'key', key)
    check_columns(op, 'vertices', vertices, keys)
    own = canonical(op, 'vertices', vertices, keys)
    valid = [
        not_null(op, 'vertices', key, keys, own).alias(key) for key in keys
    ]
    frame = vertices.select(*valid)
    # A key column may be called `id`: it is renamed, as ids are.
    names = [f'{n}_key' if n == 'id' else n for n in keys]
    if len({*names}) < len(names):
        raise ValueError(f"{op}: names in 'key' must differ (got {keys})")
    frame = frame.toDF(*names)
    number = dense_ids if kind == 'dense' else unique_hashes
    return VertexIds(number(frame, names), kind)


@operation
def read_ids(session: SparkSession, path: str) -> VertexIds:
    """Reads a map written by :meth:`VertexIds.write`.

    Args:
        session (SparkSession): The Spark session.
        path (str): The folder.

    Raises:
        FileNotFoundError: If the files do not exist.
        TypeError: If an argument has the wrong type.
        ValueError: If the files are not of :class:`VertexIds`.
    """
    op = 'read_ids'
    try:
        frame = session.read.parquet(path)
    except AnalysisException as error:
        raise FileNotFoundError(
            f"{op}: 'path' must be a folder of VertexIds (got {path!r}: "
            f'{error})'
        ) from error
    fields = dict(frame.dtypes)
    known = fields.pop('id', None) == 'bigint' and fields
    kind = frame.schema['id'].metadata.get(_METADATA) if known else None
    if kind not in KINDS or not {*fields.values()} <= {*KEY_TYPES}:
        raise ValueError(f"{op}: 'path' must have been written by VertexIds")
    return VertexIds(frame, kind)


def check_kind(op: str, kind: str) -> None:
    """Checks the kind of ids.

    Raises:
        ValueError: If it is unknown.
    """
    if kind not in KINDS:
        raise ValueError(
            f"{op}: 'kind' must be 'dense' or 'hashed' (got {kind!r})"
        )


def _renamed(
    frame: DataFrame, made: list[str], names: list[str], gone: set[str]
) -> DataFrame:
    """New columns first, under their names, then those that stay."""
    kept = [n for n in names if n not in gone and n not in made]
    return frame.select(
        *(F.col(f'`{_NEW}{name}`').alias(name) for name in made),
        *(F.col(f'`{name}`') for name in kept),
    )
