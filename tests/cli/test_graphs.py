"""Graphs on disk, converted, shown and verified."""

import json
import re

import duckdb
import pytest
import torch
from torch_geometric.sampler import NodeSamplerInput

from tests.relational import shops
from tests.storage import disk
from torch_gsample import cli
from torch_gsample.relational import from_tables
from torch_gsample.storage import (
    ChunkedGraph,
    FeatureFile,
    RandomReadSampler,
)


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / 'edges.csv'
    rows = [f'{i % 7},{i % 5}' for i in range(100)]
    path.write_text('\n'.join(['src,dst', *rows]) + '\n')
    return path


def test_files_are_converted_shown_and_verified(edges, tmp_path, capsys):
    graph = str(tmp_path / 'g')
    options = ['--memory', '64MiB', '--chunk', '300', '--num-nodes', '9']
    assert cli.main(['convert', str(edges), graph, *options]) == 0
    assert ChunkedGraph(graph).num_edges == {None: 100}
    assert cli.main(['info', graph]) == 0
    out = capsys.readouterr().out
    assert 'num_nodes=9, num_edges=100' in out
    assert 'arrays: neighbor of 4 bytes, edge_id of 4 bytes' in out
    # Five nodes have 20 edges each, and four have none.
    assert re.search(r'^ +16-31 +5$', out, re.MULTILINE)
    assert re.search(r'^ +0 +4$', out, re.MULTILINE)
    assert len(re.findall(r'^ +\d+( +\d+){5}$', out, re.MULTILINE)) == len(
        ChunkedGraph(graph).meta.relations[0].chunks
    )
    assert cli.main(['verify', graph]) == 0
    assert capsys.readouterr().out.endswith('is whole\n')


def test_columns_have_names(edges, tmp_path):
    graph = str(tmp_path / 'g')
    names = ['--columns', 'dst,src', '--weight', 'src', '--time', 'dst']
    assert cli.main(['convert', str(edges), graph, *names]) == 0
    widths = ChunkedGraph(graph).meta.relations[0].widths
    assert (widths['weight'], widths['time']) == (8, 8)
    assert ChunkedGraph(graph).num_nodes == {None: 7}


