"""The bundled tables of Debian's uploads."""

import duckdb
import pytest

from torch_gsample.datasets import write_debian_database
from torch_gsample.relational import from_tables


def test_tables_match_their_documentation(tmp_path):
    path = tmp_path / 'debian.duckdb'
    write_debian_database(path)
    tables = from_tables(path)  # its keys are declared
    rows = {t: tables.report[t]['rows'] for t in tables.schema}
    assert rows == {
        'source': 394, 'person': 534, 'upload': 11_596, 'package': 2_013,
        'dependency': 6_213,
    }  # fmt: skip
    dangling = [found.get('dangling', 0) for found in tables.report.values()]
    assert not any(dangling)
    with duckdb.connect(str(path), read_only=True) as database:
        [(first, last, kinds)] = database.execute(
            'SELECT min(time)::VARCHAR, max(time)::VARCHAR, '
            'list_sort(list(DISTINCT kind)) FROM upload'
        ).fetchall()
        [(person,)] = database.execute(
            "SELECT count(DISTINCT person) FROM upload WHERE source = 'zlib'"
        ).fetchall()
    assert (first[:10], last[:4]) == ('1995-04-06', '2026')
    assert kinds == ['maintainer', 'nmu', 'qa', 'team']
    assert person > 1
    with pytest.raises(FileExistsError, match='must not exist'):
        write_debian_database(path)
