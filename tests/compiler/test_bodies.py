"""Bodies of loops and branches are rewritten as programs are."""

import copy

import pytest
import torch

import torch_gsample as gsample
from tests.compiler.golden import text
from tests.compiler.programs import A, seeds, tensors
from torch_gsample.compiler import pipeline
from torch_gsample.compiler.bodies import bodies
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.pipeline import PassError, run_pipeline
from torch_gsample.rng import make_key, program_scope


def goes_on(step, _):
    return step < 3


def repeat(goes_on, step, state):
    while goes_on(*state):
        state = step(*state)
    return state


def normalized(A, seeds, repeat):
    """Draws by the results of a loop."""
    sub = A[:, seeds]

    def step(number, value):
        now = sub.with_value(value + 1)
        return number + 1, (now.div(now.sum(dim=0), dim=0) * 2).values()

    weight = repeat(goes_on, step, (torch.tensor(0), sub.values()))[1]
    return sub.individual_sample(2, weight)


def exponential(A, seeds, repeat):
    sub = A[:, seeds]

    def step(number, value):
        return number + 1, torch.exp(value * -0.5) * 3 + 1

    weight = repeat(goes_on, step, (torch.tensor(0), sub.values()))[1]
    return sub.individual_sample(2, weight)


def rewritten(program, matrix=A, **options):
    """The text of the body of a loop after all passes."""
    torch._dynamo.reset()
    found = []

    def look(gm, example_inputs):
        copied = copy.deepcopy(gm)
        run_pipeline(copied, **options)
        found.extend(ir_text(b.graph) for b in bodies(copied))
        return gm.forward

    torch.compile(program, backend=look, fullgraph=True)(
        matrix, seeds(5), torch.while_loop
    )
    [_, body] = found
    return body


def test_edge_work_of_a_body_is_fused():
    out = rewritten(normalized, strict=True)
    assert out[out.index('%6') :] == text("""
        %6 = aten.add.Tensor(child_4, 1): float64[?]
        %7 = aten.add.Tensor(child_3, 1): int64[]
        %8 = edge_map_reduce[sum(x0) by col](%6, indptr_body_fn): float64[?]
        %9 = edge_map[(x0 / x2[col]) * 2.0](%6, indptr_body_fn, %8): float64[?]
        return (%7, %9)
    """)


def test_passes_of_bodies_are_those_of_the_program():
    out = rewritten(normalized, passes=['fuse_edge_map'])
    assert 'edge_map[' in out
    assert 'edge_map_reduce' not in out


@pytest.mark.parametrize('program', [normalized, exponential])
def test_samples_are_those_of_eager_code(program):
    made = gsample.compile(program), gsample.compile(program, passes=[])
    for size in (5, 0, 1, 12):
        args, outs = (A, torch.arange(size) * 7 % 40), []
        for function, loop in (
            (program, repeat),
            *((f, torch.while_loop) for f in made),
        ):
            with program_scope(make_key(size)), torch.no_grad():
                outs.append(tensors(function(*args, loop)))
        for other in outs[1:]:
            assert len(outs[0]) == len(other)
            assert all(map(torch.equal, outs[0], other))


def test_results_of_a_body_keep_each_bit():
    """A draw of the program depends on it: `exp` stays torch's."""
    out = rewritten(exponential, strict=True)
    assert out[out.index('%3') :] == text("""
        %3 = aten.add.Tensor(child_3, 1): int64[]
        %4 = aten.mul.Tensor(child_4, -0.5): float64[?]
        %5 = aten.exp(%4): float64[?]
        %6 = edge_map[(x0 * 3.0) + 1.0](%5): float64[?]
        return (%3, %6)
    """)


def test_a_body_that_needs_a_gradient_stays_as_it_is():
    """Torch traces it to differentiate it."""
    value, gradients = A.values(), []
    for program in (exponential, gsample.compile(exponential)):
        leaf = value.clone().requires_grad_()
        loop = repeat if program is exponential else torch.while_loop
        with program_scope(make_key(1)):
            S = program(A.with_value(leaf), seeds(5), loop)
        S.values().sum().backward()
        gradients.append(leaf.grad)
    assert torch.equal(*gradients)
    leaf = value.clone().requires_grad_()
    assert '!exp(' in rewritten(exponential, A.with_value(leaf))


def test_a_body_stays_as_it_is_if_a_pass_fails(monkeypatch):
    run_passes = pipeline.run_passes

    def failing(graph, *args, **kwargs):
        if any('is_decisive' in node.meta for node in graph.nodes):
            run_passes(graph, *args, **kwargs)
            raise PassError('fuse_edge_map', ValueError('broken'))
        return run_passes(graph, *args, **kwargs)

    monkeypatch.setattr(pipeline, 'run_passes', failing)
    with pytest.warns(UserWarning, match="'fuse_edge_map': ValueError: brok"):
        assert 'edge_map' not in rewritten(normalized)
    with pytest.raises(Exception, match='broken'):
        rewritten(normalized, strict=True)
