"""What compilation does when something goes wrong."""

import functools

import pytest
import torch

import torch_gsample as gsample
from tests.compiler.programs import (
    PROGRAMS,
    compiled,
    graph,
    seeds,
    tensors,
    trace,
)
from torch_gsample import algorithms
from torch_gsample.compiler import ir, pipeline
from torch_gsample.compiler.options import Options
from torch_gsample.rng import make_key, program_scope

A = graph()
SELECT = torch.ops.aten.index_select.default
NAMES = [item.name for item in pipeline.PASSES]


def one_layer(A, seeds):
    return algorithms.ladies(A, seeds, [8])


def broken(kind):
    """A pass that fails after it changed the graph."""

    def rewrite(g):
        output = g.output_node()
        if kind == 'raises':
            output.args = ((),)
            raise KeyError('broken')
        if kind == 'fewer results':
            output.args = (output.args[0][:-1],)
            return
        if kind in ('other dtype', 'other rank'):
            *others, last = output.args[0]
            changes = {
                'other dtype': (torch.ops.aten.to.dtype, last, torch.float16),
                'other rank': (torch.ops.aten.unsqueeze.default, last, 0),
            }
            with g.inserting_before(output):
                target, *args = changes[kind]
                output.args = ((*others, ir.call(g, target, tuple(args))),)
            return
        if kind == 'a node of another kind':
            node = g.find_nodes(op='call_function', target=SELECT)[0]
            node.meta['example_value'] = ir.example(node).double()[None]
            return
        nodes = [n for n in g.nodes if n.op == 'call_function']
        nodes[0].append(nodes[-1])  # after its users

    return pipeline.Pass('broken', rewrite, 'a test')


@pytest.fixture(
    params=[
        'raises',
        'wrong order',
        'fewer results',
        'other dtype',
        'other rank',
        'a node of another kind',
    ]
)
def with_broken(request, monkeypatch):
    """The passes, and a broken one among them."""
    first, second, *others = pipeline.PASSES
    passes = (first, second, broken(request.param), *others)
    monkeypatch.setattr(pipeline, 'PASSES', passes)


@pytest.mark.usefixtures('with_broken')
def test_a_pass_that_fails_is_named_and_left_out():
    fast = compiled(one_layer, strict=False)
    message = "pass 'broken': .*: the program is compiled without this pass"
    with (
        program_scope(make_key(1)),
        pytest.warns(UserWarning, match=message),
    ):
        out = fast(A, seeds(4))
    with program_scope(make_key(1)):
        expected = one_layer(A, seeds(4))
    for a, b in zip(tensors(out), tensors(expected), strict=True):
        assert torch.equal(a, b)
    fast = compiled(one_layer, strict=True)
    with pytest.raises(Exception, match="pass 'broken'"):
        fast(A, seeds(4))


@functools.cache
def whole():
    """The way of the program through all passes but a broken one."""
    return trace(one_layer, A, seeds(4), passes=NAMES)


@pytest.mark.usefixtures('with_broken')
def test_other_passes_run_and_explain_shows_the_one_that_failed():
    with pytest.warns(UserWarning, match="pass 'broken'"):
        out = gsample.explain(one_layer, A, torch.arange(4))
    steps = {step.name: step for step in out.trace.steps}
    [note] = steps.pop('broken').notes
    assert note.startswith("left out: pass 'broken': ")
    assert note in str(out)
    expected = whole()
    assert list(steps) == [step.name for step in expected.steps]
    assert out.trace.text == expected.text


@pytest.mark.usefixtures('with_broken')
def test_batches_run_together_without_a_pass_that_fails():
    batched = gsample.super_batch(one_layer, 2)
    with pytest.warns(UserWarning, match="pass 'broken'"):
        out = batched(A, [seeds(4), seeds(3)])
    assert batched.notes[0] == 'several batches run together'
    assert len(out) == 2


def test_without_one_form_a_program_runs_as_it_was_captured(monkeypatch):
    def fail(g):
        raise KeyError('broken')

    first = pipeline.Pass('canonicalize', fail, 'a test')
    monkeypatch.setattr(pipeline, 'canonicalize', fail)
    monkeypatch.setattr(pipeline, 'PASSES', (first, *pipeline.PASSES[1:]))
    fast = compiled(one_layer, strict=False)
    with (
        program_scope(make_key(1)),
        pytest.warns(UserWarning, match="pass 'canonicalize'"),
    ):
        out = fast(A, seeds(4))
    with program_scope(make_key(1)):
        expected = one_layer(A, seeds(4))
    assert all(map(torch.equal, tensors(out), tensors(expected)))


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        ({'pass': []}, ValueError, r"'options' must be in .* \(got 'pass'\)"),
        ({'passes': ['x']}, ValueError, r"'passes' must be in .* \(got 'x'\)"),
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
    compiled(one_layer, dump=str(tmp_path / 'b'))(A, seeds(4))
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
