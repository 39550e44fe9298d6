"""A file of a folder that is exchanged, replaced or lost is an error."""

import json
import os
import shutil

import duckdb
import pytest
import torch

from tests.relational.test_folders import forum
from torch_gsample.relational import (
    TableFolder,
    append_tables,
    compact_tables,
    convert_tables,
)
from torch_gsample.storage.format import seal
from torch_gsample.storage.replaced import exchange

#: Two tables with keys and columns of the same types, as many rows.
MANIFEST = {
    'tables': {
        'user': {'key': 'name'},
        'buyer': {'key': 'name'},
        'post': {
            'key': ['id', 'board'],
            'time': 't',
            'foreign_keys': [
                {'columns': 'who', 'table': 'user'},
                {'columns': 'buyer', 'table': 'buyer'},
            ],
        },
    }
}


def shop(path, first, last):
    """Users, buyers with other keys, and posts that refer to both."""
    forum(path, (first, last), (first, last))
    with duckdb.connect(str(path)) as database:
        database.execute(
            'CREATE TABLE buyer AS SELECT replace(name, substr(name, 2), '
            '(99 - substr(name, 2)::INT)::VARCHAR) AS name, age + 1 AS age, '
            "'d' || colour AS colour FROM user"
        )
        database.execute('ALTER TABLE post ADD COLUMN buyer VARCHAR')
        database.execute("UPDATE post SET buyer = 'u' || (hash(id + 9) % 99)")
    return path


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """A folder with two appends, the second one empty, and further rows."""
    folder = tmp_path_factory.mktemp('made')
    paths = [
        shop(folder / f'{i}.duckdb', *ends)
        for i, ends in enumerate(((0, 40), (40, 50), (50, 50), (50, 60)))
    ]
    convert_tables(folder / 'graph', paths[0], MANIFEST)
    for path in paths[1:3]:
        append_tables(folder / 'graph', path)
    return folder / 'graph', paths[3]


@pytest.fixture
def copied(made, tmp_path):
    shutil.copytree(made[0], tmp_path / 'graph')
    return tmp_path / 'graph', made[1]


@pytest.mark.parametrize(
    'names',
    [
        ('table-0.keys.parquet', 'table-1.keys.parquet'),
        ('segment-1/table-0.keys.parquet', 'segment-1/table-1.keys.parquet'),
        ('table-2.0.dangling.parquet', 'table-2.1.dangling.parquet'),
    ],
)
def test_exchanged_keys_are_found_by_all_readers(copied, names):
    path, rows = copied
    exchange(*(path / name for name in names))
    match = f'({"|".join(names)}), offset 0: its checksum is wrong'
    folder = TableFolder(path)
    for call in (
        lambda: append_tables(path, rows),
        lambda: compact_tables(path),
        lambda: compact_tables(path, path.parent / 'other'),
    ):
        with pytest.raises(ValueError, match=match):
            call()
    if 'keys' in names[0]:
        with pytest.raises(ValueError, match=match):
            folder.keys_of('user', torch.tensor([0]))
        with pytest.raises(ValueError, match=match):
            folder.rows_of('user', ['u3'])
    exchange(*(path / name for name in names))
    assert append_tables(path, rows).version == 3


@pytest.mark.parametrize(
    'names',
    [
        ('table-0.num.gsf', 'table-1.num.gsf'),
        ('table-0.cat.gsf', 'table-1.cat.gsf'),
        ('segment-1/tables.json', 'segment-2/tables.json'),
    ],
)
def test_exchanged_columns_are_found_when_a_folder_is_opened(copied, names):
    path, _ = copied
    exchange(*(path / name for name in names))
    with pytest.raises(
        ValueError, match=f'({"|".join(names)}).*checksum is wrong|rows of its'
    ):
        TableFolder(path)


def test_a_replaced_key_file_is_found_after_it_was_checked(copied):
    path, _ = copied
    folder = TableFolder(path)
    assert folder.keys_of('user', torch.tensor([0])) == ['u0']
    shutil.copy(path / 'table-1.keys.parquet', path / 'table-0.keys.parquet')
    with pytest.raises(ValueError, match=r'table-0\.keys\.parquet, offset 0'):
        folder.keys_of('user', torch.tensor([0]))


def test_a_folder_of_an_earlier_release_is_read_without_checks(copied):
    """It has no checksums of these files; a compacted one has."""
    path, rows = copied
    for name in ('meta.json', 'segments.json'):
        fields = json.loads((path / name).read_bytes())
        fields.pop('checksum')
        for of in [fields, *fields.get('segments', [])]:
            of.pop('files', None)
        (path / name).write_text(seal(fields))
    for file in path.glob('*/listed'):
        os.unlink(file)
    shutil.copytree(path, path.parent / 'other')
    append_tables(path, rows)
    assert TableFolder(path).keys_of('user', torch.tensor([59])) == ['u59']
    compact_tables(path.parent / 'other')
    exchange(
        *(path.parent / f'other/table-{i}.keys.parquet' for i in range(2))
    )
    with pytest.raises(ValueError, match='its checksum is wrong'):
        append_tables(path.parent / 'other', rows)
