"""Appended rows are merged: the same batches, or the old folder."""

import fcntl
import os
import pickle
import shutil
import signal
import time

import duckdb
import pytest
import torch
from torch_geometric.sampler import NodeSamplerInput

from tests.relational.test_folders import (
    MANIFEST,
    SAMPLERS,
    base,
    disk_samples,
    forum,
    grown,
)
from torch_gsample.cli.command import main
from torch_gsample.loader import NeighborLoader
from torch_gsample.relational import (
    TableFolder,
    append_tables,
    compact,
    compact_tables,
    convert_tables,
)
from torch_gsample.relational.row_files import dangling_file
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
    replaced,
    stored_graph,
)

__all__ = ['base', 'grown']  # fixtures


@pytest.fixture
def appended(grown):
    """A folder with two segments, with small chunks."""
    path, parts = grown
    for part in parts:
        append_tables(path, part)
    return path


def everything(folder, options=SAMPLERS):
    """All that a folder has, as plain values."""
    out = [disk_samples(folder.graph, **own) for own in options]
    for name, values in folder.values.items():
        out += [getattr(values, k)[:].tolist() for k in ('num', 'stamp')]
        out += [values.cat[:].tolist(), values.categories, values.skipped]
        rows = torch.arange(folder.num_rows(name))
        out += [folder.keys_of(name, rows), folder.schema[name]]
        out.append(folder.times.get(name, rows).tolist())
    # NaN is no number that equals itself.
    return str([out, folder.report, folder.version, folder.time_kind])


def test_a_compacted_folder_has_the_batches_of_its_segments(appended):
    want = everything(TableFolder(appended))
    got = compact_tables(appended, chunk_bytes=4096, memory_limit='256MiB')
    assert not got.graph.segments.entries
    assert (got.version, everything(got)) == (2, want)
    assert len(got.graph.meta.relations[0].chunks) > 1
    got.graph.verify()
    assert os.listdir(appended.parent) == ['graph']
    # Now all samplers read the rows.
    options = {'seed': 3, 'disjoint': True}
    one, other = (
        NeighborLoader(
            got.data,
            input_nodes=('user', torch.arange(60)),
            input_time=torch.full((60,), 90),
            sampler=sampler,
            batch_size=30,
        )
        for sampler in (
            StreamingSampler(got.graph, [3, 4], **options),
            RandomReadSampler(got.graph, [3, 4], rng_scope='epoch', **options),
        )
    )
    count = 0
    for batch, same in zip(one, other, strict=True):
        assert torch.equal(batch['post'].n_id, same['post'].n_id)
        count += int((same['post'].n_id >= 200).sum())
    assert count > 0


def test_a_column_in_several_chunks_is_merged_by_time(tmp_path):
    """All posts are by one user; old and new times alternate, and some tie."""

    def posts(name, first, last):
        path = str(tmp_path / name)
        with duckdb.connect(path) as database:
            users = range(int(first == 0))
            database.execute(
                f'CREATE TABLE user AS SELECT 7 AS id FROM range({len(users)})'
            )
            database.execute(
                'CREATE TABLE post AS SELECT i AS id, 7 AS who, '
                f'hash(i) % 500 AS t FROM range({first}, {last}) AS r(i)'
            )
        return path

    manifest = {
        'tables': {
            'user': {'key': 'id'},
            'post': {
                'key': 'id',
                'time': 't',
                'foreign_keys': {'who': 'user'},
            },
        }
    }
    options = {'chunk_bytes': 4096, 'memory_limit': '256MiB'}
    want = convert_tables(
        tmp_path / 'whole', posts('a', 0, 1500), manifest, **options
    )
    convert_tables(tmp_path / 'graph', posts('b', 0, 900), manifest, **options)
    append_tables(tmp_path / 'graph', posts('c', 900, 1500))
    got = compact_tables(tmp_path / 'graph', **options)
    assert len(got.graph.meta.relations[0].chunks) > 5
    for file in ('edges-0.bin', 'edges-1.bin', 'time-1.bin'):
        assert (got.path / file).read_bytes() == (
            want.path / file
        ).read_bytes()


def test_rows_are_appended_to_a_compacted_folder(grown):
    path, parts = grown
    append_tables(path, parts[0])
    assert compact_tables(path).version == 1
    got = append_tables(path, parts[1])
    assert (got.version, len(got.graph.segments.entries)) == (2, 1)
    want = everything(got)
    assert everything(compact_tables(path)) == want
    before = sorted(path.iterdir())
    assert compact_tables(path).version == 2  # nothing to do
    assert sorted(path.iterdir()) == before


