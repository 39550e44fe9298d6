"""What compilation does when something goes wrong."""

import pytest
import torch

from tests.compiler.programs import PROGRAMS, compiled, graph, seeds, tensors
from torch_gsample.compiler import pipeline
from torch_gsample.compiler.options import Options
from torch_gsample.rng import make_key, program_scope

A = graph()


def broken(kind):
    def rewrite(g):
        if kind == 'raises':
            raise KeyError('broken')
        nodes = [n for n in g.nodes if n.op == 'call_function']
        nodes[0].append(nodes[-1])  # after its users

    return pipeline.Pass('broken', rewrite, 'a test')


@pytest.mark.parametrize('kind', ['raises', 'wrong order'])
def test_a_pass_that_fails_is_named_and_left_out(monkeypatch, kind):
    passes = (pipeline.PASSES[0], broken(kind))
    monkeypatch.setattr(pipeline, 'PASSES', passes)
    fast = compiled(PROGRAMS['ladies'], strict=False)
    with (
        program_scope(make_key(1)),
        pytest.warns(UserWarning, match="pass 'broken'.* as it was captured"),
    ):
        out = fast(A, seeds(4))
    with program_scope(make_key(1)):
        expected = PROGRAMS['ladies'](A, seeds(4))
    for a, b in zip(tensors(out), tensors(expected), strict=True):
        assert torch.equal(a, b)
    fast = compiled(PROGRAMS['ladies'], strict=True)
    with pytest.raises(Exception, match="pass 'broken'"):
        fast(A, seeds(4))


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        ({'pass': []}, ValueError, r"'options' must be of .* \(got 'pass'\)"),
        ({'passes': ['x']}, ValueError, r"'passes' must be of .* \(got 'x'\)"),
        ({'strict': 3}, TypeError, "'strict' has the wrong type"),
        ({'dump': 3}, TypeError, "'dump' has the wrong type"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        Options.read(options)


def test_programs_are_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv('GSAMPLE_DUMP', str(tmp_path / 'a'))
    compiled(PROGRAMS['graphsage'])(A, seeds(4))
    compiled(PROGRAMS['ladies'], dump=str(tmp_path / 'b'))(A, seeds(4))
    names = sorted(path.name for path in (tmp_path / 'a').iterdir())
    assert names[0] == '000_00_captured.txt'
    assert '000_01_canonicalize.txt' in names
    assert any('fuse_extract_select' in name for name in names)
    assert len(list((tmp_path / 'b').glob('*_captured.txt'))) == 1


def test_data_dependent_branches_are_an_error_of_dynamo():
    def program(A, seeds):
        part = A[:, seeds]
        return part if part.num_edges > 30 else part.individual_sample(1)

    with pytest.raises(Exception, match='data-dependent'):
        compiled(program)(A, seeds(4))
