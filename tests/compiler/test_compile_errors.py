"""What ``gsample.compile`` says about programs that it cannot compile."""

import threading
from pathlib import Path

import pytest
import torch

import torch_gsample as gsample
from tests.compiler.programs import A
from tests.compiler.test_compile import assert_same, run, two_hops
from torch_gsample import SparseSample, algorithms
from torch_gsample.compiler import CompileError, pipeline


def branch(A, seeds):
    part = A[:, seeds]
    if part.num_edges > 30:  # here
        return part
    return part.individual_sample(1)


def branch_on_values(A, seeds):
    if seeds.sum() > 3:  # here
        return A[:, seeds]
    return A


def loop_over_values(A, seeds):
    return [A[:, torch.tensor([i])] for i in seeds.tolist()]  # here


def prints(A, seeds):
    print(seeds)  # here
    return A[:, seeds]


def draws_a_number(A, seeds):
    import random

    return A[:, seeds].individual_sample(random.randint(1, 3))  # here


def calls(A, seeds):
    with threading.Lock():  # here
        return A[:, seeds]


def pushes(A, seeds):
    return algorithms.approximate_ppr(A, seeds)  # here


@pytest.mark.parametrize(
    ('arguments', 'match'),
    [
        ((torch.tensor([0, 1]), A), 'called with the graph first'),
        (
            (A.to_dense()[:2].long(), torch.tensor([0])),
            'must be a SparseSample',
        ),
    ],
)
def test_tensors_in_the_place_of_the_graph_are_named(arguments, match):
    with pytest.raises(CompileError, match=match):
        gsample.compile(two_hops)(*arguments)


MASKS, PRINTS = 'Write masks', 'Return the values'
REFUSED = [
    (branch, 'branches or loops on values', MASKS),
    (branch_on_values, 'branches or loops on values', MASKS),
    (loop_over_values, 'branches or loops on values', MASKS),
    (pushes, 'branches or loops on values', MASKS),
    (prints, 'it prints', PRINTS),
    (draws_a_number, 'a Python number', 'Pass it as an argument'),
    (calls, 'without a torch operator', 'Call it outside'),
]


def line_of(program):
    code = program.__code__
    with open(code.co_filename) as file:
        lines = file.read().splitlines()
    for number in range(code.co_firstlineno, len(lines)):
        if lines[number - 1].endswith('# here'):
            return f'{code.co_filename}:{number}, in {program.__name__}'
    raise AssertionError


@pytest.mark.parametrize(('program', 'reason', 'advice'), REFUSED)
@pytest.mark.filterwarnings('ignore:Dynamo does not know how to trace')
def test_errors_name_the_line_and_the_fix(program, reason, advice):
    fast = gsample.compile(program)
    with pytest.raises(CompileError) as caught:
        fast(A, torch.arange(5))
    text = str(caught.value)
    assert f"'{program.__name__}' cannot be captured" in text
    assert reason in text
    assert line_of(program) in text
    assert advice in text
    if program is pushes:
        assert 'in approximate_ppr: while pair.numel() > 0' in text
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize('program', [branch, pushes])
def test_a_program_may_run_uncompiled_with_a_warning(program, recwarn):
    fast, seeds = gsample.compile(program, fullgraph=False), torch.arange(5)
    for _ in range(2):
        assert_same(run(fast, A, seeds), run(program, A, seeds))
    [warning] = [w for w in recwarn if 'runs uncompiled' in str(w.message)]
    assert line_of(program) in str(warning.message)
    # That of the call.
    assert Path(warning.filename).parent == Path(__file__).parent


def of_fanouts(A, seeds, fanouts):
    return two_hops(A, seeds, fanouts)


def of_dtype(A, seeds, x):
    return A.with_value(x)[:, seeds].individual_sample(2)


def of_graph(A, seeds, graph):
    return graph[:, seeds].individual_sample(2), graph.degree(0)


def graphs():
    """Graphs with columns or rows, and with values of some dtypes or none."""
    plain = SparseSample.from_edge_index(torch.stack(A.coo()), num_nodes=40)
    ones = torch.ones(A.num_edges)
    values = [ones.to(dtype) for dtype in DTYPES[:4]]
    out = [plain, *[plain.with_value(value) for value in values]]
    return [*out, *[graph.T for graph in out]]


DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    torch.bool,
]
KINDS = {
    of_fanouts: [[k, 2] for k in range(1, 11)],
    of_dtype: [torch.ones(A.num_edges).to(dtype) for dtype in DTYPES],
    of_graph: graphs(),
}


#: To compile up to the limit takes long: it is smaller than by default.
FEW = torch._dynamo.config.patch(recompile_limit=3)


