"""``gsample.explain``: what happened to a program, as text and pictures."""

import html
import re
import sys
import threading
import time
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import torch
from torch.fx import Graph

import torch_gsample as gsample
from tests.compiler.programs import PASS, PROGRAMS, A, X, trace
from torch_gsample import algorithms
from torch_gsample.compiler import CompileError, Explanation, cost, pipeline
from torch_gsample.compiler.explain import _median
from torch_gsample.compiler.explanation import OperatorTime
from torch_gsample.compiler.pipeline import Step, Trace


@pytest.fixture(scope='module')
def fastgcn():
    return gsample.explain(algorithms.fastgcn, A, torch.arange(5), [8])


def test_it_has_the_text_after_each_pass(fastgcn):
    def program(A, seeds):
        return algorithms.fastgcn(A, seeds, [8])

    seeds = torch.arange(5)
    torch._dynamo.decorators.mark_unbacked(seeds, 0)
    expected = trace(program, A, seeds)
    steps = fastgcn.trace.steps
    assert [s.name for s in steps] == [s.name for s in expected.steps]
    text = str(fastgcn)
    places = [text.index(fastgcn.trace.captured)]
    for step in steps:
        places.append(text.index(step.text))
        [item] = [p for p in pipeline.PASSES if p.name == step.name]
        assert f'{step.name} ({item.reason}), ' in text
    assert places == sorted(places)
    assert text.startswith('fastgcn, as captured\n')


def test_operators_are_timed(fastgcn):
    assert fastgcn.once > 0
    assert fastgcn.compiled > 0
    assert fastgcn.eager > 0
    lines = [op.text for op in fastgcn.operators]
    assert any('gsample.sample_nodes(' in line for line in lines)
    assert not any(' = getitem(' in line for line in lines)
    # A call does not contain the work done once for a graph.
    assert not any('positive_weights' in line for line in lines)
    assert all(op.seconds > 0 for op in fastgcn.operators)
    by_name = {op.text.split(' = ')[1][:18]: op for op in fastgcn.operators}
    assert by_name['gsample.slice_rows'].predicted > 0
    assert f'{lines[0]}\n' in str(fastgcn)


def test_operators_are_predicted_as_layouts_are(fastgcn):
    for size in (1 << 10, 1 << 20):
        x = torch.arange(size)
        [op] = gsample.explain(lambda x: (x.neg(),), x).operators
        assert op.text.startswith('%2 = aten.neg(')
        neg = torch.ops.aten.neg.default
        assert op.predicted == cost.predict_operator(neg, [x], [x])
    assert op.predicted > 1e-4
    [key] = [op for op in fastgcn.operators if 'current_program' in op.text][
        :1
    ]
    assert key.predicted == 0


def test_gathers_are_predicted_by_number_of_rows():
    select = torch.ops.aten.index_select.default
    x, few, many = (torch.empty(n) for n in (1 << 24, 8, 1 << 16))
    taken = [
        cost.predict_operator(select, [x, index], [index])
        for index in (few, many)
    ]
    assert taken[0] < 1e-5 < 1e-4 < taken[1] < 1e-3


def test_generators_and_keys_stay(fastgcn):
    before = torch.get_rng_state()
    gsample.explain(PROGRAMS['graphsage'], A, torch.arange(5))
    assert torch.equal(torch.get_rng_state(), before)


def test_modules_and_compiled_functions_are_explained():
    out = gsample.explain(PASS, A, torch.arange(5), [3, 2], X)
    assert out.name == 'PassSampler'
    assert any('aten.matmul' in op.text for op in out.operators)
    fast = gsample.compile(algorithms.ladies, passes=['eliminate_dead'])
    names = [
        s.name
        for s in gsample.explain(fast, A, torch.arange(5), [4]).trace.steps
    ]
    assert names == ['canonicalize', 'eliminate_dead']
    again = gsample.explain(
        fast, A, torch.arange(5), [4], options={'passes': []}
    )
    assert [s.name for s in again.trace.steps] == ['canonicalize']


