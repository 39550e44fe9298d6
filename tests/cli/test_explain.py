"""Programs are compiled and shown from the command line."""

import inspect
import json

import pytest
import torch
from torch_geometric.data import Data

from torch_gsample import algorithms, cli
from torch_gsample.cli.explain import programs
from torch_gsample.storage import ChunkedGraph


@pytest.fixture
def graph(tmp_path):
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(50, (2, 400), generator=generator)
    data = Data(edge_index=edge_index, num_nodes=50)
    torch.save(data, tmp_path / 'g.pt')
    return str(tmp_path / 'g.pt')


def test_a_program_is_shown_step_by_step(graph, capsys):
    args = ['explain', 'graphsage', '--graph', graph, '--num-seeds', '4']
    assert cli.main([*args, '--arg', 'fanouts=[3]']) == 0
    text = capsys.readouterr().out
    assert text.startswith('graphsage, as captured\n')
    assert 'canonicalize (' in text
    assert cli.main([*args, '--arg', 'fanouts=[3]', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['program'] == 'graphsage'
    assert found['steps'][0]['name'] == 'canonicalize'
    assert found['steps'][0]['text'] in text
    assert found['seconds']['compiled'] > 0


def test_it_is_a_page(graph, tmp_path, capsys):
    page = tmp_path / 'x.html'
    args = ['explain', 'deepwalk', '--graph', graph, '--html', str(page)]
    assert cli.main(args) == 0
    assert capsys.readouterr().out == f'written to {page}\n'
    assert '<title>deepwalk, compiled</title>' in page.read_text()


def test_a_misspelled_program_has_a_hint(graph, capsys):
    assert cli.main(['explain', 'lades', '--graph', graph]) == 2
    assert "(got 'lades': did you mean 'ladies'?)" in capsys.readouterr().err


def test_programs_of_the_user_are_found(graph, tmp_path, monkeypatch, capsys):
    (tmp_path / 'own_samplers.py').write_text(
        'number = 3\n'
        'def mine(graph, nodes, many):\n'
        '    return graph[:, nodes].individual_sample(many)\n'
    )
    monkeypatch.chdir(tmp_path)
    args = ['explain', 'own_samplers:mine', '--graph', graph]
    assert cli.main([*args, '--arg', 'many=2']) == 0
    assert 'mine, as captured' in capsys.readouterr().out
    assert cli.main(args) == 2
    assert 'needs --arg many=...' in capsys.readouterr().err
    args[1] = 'own_samplers:number'
    assert cli.main(args) == 2
    assert "must have a function 'number'" in capsys.readouterr().err
    args[1] = 'nowhere_at_all:f'
    assert cli.main(args) == 2
    assert 'nowhere_at_all' in capsys.readouterr().err


def test_explain_lists_programs_of_a_graph_and_numbers():
    assert {'graphsage', 'ladies', 'shadow', 'saint_walk'} <= set(programs())
    for name, program in programs().items():
        assert program is getattr(algorithms, name)
        assert 'A' in inspect.signature(program).parameters
    assert 'hgt' not in programs()  # takes a graph of types


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['swallow'], 'must be module:function or one of approximate_ppr, '),
        (['kgcn'], 'needs --arg user=...'),
        (['labor', '--arg', 'x=1'], 'labor takes A, seeds, fanouts'),
        (['labor', '--arg', 'steps=f('], 'must be a number, a string'),
        (['ladies', '--arg', 'fanouts=0'], 'ladies must run with these'),
        (['os:getcwd'], "'getcwd' cannot be captured"),
        (['labor', '--html', 'x.txt'], 'must end with .html'),
        (['labor', '--graph', 'chunks'], 'programs require a graph in memory'),
    ],
)
def test_errors_are_one_line(
    args, message, graph, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    ChunkedGraph.write('chunks', torch.tensor([[0, 1], [1, 0]]))
    default = [] if '--graph' in args else ['--graph', graph]
    assert cli.main(['explain', *args, *default]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count('\n') == 1