def test_keys_that_dangled_have_their_edges_and_ids(tmp_path):
    """Their edges are in early columns, with late ids."""
    convert_tables(
        tmp_path / 'graph',
        forum(tmp_path / 'a.duckdb', (0, 20), (0, 200)),
        MANIFEST,
    )
    old = append_tables(
        tmp_path / 'graph', forum(tmp_path / 'b.duckdb', (20, 60), (200, 200))
    )
    want = everything(old)
    new = compact_tables(tmp_path / 'graph')
    assert everything(new) == want
    file = new.path / dangling_file(1, 0)
    count = duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchall()
    assert count == [(new.report['post.who']['dangling'],)]
    # The last user comes, and gets edges of rows that still dangled.
    later = forum(tmp_path / 'c.duckdb', (60, 70), (200, 200))
    found = append_tables(tmp_path / 'graph', later).report['post.who']
    assert found['dangling'] == 0
    assert found['edges'] == 200


def test_another_folder_and_the_graph_alone(appended, tmp_path):
    old = TableFolder(appended)
    want = everything(old)
    got = compact_tables(
        appended, tmp_path / 'new', directories=[tmp_path / 'second']
    )
    assert everything(got) == everything(TableFolder(appended)) == want
    assert got.graph.meta.directories == [str(tmp_path / 'second')]
    with pytest.raises(ValueError, match="'to' must be given for several"):
        compact_tables(tmp_path / 'new')
    with pytest.raises(FileExistsError, match="'path' must not exist"):
        compact_tables(appended, tmp_path / 'new')
    graph = ChunkedGraph.write(tmp_path / 'graph alone', old.graph)
    assert disk_samples(graph) == disk_samples(old.graph)


def test_open_readers_keep_open_files_and_reject_others(appended):
    opened, late = TableFolder(appended), TableFolder(appended)
    rows = torch.arange(300)
    want = opened.values['post'].num[rows]
    seed = NodeSamplerInput(
        None, torch.arange(60), torch.full((60,), 50), 'user'
    )
    sampler = RandomReadSampler(opened.graph, [3, 4], seed=3, disjoint=True)
    nodes = sampler.sample_from_nodes(seed).node
    unread = RandomReadSampler(late.graph, [3, 4], seed=3, disjoint=True)
    compact_tables(appended)
    # No block is cached: the file that was opened is read.
    again = sampler.sample_from_nodes(seed).node
    assert {k: v.tolist() for k, v in again.items()} == {
        k: v.tolist() for k, v in nodes.items()
    }
    assert torch.equal(opened.values['post'].num[rows], want)
    for read in (
        lambda: unread.sample_from_nodes(seed),
        lambda: RandomReadSampler(late.graph, [3]),
        lambda: opened.keys_of('post', rows),
        lambda: opened.rows_of('post', [(1, 1)]),
        lambda: pickle.loads(pickle.dumps(sampler)).sample_from_nodes(seed),
    ):
        with pytest.raises(RuntimeError, match='was replaced since it was'):
            read()
    with pytest.raises((OSError, ValueError), match=r'gsf|another file'):
        pickle.loads(pickle.dumps(opened.values['post'].num))
    assert torch.equal(TableFolder(appended).values['post'].num[rows], want)


def test_a_reader_that_opens_meanwhile_opens_again(appended, monkeypatch):
    """Between the description of the graph and that of the tables."""
    from torch_gsample.relational import folder as module

    read, calls = module.read_description, []

    def then_compacted(path):
        calls.append(path.name)
        if len(calls) == 1:
            monkeypatch.setattr(module, 'read_description', read)
            compact_tables(appended)
            monkeypatch.setattr(module, 'read_description', then_compacted)
        return read(path)

    monkeypatch.setattr(module, 'read_description', then_compacted)
    got = TableFolder(appended)
    assert calls == ['segment-2', 'graph']
    assert (got.version, got.num_rows('post')) == (2, 300)
    assert disk_samples(got.graph)


def compacting(path):
    """A process that compacts a folder."""
    child = os.fork()
    if child == 0:
        compact_tables(path, chunk_bytes=4096, memory_limit='256MiB')
        os._exit(0)
    return child