def test_a_program_that_changes_its_graph_runs_once():
    value = A.values().clone()

    def program(A, seeds):
        A.value.add_(1)
        return A[:, seeds].individual_sample(1)

    out = gsample.explain(program, A.with_value(value), torch.arange(5))
    torch.testing.assert_close(value, A.values() + 1)
    assert (out.operators, out.compiled) == ([], 0)
    assert 'Time' not in str(out)


def test_errors_are_those_of_compile():
    with pytest.raises(CompileError, match='while pair'):
        gsample.explain(algorithms.approximate_ppr, A, torch.arange(3))
    with pytest.raises(TypeError, match="'program' must be a function"):
        gsample.explain(3)
    with pytest.raises(ValueError, match="'options' must be in"):
        gsample.explain(algorithms.ladies, A, options={'x': 1})


@torch._dynamo.allow_in_graph
def unknown(x):
    return x * 2


def test_opaque_operators_are_listed_with_line_and_cost():
    def program(A, seeds, count):
        value = unknown(A.value.exp()) + torch.rand(1)
        count.add_(1)
        return A.with_value(value)[:, seeds].individual_sample(1)

    count = torch.zeros(2)
    out = gsample.explain(program, A, torch.arange(4), count)
    line = program.__code__.co_firstlineno
    assert out.opaque == [
        f'`unknown` at test_explain.py:{line + 1} may change its inputs: '
        '1 operator runs in each call, not once a graph',
        f'`rand` at test_explain.py:{line + 1} draws, or may: it is not '
        'merged, moved or dropped',
        f'`add_.Tensor` at test_explain.py:{line + 2} changes a tensor: '
        'it runs in its place',
    ]
    assert 'Opaque functions\n\n`unknown` at ' in str(out)
    known = gsample.explain(algorithms.ladies, A, torch.arange(4), [4])
    assert known.opaque == []
    assert 'Opaque functions' not in str(known)


# Notes, sources and decisions ##########################################


class Kernel:
    source = 'void f() { a < b && c; }'
    __name__ = 'a * b'

    def __call__(self, x):
        return x


@pytest.fixture
def special():
    """A program with names in other languages."""
    graph = Graph()
    x = graph.placeholder('x')
    y = graph.call_function(Kernel(), (x, '<b>"\\</b>'))
    graph.call_method('add_', (y, 1))
    graph.output((y,))
    for node in graph.nodes:
        node.meta['example_value'] = torch.ones(2)
    steps = [Step('canonicalize', 1e-4, 'a <i> b\n', ('chose <x> & y',))]
    return Explanation('<script>', Trace('x < y\n', steps), graph)


def test_notes_and_sources_are_shown(special):
    text = str(special)
    assert '\n  chose <x> & y\n\na <i> b\n' in text
    assert f'Generated for a * b\n\n{Kernel.source}' in text
    special.compiled, special.choices = 1e-3, 'layout: csr'
    assert 'Chosen by measuring\n\nlayout: csr' in str(special)
    assert 'Time: 1.00 ms' in str(special)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.text = set(), ''

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)

    def handle_data(self, data):
        self.text += data


def test_html_is_escaped(special, tmp_path):
    special.to_html(tmp_path / 'a.html')
    tags = Tags()
    tags.feed((tmp_path / 'a.html').read_text())
    assert not {'i', 'x', 'script', 'b/'} & tags.seen - {'b'}
    for text in ('x < y', 'a <i> b', 'chose <x> & y', Kernel.source):
        assert text in tags.text
        assert html.escape(text, quote=False) in special._repr_html_()


