"""Candidates of a program are measured, and the faster ones kept."""

import threading

import torch

from torch_gsample.compiler import cost
from torch_gsample.compiler.ir import aten, choose
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.lowering import lower


def two_ways():
    """A program of one site: 60 operators, or none."""
    g = torch.fx.Graph()
    x = slow = g.placeholder('x')
    for _ in range(60):
        slow = g.call_function(aten.neg.default, (slow,))
    both = g.call_function(choose, ('it',), {'slow': slow, 'fast': x})
    g.output((g.call_function(aten.add.Tensor, (both, 1)),))
    return torch.fx.GraphModule(torch.nn.Module(), g)


def test_the_faster_candidate_is_kept():
    module = two_ways()
    assert set(cost.sites(module.graph)) == {'it'}
    fast = lower(module)
    x = torch.rand(1 << 16)
    for _ in range(8):
        assert torch.equal(fast(x)[0], x + 1)
    best, seconds = fast.decisions['it']
    assert best == 'fast'
    assert seconds['slow'] > seconds['fast'] == 0
    assert 'neg' not in ir_text(module.graph)
    assert fast.report().startswith('it: fast, measured slow ')


def test_processes_that_must_agree_run_the_written_layout():
    program = lower(two_ways())
    x = torch.rand(1000)
    with cost.layouts_as_written():
        first = program(x)
    for _ in range(cost._CALLS + 1):
        program(x)
    assert program.decisions['it'][0] == 'fast'
    calls = []
    program._function = calls.append
    with cost.layouts_as_written():
        for y, known in zip(program(x), first, strict=True):
            assert torch.equal(y, known)
    assert not calls
    program(x)
    assert calls


def test_threads_measure_together():
    fast, x = lower(two_ways()), torch.rand(1 << 10)
    wrong = []

    def work():
        for _ in range(20):
            if not torch.equal(fast(x)[0], x + 1):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert fast.decisions['it'][0] == 'fast'


def test_written_layout_stays_without_a_gain(monkeypatch):
    monkeypatch.setattr(cost, '_GAIN', -1.0)
    fast = lower(two_ways())
    for _ in range(8):
        fast(torch.rand(4))
    assert fast.decisions['it'][0] == 'slow'


def test_costs_are_predicted_by_elements():
    g = torch.fx.Graph()
    x = g.placeholder('x')
    x.meta['example_value'] = torch.zeros(1 << 20)
    costs = []
    for begin in (0, 1 << 19):
        part = g.call_function(aten.slice.Tensor, (x, 0, begin, 1 << 20))
        part.meta['example_value'] = torch.zeros((1 << 20) - begin)
        negative = g.call_function(aten.neg.default, (part,))
        negative.meta['example_value'] = part.meta['example_value']
        costs.append(cost.predict(g, {negative}))
    assert 1.9 < costs[0] / costs[1] < 2.1
    negative.meta['invariant'] = True
    assert cost.predict(g, {negative}) == 0
