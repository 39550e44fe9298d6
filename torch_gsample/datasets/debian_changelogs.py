"""Uploads of Debian packages as tables of a database."""

from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.datasets.debian_packages import (
    DebianPackages,
    decode_names,
    edge_key,
    open_bundled,
)

_SCHEMA = """
CREATE TABLE source (name VARCHAR PRIMARY KEY);
CREATE TABLE person (id BIGINT PRIMARY KEY);
CREATE TABLE upload (
    id BIGINT PRIMARY KEY,
    source VARCHAR REFERENCES source,
    person BIGINT REFERENCES person,
    time TIMESTAMP, urgency VARCHAR, kind VARCHAR,
    changes BIGINT, closes BIGINT
);
CREATE TABLE package (
    name VARCHAR PRIMARY KEY,
    source VARCHAR REFERENCES source,
    section VARCHAR
);
CREATE TABLE dependency (
    package VARCHAR REFERENCES package,
    depends VARCHAR REFERENCES package
);
"""


def write_debian_database(path: str | Path) -> None:
    """Writes five tables of Debian's packages to a new DuckDB database.

    ``upload`` has 11,596 uploads of 394 source packages, from 1995 to 2026,
    from the changelogs that Debian 12 installs with them: the ``source``, the
    ``person`` (a number), the ``time``, the ``urgency``, the ``kind``
    (``'maintainer'``, ``'team'``, ``'nmu'`` for a non-maintainer upload, or
    ``'qa'``, by the group that maintains orphaned packages), and the number of
    ``changes`` that it lists and of bugs that it ``closes``. ``package`` and
    ``dependency`` are the part of :class:`DebianPackages` with these sources.

    Note two biases before you derive labels. The sources are those installed
    on one machine in 2026, so all of them survived. Changelogs are truncated:
    for many sources, only uploads from 2019 on are known. ``package`` and
    ``dependency`` have no times: they show the archive of 2026, and using them
    at an earlier time is a leak.

    Args:
        path (str or Path): The file, which must not exist.

    Raises:
        FileExistsError: If it does.
        ImportError: If DuckDB or PyArrow is missing.

    Example:
        >>> import duckdb, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_debian_database(f'{folder}/debian.duckdb')
        ...     database = duckdb.connect(f'{folder}/debian.duckdb')
        ...     database.sql('SELECT count(*) FROM upload').fetchall()
        ...     database.close()
        [(11596,)]
    """
    import duckdb
    import pyarrow as pa

    if Path(path).exists():
        raise FileExistsError(
            f"write_debian_database: 'path' must not exist (got {path})"
        )
    with duckdb.connect(str(path)) as database:
        database.execute(_SCHEMA)
        for table, columns in {**_uploads(), **_packages()}.items():
            database.register('rows', pa.table(columns))
            names = ', '.join(columns)
            what = 'make_timestamp(time * 1000000)'
            picked = ', '.join(what if c == 'time' else c for c in columns)
            database.execute(
                f'INSERT INTO {table} ({names}) SELECT {picked} FROM rows'
            )
            database.unregister('rows')


def _uploads() -> dict[str, dict[str, Any]]:
    with open_bundled('debian_changelogs.npz') as arrays:
        names = np.array(_sources())
        of = {
            key: np.array(decode_names(arrays[key]))[arrays[name]]
            for name, key in (('urgency', 'urgencies'), ('kind', 'kinds'))
        }
        person = arrays['person'].astype(np.int64)
        return {
            'source': {'name': names},
            'person': {'id': np.arange(person.max() + 1)},
            'upload': {
                'id': np.arange(len(person)),
                'source': names[arrays['source']],
                'person': person,
                'time': arrays['time'],
                'urgency': of['urgencies'],
                'kind': of['kinds'],
                'changes': arrays['changes'].astype(np.int64),
                'closes': arrays['closes'].astype(np.int64),
            },
        }


def _sources() -> list[str]:
    with open_bundled('debian_changelogs.npz') as arrays:
        return decode_names(arrays['names'])


def _packages() -> dict[str, dict[str, Any]]:
    """Returns the packages of the sources, and what they depend on."""
    known = DebianPackages()
    packages = np.array(known.package_names)
    with open_bundled('debian_packages.npz') as arrays:
        source, package = arrays[edge_key(('source', 'builds', 'package'))]
        edges = arrays[edge_key(('package', 'depends', 'package'))]
        section = arrays['y/package']
    names = np.array(known.source_names)[source]
    ours = np.isin(names, _sources())
    package, names = package[ours], names[ours]
    has = np.zeros(len(packages), bool)
    has[package] = True
    edges = edges[:, has[edges[0]] & has[edges[1]]]
    classes = np.array([*known.class_names, None])
    return {
        'package': {
            'name': packages[package],
            'source': names,
            'section': classes[section[package]].tolist(),
        },
        'dependency': {
            'package': packages[edges[0]],
            'depends': packages[edges[1]],
        },
    }
