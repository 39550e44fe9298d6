"""The program is fused after the choice of layouts."""

import pytest
import torch

from tests.compiler.programs import A, tensors
from torch_gsample import algorithms
from torch_gsample.compiler import settle as settling
from torch_gsample.compiler.backend import optimize
from torch_gsample.compiler.cost import sites
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.rng import make_key, program_scope

SEEDS = torch.arange(5)


@pytest.fixture(scope='module')
def captured():
    """What Dynamo captures of LADIES, and the inputs of a call."""
    found = []

    def keep(gm, example_inputs):
        def run(*inputs):
            found.append((gm, inputs))
            return gm.forward(*inputs)

        return run

    with program_scope(make_key(0)):
        torch.compile(
            lambda A, s: tensors(algorithms.ladies(A, s, [4, 4])),
            backend=keep,
            fullgraph=True,
        )(A, SEEDS)
    return found[0]


def settled(captured, layout, **options):
    """The program with one layout chosen, and its text before."""
    program, _ = optimize(captured[0], Options(**options))
    picks = {k: v for k in sites(program.graph) for v in [layout]}
    before = ir_text(program.graph)
    settling.settle(program, picks)
    return program, before


def run(program, inputs):
    with program_scope(make_key(1)):
        return lower(program)(*inputs)


def same(captured, *programs):
    first, *others = (run(p, captured[1]) for p in programs)
    for other in others:
        for a, b in zip(first, other, strict=True):
            if isinstance(a, torch.Tensor) and a.is_floating_point():
                torch.testing.assert_close(a, b, rtol=1e-12, atol=0)
            elif isinstance(a, torch.Tensor):
                assert torch.equal(a, b)


@pytest.mark.parametrize('layout', ['full', 'compact'])
def test_values_that_two_layouts_read_are_not_stored_for_one(captured, layout):
    program, before = settled(captured, layout)
    text = ir_text(program.graph)
    assert 'choose' in before
    assert 'choose' not in text
    assert 'aten.index_add' in before
    assert 'aten.index_add' not in text
    assert text.count('edge_map_reduce[sum(pow(x0, 2.0)) by x1]') == 2
    plain, _ = optimize(captured[0], Options(passes=()))
    same(captured, program, plain)


def test_passes_that_were_left_out_stay_out(captured):
    passes = tuple(p.name for p in PASSES if p.name != 'fuse_edge_map_reduce')
    program, _ = settled(captured, 'compact', passes=passes)
    assert 'aten.index_add' in ir_text(program.graph)
    assert 'edge_map_reduce' not in ir_text(program.graph)


def test_failing_pass_leaves_the_chosen_layout(captured, monkeypatch):
    def fail(graph, names):
        graph.erase_node(graph.output_node())
        raise RuntimeError('nothing is fused')

    monkeypatch.setattr(settling, 'run_again', fail)
    with pytest.warns(UserWarning, match='nothing is fused'):
        program, _ = settled(captured, 'compact')
    assert 'aten.index_add' in ir_text(program.graph)
    plain, _ = optimize(captured[0], Options(passes=()))
    same(captured, program, plain)
