"""Batches of graphs in all formats are the same batch."""

import json
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from torch_gsample import NeighborSampler, cli
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import ChunkedGraph

SAMPLE = ['--fanouts', '3,2', '--seeds', '1,5,2', '--seed', '7']


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(40, (2, 300), generator=generator)
    edge_index[:, 0] = 39  # the largest id is there
    return Data(
        edge_index=edge_index,
        num_nodes=40,
        w=torch.rand(300, generator=generator),
        t=torch.randint(100, (300,), generator=generator),
    )


@pytest.fixture
def paths(data, tmp_path):
    """The same graph in all formats."""
    source, target = data.edge_index
    torch.save(data, tmp_path / 'g.pt')
    columns = {'source': source, 'target': target, 'w': data.w, 't': data.t}
    table = pa.table({k: v.numpy() for k, v in columns.items()})
    pq.write_table(table, tmp_path / 'g.parquet')
    lines = [','.join(map(str, row.values())) for row in table.to_pylist()]
    header = ','.join(table.column_names)
    (tmp_path / 'g.csv').write_text('\n'.join([header, *lines]) + '\n')
    ChunkedGraph.write(tmp_path / 'chunks', data)
    names = 'g.pt', 'g.parquet', 'g.csv', 'chunks'
    return [str(tmp_path / name) for name in names]


def rows_of(path):
    return pq.read_table(path).to_pylist()


def test_every_format_gives_the_same_batch(paths, data, tmp_path, capsys):
    batches, counts = [], []
    for i, path in enumerate(paths):
        out = str(tmp_path / f'{i}.parquet')
        args = ['sample', path, *SAMPLE, '--output', out, '--json']
        assert cli.main(args) == 0
        found = json.loads(capsys.readouterr().out)
        assert found['seeds'] == [1, 5, 2]
        counts.append(found['counts'])
        batches.append(rows_of(out))
    assert all(batch == batches[0] for batch in batches)
    assert all(count == counts[0] for count in counts)
    assert {row['hop'] for row in batches[0]} == {1, 2}
    for row in batches[0]:
        ends = [row['source'], row['target']]
        assert data.edge_index[:, row['edge_id']].tolist() == ends


@pytest.mark.parametrize(
    'options',
    [['--weight', 'w'], ['--time', 't', '--seed-time', '50'], ['--replace']],
)
def test_options_mean_the_same_in_files(paths, options, tmp_path):
    batches = []
    for name, path in zip(('pt', 'parquet'), paths, strict=False):
        out = str(tmp_path / f'{name}.parquet')
        args = ['sample', path, *SAMPLE, *options, '--output', out]
        assert cli.main(args) == 0
        batches.append(rows_of(out))
    assert batches[0] == batches[1]
    assert len(batches[0]) > 0


def test_a_batch_is_written_as_data(paths, data, tmp_path, capsys):
    out = str(tmp_path / 'out.pt')
    assert cli.main(['sample', paths[0], *SAMPLE, '--output', out]) == 0
    printed = capsys.readouterr().out.splitlines()
    batch = torch.load(out, weights_only=False)
    nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
    head = '       type  hop 0  hop 1  hop 2  in all'
    assert printed[0].split() == head.split()
    numbers = [*nodes, sum(nodes)]
    assert printed[1].split() == ['nodes', *map(str, numbers)]
    assert printed[2].split() == ['edges', '0', *map(str, edges)] + [
        str(sum(edges))
    ]
    assert batch.n_id[: batch.batch_size].tolist() == [1, 5, 2]
    # As a loader does it.
    options = {'input_nodes': torch.tensor([1, 5, 2]), 'batch_size': 3}
    [wanted] = NeighborLoader(data, [3, 2], seed=7, **options)
    assert torch.equal(batch.e_id, wanted.e_id)
    assert torch.equal(batch.n_id, wanted.n_id)
    found = batch.n_id[batch.edge_index]
    assert torch.equal(found, data.edge_index[:, batch.e_id])