def test_facts_are_json(edges, tmp_path, capsys):
    graph = str(tmp_path / 'g')
    options = ['--memory', '64MiB', '--chunk', '300', '--json']
    assert cli.main(['convert', str(edges), graph, *options]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made['num_nodes'] == {'': 7}
    assert made['num_edges'] == {'': 100}
    assert cli.main(['info', graph, '--json']) == 0
    [relation] = json.loads(capsys.readouterr().out)['relations']
    assert relation['in_degrees'] == [[0, 0, 2], [16, 31, 5]]
    assert sum(chunk['edges'] for chunk in relation['chunks']) == 100
    assert cli.main(['verify', graph, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {'whole': True, 'problem': None}


def test_feature_files_are_verified(tmp_path, capsys):
    path = tmp_path / 'x.gsf'
    FeatureFile.write(path, torch.rand(9, 4))
    assert cli.main(['verify', str(path)]) == 0
    assert capsys.readouterr().out.endswith('is whole\n')
    data = bytearray(path.read_bytes())
    data[4100] ^= 255
    path.write_bytes(data)
    assert cli.main(['verify', str(path)]) == 1
    assert 'x.gsf' in capsys.readouterr().err
    assert cli.main(['info', str(path)]) == 2
    assert 'gsample verify checks feature files' in capsys.readouterr().err


def test_errors_have_the_names_of_options(edges, tmp_path, capsys):
    args = ['convert', str(edges), str(tmp_path / 'g')]
    for option, names in (
        (['--memory', '1KiB'], ['--memory', '--chunk']),
        (['--chunk', '1'], ['--chunk']),
        (['--num-nodes', '-1'], ['--num-nodes']),
    ):
        assert cli.main([*args, *option]) == 2
        error = capsys.readouterr().err
        assert all(name in error for name in names)
        assert "'" not in error


def test_a_damaged_graph_is_found_out(edges, tmp_path, capsys):
    graph = tmp_path / 'g'
    assert cli.main(['convert', str(edges), str(graph)]) == 0
    path = graph / ChunkedGraph(graph).meta.relations[0].file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    capsys.readouterr()
    assert cli.main(['verify', str(graph)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ''
    assert captured.err.startswith('gsample: ')
    assert path.name in captured.err
    assert cli.main(['verify', str(graph), '--json']) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found['whole']
    assert path.name in found['problem']


def test_a_graph_that_is_not_there_is_named(tmp_path, capsys):
    assert cli.main(['verify', str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith('gsample: ')
    assert 'meta.json' in error


@pytest.mark.parametrize(
    'argument', ['--memory=2XB', '--chunk=x', '--columns=a', '--columns=a,b,c']
)
def test_wrong_arguments_are_named(argument, capsys):
    with pytest.raises(SystemExit):
        cli.main(['convert', 'e.csv', 'g', argument])
    name = argument.split('=')[0]
    assert f'argument {name}: must be ' in capsys.readouterr().err


def test_an_old_graph_is_written_again_in_directories(edges, tmp_path, capsys):
    old, graph = str(tmp_path / 'old'), str(tmp_path / 'g')
    options = ['--memory', '64MiB', '--chunk', '300']
    assert cli.main(['convert', str(edges), old, *options]) == 0
    disk.make_first(old)
    assert cli.main(['info', old]) == 0
    assert 'format: version 1\n' in capsys.readouterr().out
    stripes = [str(tmp_path / 'a'), str(tmp_path / 'b')]
    directories = [f'--stripe={stripe}' for stripe in stripes]
    assert cli.main(['convert', old, graph, *options, *directories]) == 0
    assert cli.main(['info', graph]) == 0
    out = capsys.readouterr().out
    assert 'format: version 2\n' in out
    assert ''.join(f'directory: {stripe}\n' for stripe in stripes) in out
    assert ChunkedGraph(graph).num_edges == {None: 100}
    assert cli.main(['verify', graph]) == 0


def test_options_of_edge_files_are_not_those_of_a_graph(
    edges, tmp_path, capsys
):
    old, graph = str(tmp_path / 'old'), str(tmp_path / 'g')
    assert cli.main(['convert', str(edges), old]) == 0
    assert cli.main(['convert', old, graph, '--num-nodes', '9']) == 2
    assert '--num-nodes is for edge files' in capsys.readouterr().err


def test_tables_are_converted_with_their_times(tmp_path, capsys):
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    manifest = tmp_path / 'manifest.json'
    manifest.write_text(json.dumps(shops.MANIFEST))
    graph = str(tmp_path / 'g')
    args = ['convert', str(path), graph, '--tables', str(manifest)]
    assert cli.main(args) == 0
    out = capsys.readouterr().out
    assert 'buy.who: 1 null, 2 dangling' in out
    shop = from_tables(path, shops.MANIFEST).data
    on_disk = ChunkedGraph(graph)
    for t, store in shop.edge_items():
        assert on_disk.num_edges[t] == store.edge_index.shape[1]
    assert torch.equal(on_disk.node_times()['buy'], shop['buy'].time)
    sampler = RandomReadSampler(on_disk, [-1], seed=0)
    time = int(shop['buy'].time.sort().values[5])
    inputs = NodeSamplerInput(
        None, torch.arange(3), torch.full((3,), time), 'user'
    )
    seen = sampler.sample_from_nodes(inputs).node['buy']
    edge, _ = shop['buy', 'who', 'user'].edge_index
    assert (
        sorted(seen.tolist()) == edge[shop['buy'].time[edge] <= time].tolist()
    )
    rows = shops.as_duckdb(tmp_path / 'new.duckdb')
    with duckdb.connect(str(rows)) as database:
        database.execute('DROP TABLE item; DROP TABLE user')
        database.execute("DELETE FROM buy WHERE id <> 'b3'")
        database.execute("UPDATE buy SET id = 'b99'")
    assert cli.main(['convert', str(rows), graph, '--append']) == 0
    assert ChunkedGraph(graph).num_nodes['buy'] == 13
    assert cli.main(['convert', str(rows), graph, '--append']) == 2
    assert "got ['b99'] in rows 12 and 13" in capsys.readouterr().err
    assert cli.main([*args[:2], f'{graph}2', '--tables', '--time', 't']) == 2
    assert 'excludes options of edge files' in capsys.readouterr().err