@pytest.mark.parametrize('program', KINDS, ids=lambda p: p.__name__)
@FEW
def test_programs_beyond_the_recompile_limit_run_uncompiled(
    program, compilations, recwarn
):
    fast, seeds = gsample.compile(program), torch.arange(5)
    for kind in KINDS[program] * 2:
        args = A, seeds, kind
        assert_same(run(fast, *args), run(program, *args))
    assert len(compilations) == torch._dynamo.config.recompile_limit == 3
    [warning] = [w for w in recwarn if 'kinds of arguments' in str(w.message)]
    assert Path(warning.filename).parent == Path(__file__).parent
    assert f"'{program.__name__}' was compiled" in str(warning.message)
    assert 'run uncompiled' in str(warning.message)


@FEW
def test_compiled_kinds_are_used_beyond_the_recompile_limit():
    def program(A, seeds, k):
        return A[:, seeds].individual_sample(k), torch.compiler.is_compiling()

    fast, seeds = gsample.compile(program), torch.arange(5)
    with pytest.warns(UserWarning, match='kinds of arguments'):
        made = [fast(A, seeds, k)[1] for k in range(1, 11)]
    again = [fast(A, seeds, k)[1] for k in range(1, 11)]
    assert made == again == [True] * 3 + [False] * 7


@FEW
def test_another_mode_has_a_limit_of_its_own(compilations, recwarn):
    fast, seeds = gsample.compile(of_fanouts), torch.arange(5)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            for fanouts in KINDS[of_fanouts]:
                fast(A, seeds, fanouts)
    assert len(compilations) == 2 * 3
    kinds = [w for w in recwarn if 'kinds of arguments' in str(w.message)]
    assert len(kinds) == 1


@torch._dynamo.config.patch(
    recompile_limit=1, fail_on_recompile_limit_hit=True
)
def test_a_limit_that_is_to_fail_is_an_error():
    fast, seeds = gsample.compile(of_fanouts), torch.arange(5)
    fast(A, seeds, [1, 2])
    with pytest.raises(CompileError, match='too many kinds of arguments'):
        fast(A, seeds, [2, 2])


def test_errors_of_the_program_are_its_own():
    def program(A, seeds):
        return A[:, seeds].individual_sample(-3)

    with pytest.raises(ValueError, match="'k' must be -1"):
        gsample.compile(program)(A, torch.arange(5))
    for make in (gsample.compile, plain):
        with pytest.raises(
            IndexError, match=r"^sample_layers: 'seeds' must b"
        ):
            make(two_hops)(A, torch.tensor([3, 99]))
    for wrong in ([3, 99], [-1]):
        with pytest.raises(IndexError, match=r"^slice_rows: 'rows' must"):
            gsample.compile(lambda A, rows: A[rows, :])(A, torch.tensor(wrong))


def plain(program):
    return torch.compile(program, backend='gsample')


def by_value(A, seeds, weight):
    S = A.with_value(weight)[:, seeds]
    return S.individual_sample(2, S)


def by_changed_value(A, seeds, weight):
    S = A.with_value(weight)[:, seeds]
    return S.individual_sample(2, S * seeds.numel())


def by_one(A, seeds, weight):
    S = A.with_value(weight)[:, seeds]
    return S.individual_sample(1, S * seeds.numel())


def by_row(A, seeds, weight):
    S = A.with_value(weight)[:, seeds]
    return S.collective_sample(2, S.sum(dim=1))


@pytest.mark.parametrize(
    'program', [by_value, by_changed_value, by_one, by_row]
)
def test_no_weight_may_be_negative_or_infinite(program):
    function, seeds = gsample.compile(program), torch.arange(20)
    function(A, seeds, torch.ones(A.num_edges))
    for wrong in (-99.0, float('nan'), float('inf')):
        weight = torch.ones(A.num_edges)
        weight[A.coo()[1] == 8] = wrong
        with pytest.raises(ValueError, match='finite and not negative'):
            function(A, seeds, weight)


def test_a_pass_that_fails_is_named(monkeypatch):
    def rewrite(graph):
        raise KeyError('x')

    broken = pipeline.Pass('broken', rewrite, 'a test')
    monkeypatch.setattr(pipeline, 'PASSES', (pipeline.PASSES[0], broken))
    with pytest.raises(Exception, match="pass 'broken'"):
        gsample.compile(two_hops, strict=True)(A, torch.arange(5))


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="'program' must be a function"):
        gsample.compile(3)
    with pytest.raises(
        ValueError, match=r"'options' must be in .*\(got 'x'\)"
    ):
        gsample.compile(two_hops, x=3)
    with pytest.raises(TypeError, match="'strict' has the wrong type"):
        gsample.compile(strict=3)(two_hops)