def test_a_kill_leaves_the_old_folder_or_the_new_one(appended, tmp_path):
    want = everything(TableFolder(appended), SAMPLERS[:1])
    ends = set()
    for number in range(4):
        path = tmp_path / f'{number}' / 'graph'
        shutil.copytree(appended, path)
        child = compacting(path)
        time.sleep(number * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = TableFolder(path)
        ends.add(len(found.graph.segments.entries))
        assert everything(found, SAMPLERS[:1]) == want
        # Another call ends what was begun, and sweeps the rest.
        found = compact_tables(path)
        assert everything(found, SAMPLERS[:1]) == want
        assert os.listdir(path.parent) == ['graph']
    assert 2 in ends


@pytest.mark.parametrize('where', ['before', 'after'])
def test_a_kill_at_the_exchange_leaves_one_of_both(appended, where):
    want = everything(TableFolder(appended))
    child = os.fork()
    if child == 0:

        def kill(*paths):
            if where == 'after':
                replaced.exchange(*paths)
            os.kill(os.getpid(), signal.SIGKILL)

        compact.exchange = kill
        compact_tables(appended)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert len(os.listdir(appended.parent)) == 2
    found = TableFolder(appended)
    assert len(found.graph.segments.entries) == 2 * (where == 'before')
    assert everything(found) == want
    assert everything(compact_tables(appended)) == want
    assert os.listdir(appended.parent) == ['graph']


def test_one_process_changes_a_folder_at_a_time(appended, monkeypatch):
    lock = os.open(appended, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    match = 'another process appends to .* or compacts it'
    with pytest.raises(BlockingIOError, match=match):
        compact_tables(appended)
    os.close(lock)
    # Nobody changes a folder that was replaced before it was locked.
    flock = fcntl.flock

    def then_replaced(fd, how):
        if os.fstat(fd).st_ino == os.stat(appended).st_ino:
            os.rename(appended, appended.parent / 'old')
            shutil.copytree(appended.parent / 'old', appended)
        flock(fd, how)

    monkeypatch.setattr(fcntl, 'flock', then_replaced)
    with pytest.raises(BlockingIOError, match=match):
        compact_tables(appended)


def test_an_append_that_began_before_is_refused(appended, grown, monkeypatch):
    from torch_gsample.relational import append as module

    class Old(TableFolder):
        def __init__(self, path):
            super().__init__(path)
            compact_tables(path)  # as another process does

    monkeypatch.setattr(module, 'TableFolder', Old)
    with pytest.raises(RuntimeError, match='was replaced since'):
        append_tables(appended, grown[1][0])


def test_keys_that_cannot_be_written_are_an_error_of_the_system(
    appended, monkeypatch
):
    before = everything(TableFolder(appended))
    module = 'torch_gsample.relational.compact'
    monkeypatch.setattr(f'{module}.keys_file', lambda i: f'no/{i}.parquet')
    with pytest.raises(OSError, match=r'^compact_tables: .*no/0\.parquet'):
        compact_tables(appended)
    assert os.listdir(appended.parent) == [appended.name]
    assert everything(TableFolder(appended)) == before


def test_file_systems_without_an_exchange_are_named(appended, monkeypatch):
    def fails(*paths):
        raise OSError(22, 'Invalid argument')

    monkeypatch.setattr(replaced, 'exchange', fails)
    files = sorted(os.listdir(appended))
    with pytest.raises(OSError, match=r"cannot exchange folders .* pass 'to'"):
        compact_tables(appended)
    assert sorted(os.listdir(appended)) == files
    assert os.listdir(appended.parent) == ['graph']


def test_the_command_compacts(appended, capsys):
    want = everything(TableFolder(appended))
    # The process of the tests may have more than a gibibyte.
    arguments = str(appended), '--memory', '16GiB', '--chunk', '1MiB'
    assert main(['compact', *arguments]) == 0
    assert 'num_edges=' in capsys.readouterr().out
    got = TableFolder(appended)
    assert not got.graph.segments.entries
    assert everything(got) == want
    assert main(['compact', str(appended.parent)]) == 2
    assert 'meta.json' in capsys.readouterr().err


def test_times_of_rows_are_read_once_a_folder(appended, monkeypatch):
    """They are in memory: the old ones until the new folder is opened."""
    read, calls = stored_graph.read_times, []

    def counted(folder, *args):
        calls.append(len(os.listdir(folder.parent)))
        return read(folder, *args)

    monkeypatch.setattr(stored_graph, 'read_times', counted)
    timed = len(compact_tables(appended).times)
    assert calls == [1] * 2 * timed


def test_process_limit_includes_resident_memory(appended):
    match = r"at least 6 times 'chunk_bytes' .*, and \d+ that the process has"
    with pytest.raises(ValueError, match=match):
        compact_tables(appended, memory_limit='256MiB', whole_process=True)
    assert len(TableFolder(appended).graph.segments.entries) == 2