def test_pages_show_source_next_to_operators_and_costs(special, tmp_path):
    special.compiled, special.eager = 1e-3, 4e-3
    first = 'own.py:3: S = A < 2'
    special.operators = [
        OperatorTime('%1 = <f>', 2e-3, 1e-3, first, Kernel.source),
        OperatorTime('%2 = g', 1e-3, 0.0, first),
        OperatorTime('%3 = h', 1e-3, 1e-3),
    ]
    special.to_html(tmp_path / 'a.html')
    page = (tmp_path / 'a.html').read_text()
    assert page.count(html.escape(first)) == 1
    assert '<td rowspan="2">own.py:3' in page
    assert 'made by passes' in page
    assert page.index('own.py:3') < page.index('%1 = &lt;f&gt;')
    table = page[: page.index('<h2>Passes')]
    assert table.count(html.escape(Kernel.source, quote=False)) == 1
    shares = re.findall(r'bar (\w+)" style="width:([\d.]+)%', page)
    assert shares == [
        *[('measured', '25.0'), ('measured', '100.0')],  # of a call
        *[('measured', '100.0'), ('predicted', '50.0'), ('measured', '50.0')],
        *[('measured', '50.0'), ('predicted', '50.0')],
    ]


def test_operators_know_their_line(fastgcn):
    lines = [op.line for op in fastgcn.operators if 'slice' in op.text]
    assert lines
    assert all(re.match(r'fastgcn\.py:\d+: \w', line) for line in lines)


def test_graphviz_labels_are_quoted(special):
    lines = special.to_dot().splitlines()
    assert lines[0] == 'digraph {'
    assert lines[-1] == '}'
    [label] = [line for line in lines if '%1 =' in line]
    assert r'<b>\"\\</b>' in label
    [label] = [line for line in lines if 'add_' in line]
    assert label.endswith('color=red];')
    assert '  n0 -> n1;' in lines


def test_values_cached_for_a_graph_are_grey(fastgcn):
    grey = [x for x in fastgcn.to_dot().splitlines() if 'lightgrey' in x]
    assert len(grey) == fastgcn.trace.text.count('\n^')
    assert any('positive_weights' in line for line in grey)


def test_a_plot_is_made_by_graphviz(fastgcn, monkeypatch):
    package = SimpleNamespace(Source=lambda text: ('source', text))
    monkeypatch.setitem(sys.modules, 'graphviz', package)
    assert fastgcn.plot() == ('source', fastgcn.to_dot())
    monkeypatch.setitem(sys.modules, 'graphviz', None)
    with pytest.raises(ImportError, match="'graphviz' is missing"):
        fastgcn.plot()


# Dumps #######################################################################


def test_dumps_have_the_same(special, tmp_path):
    special.write(tmp_path)
    special.write(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        f'{number}{rest}'
        for number in ('000', '001')
        for rest in (
            *('_00_captured.txt', '_01_canonicalize.txt'),
            *('_kernel_00.cpp', '_program.dot', '_program.html'),
        )
    ]
    assert (tmp_path / '000_01_canonicalize.txt').read_text() == (
        '# canonicalize (first: the other passes match one form), 100.0 us\n'
        '# chose <x> & y\na <i> b\n'
    )
    assert (tmp_path / '000_kernel_00.cpp').read_text() == Kernel.source


def test_dumps_of_several_writers_do_not_mix(special, tmp_path):
    threads = [
        threading.Thread(target=special.write, args=[tmp_path])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(tmp_path.glob('*_00_captured.txt'))) == 8
    assert len(list(tmp_path.glob('*.html'))) == 8


def test_the_variable_of_the_environment_dumps(tmp_path, monkeypatch):
    monkeypatch.setenv('GSAMPLE_DUMP', str(tmp_path))
    fast = gsample.compile(algorithms.ladies)
    fast(A, torch.arange(4), [4])
    assert 'gsample.slice_cols' in (tmp_path / '000_program.dot').read_text()


def test_calls_in_which_choices_are_measured_do_not_count():
    calls = []

    def call():
        calls.append(None)
        time.sleep(0.05 if len(calls) <= 8 else 0)

    assert _median(call) < 0.05
