"""Tables on disk are those of memory, and rows are appended to them."""

import copy
import fcntl
import json
import os
import shutil

import duckdb
import pytest
import torch
from torch_geometric.sampler import NodeSamplerInput

from tests.relational import shops
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader
from torch_gsample.relational import (
    TableFolder,
    append_tables,
    convert_tables,
    from_tables,
)
from torch_gsample.relational.append import _no_rows
from torch_gsample.storage import (
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.format import seal

MISSING = 'missing'
MANIFEST = {
    'tables': {
        'user': {'key': 'name'},
        'post': {
            'key': ['id', 'board'],
            'time': 't',
            'foreign_keys': [
                {'columns': 'who', 'table': 'user'},
                {'columns': ['up', 'board'], 'table': 'post'},
            ],
        },
    }
}
ROWS = {
    'user': "SELECT 'u' || i AS name, i % 7 AS age, 'c' || (i % 5) AS colour",
    'post': 'SELECT i AS id, i % 2 AS board, hash(i) % 90 AS t, '
    "'u' || (hash(i + 1) % 70) AS who, (i - hash(i + 2) % 40)::BIGINT AS up, "
    "i / 4 AS size, DATE '2024-01-01' + i::INT AS day, "
    "'k' || (i // 60) AS kind",
}


def forum(path, users, posts):
    """Users and posts of two ranges, as a database."""
    with duckdb.connect(str(path)) as database:
        for (table, query), (first, last) in zip(
            ROWS.items(), (users, posts), strict=True
        ):
            database.execute(
                f'CREATE TABLE {table} AS {query} FROM '
                f'range({first}, {last}) AS r(i)'
            )
    return path


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """All rows as one database, and as a folder written at once."""
    folder = tmp_path_factory.mktemp('whole')
    path = forum(folder / 'all.duckdb', (0, 60), (0, 300))
    convert_tables(
        folder / 'graph', path, MANIFEST, memory_limit='256MiB',
        chunk_bytes=4096,
    )  # fmt: skip
    return path, TableFolder(folder / 'graph')


@pytest.fixture(scope='module')
def base(tmp_path_factory):
    """The first users and posts, and the others in two parts."""
    folder = tmp_path_factory.mktemp('base')
    parts = [
        ((0, 60), (0, 200)),
        ((60, 60), (200, 260)),
        ((60, 60), (260, 300)),
    ]
    paths = [
        forum(folder / f'{i}.duckdb', *part) for i, part in enumerate(parts)
    ]
    convert_tables(folder / 'graph', paths[0], MANIFEST)
    return folder / 'graph', paths[1:]


@pytest.fixture
def grown(base, tmp_path):
    """A copy of the first rows, and the other parts."""
    shutil.copytree(base[0], tmp_path / 'graph')
    return tmp_path / 'graph', base[1]


SAMPLERS = [
    {'disjoint': True},
    {'disjoint': True, 'temporal_strategy': 'last'},
    {'replace': True},
    {'time': False},
]


def samples(sampler, timed):
    """Some samples, as lists."""
    out = []
    for table, count in (('user', 60), ('post', 200), ('post', None)):
        count = count or sampler.graph.counts['post']
        seed = torch.arange(0, count, 3)
        time = torch.full_like(seed, 50) if timed else None
        got = sampler.sample_from_nodes(
            NodeSamplerInput(None, seed, time, table)
        )
        ids = sampler.edge_permutation or {}
        edge = {
            t: e if ids.get(t) is None else ids[t][e]
            for t, e in got.edge.items()
        }
        for part in (got.node, got.row, got.col, edge):
            out.append({k: v.tolist() for k, v in part.items()})
    return out


def disk_samples(graph, **options):
    timed = options.pop('time', True)
    options |= {'disjoint': timed, 'use_times': timed, 'seed': 3}
    return samples(RandomReadSampler(graph, [3, 4], **options), timed)


def test_a_folder_has_the_graph_rows_and_keys_of_memory(whole):
    path, folder = whole
    tables = from_tables(path, MANIFEST)
    assert folder.report == tables.report
    assert folder.report['post.up_board']['dangling'] > 20
    assert (folder.schema, folder.time_kind) == (tables.schema, 'integer')
    for name, want in tables.values.items():
        got = folder.values[name]
        assert got.categories == want.categories
        for kind in ('num', 'cat', 'stamp'):
            assert getattr(got, f'{kind}_names') == getattr(
                want, f'{kind}_names'
            )
            assert torch.equal(getattr(got, kind)[:], getattr(want, kind))
    rows = torch.tensor([9, 0, 299])
    keys = folder.keys_of('post', rows)
    assert keys == tables.keys_of('post', rows) == [(9, 1), (0, 0), (299, 1)]
    assert folder.rows_of('post', [*keys, (9, 0)]).tolist() == [9, 0, 299, -1]
    for options in SAMPLERS[:-1]:  # without times, its columns are unsorted
        sampler = NeighborSampler(
            tables.data, [3, 4], seed=3, time_attr='time',
            **(options | {'disjoint': True}),
        )  # fmt: skip
        assert samples(sampler, True) == disk_samples(folder.graph, **options)
    folder.graph.verify()


def test_appended_rows_are_those_of_a_folder_written_at_once(whole, grown):
    want, (path, parts) = whole[1], grown
    old = TableFolder(path)
    before = disk_samples(old.graph)
    for number, part in enumerate(parts, 1):
        assert append_tables(path, part).version == number
    # Who opened the folder before sees what there was.
    assert disk_samples(old.graph) == before
    assert old.num_rows('post') == 200
    got = TableFolder(path)
    assert got.graph.num_nodes == want.graph.num_nodes
    assert got.graph.num_edges == want.graph.num_edges
    assert got.report == want.report
    for name, values in want.values.items():
        for kind in ('num', 'cat', 'stamp'):
            assert torch.equal(
                getattr(got.values[name], kind)[:], getattr(values, kind)[:]
            )
    assert got.values['post'].categories == {
        'kind': ['k0', 'k1', 'k2', 'k3', 'k4']
    }
    assert torch.equal(got.times['post'], want.times['post'])
    assert got.rows_of('post', [(299, 1), (1, 1)]).tolist() == [299, 1]
    for options in SAMPLERS:
        assert disk_samples(got.graph, **options) == disk_samples(
            want.graph, **options
        )


def test_a_key_that_dangled_gets_its_edge_with_its_row(tmp_path):
    first = forum(tmp_path / 'a.duckdb', (0, 20), (0, 100))
    later = forum(tmp_path / 'b.duckdb', (20, 60), (100, 100))
    both = forum(tmp_path / 'c.duckdb', (0, 60), (0, 100))
    convert_tables(tmp_path / 'graph', first, MANIFEST)
    got = append_tables(tmp_path / 'graph', later)
    want = convert_tables(tmp_path / 'want', both, MANIFEST)
    for key in ('edges', 'null', 'dangling'):
        assert got.report['post.who'][key] == want.report['post.who'][key]
    seed = NodeSamplerInput(None, torch.arange(60), None, 'user')
    edges = []
    for folder in (got, want):
        sampler = RandomReadSampler(folder.graph, [-1], use_times=False)
        out = sampler.sample_from_nodes(seed)
        t = ('post', 'who', 'user')
        ends = out.node['post'][out.row[t]], out.node['user'][out.col[t]]
        edges.append(sorted(zip(*(e.tolist() for e in ends), strict=True)))
    assert edges[0] == edges[1]
    assert len(edges[0]) == want.report['post.who']['edges']


def test_loaders_read_appended_rows(grown):
    path, parts = grown
    folder = append_tables(path, parts[0])
    loader = NeighborLoader(
        folder.data,
        input_nodes=('user', torch.arange(60)),
        input_time=torch.full((60,), 60),
        sampler=RandomReadSampler(folder.graph, [-1], seed=0, disjoint=True),
        batch_size=20,
    )
    seen = 0
    for batch in loader:
        post = batch['post']
        assert (post.time <= 60).all()
        assert torch.equal(post.num, folder.values['post'].num[post.n_id])
        seen += int((post.n_id >= 200).sum())
    assert seen > 0


WRONG = {
    'a key of another type': (
        "ALTER TABLE post ALTER who TYPE INTEGER USING 3",
        TypeError, "column 'who' of table 'post' must have the type VARCHAR",
    ),
    'a further column': (
        'ALTER TABLE post ADD COLUMN more INTEGER',
        ValueError, "column 'more' of table 'post' must exist in the folder",
    ),
    'a column less': (
        'ALTER TABLE post DROP COLUMN size',
        ValueError, "table 'post' has no column 'size'",
    ),
    'a further table': (
        'CREATE TABLE shelf (id INTEGER)',
        ValueError, "table 'shelf' must exist in the folder",
    ),
    'a known key': (
        "INSERT INTO user VALUES ('u7', 1, 'c1')",
        ValueError, r"must be unique \(got \['u7'\] in rows 7 and 60\)",
    ),
    'a null key': (
        "INSERT INTO user VALUES (NULL, 1, 'c1')",
        ValueError, r'must not be null \(it is in 1 rows, first in row 60\)',
    ),
}  # fmt: skip


def test_wrong_rows_leave_the_folder_as_it_was(grown, tmp_path):
    path, parts = grown
    files = sorted(os.listdir(path))
    for number, (query, error, match) in enumerate(WRONG.values()):
        new = shutil.copy(parts[0], tmp_path / f'{number}.duckdb')
        with duckdb.connect(str(new)) as database:
            database.execute(query)
        with pytest.raises(error, match=match):
            append_tables(path, new)
    with pytest.raises(ValueError, match='must refer to rows'):
        append_tables(path, parts[0], dangling='error')
    assert sorted(os.listdir(path)) == files
    assert TableFolder(path).version == 0


def killed_append(path, part, where):
    """Appends in a process that dies where it calls a function."""
    child = os.fork()
    if child == 0:
        setattr(os, where, lambda *_: os._exit(9))
        append_tables(path, part)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_crash_leaves_all_of_an_append_or_nothing(grown):
    """Before files are synced, the folder is named, it is published."""
    path, parts = grown
    files = sorted(os.listdir(path))
    for where in ('fsync', 'rename', 'replace'):
        killed_append(path, parts[0], where)
        assert TableFolder(path).version == 0
    assert len(os.listdir(path)) > len(files)
    # Remains of the crashes do no harm, and are removed.
    assert append_tables(path, parts[0]).num_rows('post') == 260
    want = sorted([*files, 'segment-1', 'segments.json'])
    assert sorted(os.listdir(path)) == want


def test_one_process_appends_at_a_time(grown):
    path, parts = grown
    lock = os.open(path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(BlockingIOError, match='another process appends to'):
        append_tables(path, parts[0])
    os.close(lock)
    assert append_tables(path, parts[0]).version == 1


def test_damage_is_named(grown):
    path, parts = grown
    append_tables(path, parts[0])
    segment = path / 'segment-1'
    for file in (
        path / 'segments.json', path / 'tables.json', segment / 'tables.json',
        segment / 'edges-0.bin', segment / 'time-1.bin',
        segment / 'table-1.num.gsf',
    ):  # fmt: skip
        data = file.read_bytes()
        if file == path / 'tables.json':
            continue  # that of the last segment is read
        for wrong in (data[: len(data) // 2], data[:-9] + b'x' + data[-8:]):
            file.write_bytes(wrong)
            with pytest.raises(ValueError, match=file.name):
                TableFolder(path)
        file.write_bytes(data)
    assert TableFolder(path).version == 1


def test_who_does_not_read_segments_refuses_them(grown):
    path, parts = grown
    graph = append_tables(path, parts[0]).graph
    for call in (
        lambda: StreamingSampler(graph, [2]),
        lambda: graph.matrices(),
        lambda: graph.write_rows(),
    ):
        with pytest.raises(ValueError, match='must have no appended segments'):
            call()


def test_a_folder_is_whole_or_not_there(tmp_path):
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    for options, error, match in (
        ({'memory_limit': 1 << 20}, ValueError, "'memory_limit' must be at"),
        ({'dangling': 'error'}, ValueError, 'buy.who must refer to rows'),
        ({'dangling': 'drop'}, ValueError, "'dangling' must be 'report' or"),
    ):
        with pytest.raises(error, match=match):
            convert_tables(tmp_path / 'g', path, shops.MANIFEST, **options)
        assert os.listdir(tmp_path) == ['shop.duckdb']
    folder = convert_tables(tmp_path / 'g', path, shops.MANIFEST)
    assert folder.report['buy.who']['example'] == {'row': 4, 'value': ['dan']}
    with pytest.raises(FileExistsError, match="'path' must not exist"):
        convert_tables(tmp_path / 'g', path, shops.MANIFEST)
    with pytest.raises(IndexError, match=r"'rows' .*\(got 3 to 3\)"):
        folder.keys_of('user', torch.tensor([3]))


def test_descriptions_that_lie_are_refused(base, tmp_path):
    shutil.copytree(base[0], tmp_path / 'graph')
    path = tmp_path / 'graph' / 'tables.json'
    whole = json.loads(path.read_text())
    whole.pop('checksum')
    for table, field, value, match in (
        ('post', 'rows', 199, 'must have the rows of its graph'),
        ('post', 'rows', -1, 'no negative number of rows'),
        ('post', 'key', 'id', 'must have .* of the right types'),
        ('post', 'key', ['ids', 'board'], "has no column 'ids'"),
        ('post', 'names', {'num': []}, 'must have .* of the right types'),
        ('user', 'categories', {}, "must have 'categories' of"),
        ('user', 'columns', {'name': 3}, 'of the right types'),
        ('user', 'names', {'num': [], 'cat': ['colour'] * 2, 'stamp': []},
         'must have rows of'),
        (None, 'report', [], "must have a 'report' and a 'time_kind'"),
        (None, 'time_kind', 'lunar', "must have a 'report' and a 'time_kind'"),
        (None, 'version', 2, "must have 'tables' of version 1"),
        (None, 'time_kind', MISSING, "must have a 'report' and a 'time_kind'"),
        ('post', 'time', MISSING, "must have a 'time' and"),
        (None, 'report', {}, r"must have the counts \('rows', 'null_times'\)"),
        (None, 'report', {'user': {'rows': 60, 'null_times': -1}},
         r"of 'user' \(got {'rows': 60, 'null_times': -1}\)"),
        (None, 'report', {t: {'rows': 1, 'null_times': 0} for t in ROWS},
         r"counts \('edges', 'null', 'dangling'\) of 'post.who' \(got None"),
    ):  # fmt: skip
        fields = copy.deepcopy(whole)
        of = fields['tables'][table] if table else fields
        of[field] = value
        if value is MISSING:
            del of[field]
        path.write_text(seal(fields))
        with pytest.raises(ValueError, match=match):
            TableFolder(path.parent)
    path.write_text(seal(whole))
    assert TableFolder(path.parent).num_rows('post') == 200
    # Types of columns are of a file: they are no SQL.
    kind = "INTEGER AS x FROM read_text('/etc/hostname'); --"
    assert kind not in _no_rows({'a': kind, 'b': 'DECIMAL(18,3)'})
    assert 'DECIMAL(18,3)' in _no_rows({'b': 'DECIMAL(18,3)'})