def test_types_are_kept(tmp_path, capsys):
    data = HeteroData()
    data['a'].num_nodes, data['b'].num_nodes = 3, 2
    data['a', 'to', 'b'].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    path = str(tmp_path / 'g.pt')
    torch.save(data, path)
    for suffix in ('pt', 'parquet'):
        out = str(tmp_path / f'out.{suffix}')
        args = ['sample', path, '--node-type', 'b', '--fanouts', '-1']
        args += ['--seeds', '0', '--output', out]
        assert cli.main(args) == 0
    assert rows_of(out) == [
        {'source': i, 'target': 0, 'edge_id': i, 'hop': 1, 'type': 'a to b'}
        for i in (0, 1)
    ]
    batch = torch.load(tmp_path / 'out.pt', weights_only=False)
    assert batch['a'].n_id.tolist() == [0, 1]
    assert batch['b'].batch_size == 1
    assert cli.main(['sample', path, '--node-type', 'c']) == 2
    assert '--node-type must be one of a, b' in capsys.readouterr().err
    assert cli.main(['sample', path, '--seeds', '1', '--json']) == 0
    assert json.loads(capsys.readouterr().out)['seeds'] == [1]
    assert cli.main(['sample', path, '--seeds', '2']) == 2  # of type b


def test_seeds_are_drawn_by_the_seed(paths, capsys):
    seeds = []
    for seed in (3, 3, 4):
        args = ['sample', paths[0], '--num-seeds', '5', '--json']
        assert cli.main([*args, '--seed', str(seed)]) == 0
        seeds.append(json.loads(capsys.readouterr().out)['seeds'])
    assert seeds[0] == seeds[1] != seeds[2]
    assert all(len(set(found)) == 5 for found in seeds)


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['nowhere.pt'], 'nowhere.pt: no such file'),
        (['x.json'], 'must be a graph on disk, or end with .pt'),
        (['debian', '--columns', 'a,b'], '--columns requires an edge file'),
        (
            ['chunks', '--weight', 'w'],
            '--weight and --time require an edge file',
        ),
        (['g.pt', '--node-type', 'a'], '--node-type must not be given'),
        (['g.pt', '--seeds', '40'], '40'),
        (['g.pt', '--output', 'x.txt'], 'must end with .pt or .parquet'),
        (['g.pt', '--output', 'no/x.pt'], 'the folder does not exist'),
        (['g.pt', '--output', 'x.json/y.pt'], 'is not a folder'),
        (['g.pt', '--output', 'folder.pt'], 'is a folder'),
        (['broken.pt'], "must be PyG's data written by"),
        (['other.pt'], '(got fractions.Fraction)'),
        (['tensor.pt'], 'must hold Data or HeteroData of PyG (got Tensor)'),
    ],
)
def test_errors_are_one_line(
    args, message, paths, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'x.json').touch()
    (tmp_path / 'folder.pt').mkdir()
    (tmp_path / 'broken.pt').write_bytes(b'no pickle')
    torch.save(torch.zeros(2), tmp_path / 'tensor.pt')
    torch.save(Fraction(1, 2), tmp_path / 'other.pt')
    assert cli.main(['sample', *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ''
    assert captured.err.count('\n') == 1
    assert message in captured.err


def test_an_unwritable_folder_is_named_before_the_work(
    paths, tmp_path, monkeypatch, capsys
):
    def refuse(**_):
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr('tempfile.TemporaryFile', refuse)
    monkeypatch.setattr(NeighborSampler, '__init__', None)  # not reached
    out = str(tmp_path / 'x.pt')
    assert cli.main(['sample', paths[0], '--output', out]) == 2
    error = capsys.readouterr().err
    assert f'{tmp_path}: is not writable (Permission denied)' in error


def test_files_run_no_code(tmp_path, capsys):
    class Evil:
        def __reduce__(self):
            return print, ('code of the file ran',)

    torch.save(Evil(), tmp_path / 'evil.pt')
    assert cli.main(['sample', str(tmp_path / 'evil.pt')]) == 2
    assert 'code of the file ran' not in capsys.readouterr().out
