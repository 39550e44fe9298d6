"""Programs that hypothesis writes give compiled what they give in eager code.

Samples and the state of torch's generator bit by bit, values within one ulp,
gradients within 1e-6. Each program is captured once, and runs for several
numbers of seeds, by torch's generator and by the key of a batch.
"""

import os
import time

import pytest
import torch
from hypothesis import (
    HealthCheck,
    Phase,
    assume,
    find,
    given,
    note,
    reject,
    settings,
)

from tests.compiler.captured import Captured
from tests.compiler.generator import PROGRAMS, Program
from tests.compiler.programs import seeds, tensors
from torch_gsample.compiler.ir import is_operator
from torch_gsample.compiler.pipeline import PASSES, Pass
from torch_gsample.rng import make_key, program_scope

NAMES = [item.name for item in PASSES]
#: How many are compared, of the same ones: `make test-programs` has 200, which
#: take a minute where nothing else runs.
COUNT = int(os.environ.get('GSAMPLE_PROGRAMS', '20'))
#: A program that fails is made smaller for at most this many seconds.
SHRINKING = 60
LONG = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def run(function, A, size, scope=False):
    """What a program returns, its gradient, and the state of torch's draws."""
    torch.manual_seed(size)
    A.value.grad = None
    if scope:
        with program_scope(make_key(size)):
            out = tensors(function(A, seeds(size, start=size)))
    else:
        out = tensors(function(A, seeds(size, start=size)))
    state = torch.get_rng_state()
    losses = [
        (t * torch.linspace(1, 2, t.numel(), dtype=t.dtype).view_as(t)).sum()
        for t in out
        if t.requires_grad
    ]
    if losses:
        sum(losses).backward()
    return [t.detach() for t in out], A.value.grad, state


#: Numbers of seeds, and whether the key of a batch is set.
CALLS = (9, False), (9, True), (1, False), (0, True)


def expected(program):
    """What eager code gives for each call, where that is legal."""
    function, A = program.function()
    found = {}
    for call in CALLS:
        try:
            found[call] = run(function, A, *call)
        except (IndexError, ValueError):  # as of probabilities of 0
            continue
    return found


def ulps(first, second):
    """How many float64 lie between the numbers of two tensors, at most."""
    a, b = first.view(torch.int64), second.view(torch.int64)
    equal = (first == second) | (first.isnan() & second.isnan())
    return int(torch.where(equal, 0, (a - b).abs()).max())


def assert_same(found, wanted):
    (out, grad, state), (want, want_grad, want_state) = found, wanted
    assert len(out) == len(want)
    for a, b in zip(out, want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype == torch.float64 and a.numel() > 0:
            assert ulps(a, b) <= 1
        else:
            assert torch.equal(a, b)
    assert (grad is None) == (want_grad is None)
    if grad is not None:
        torch.testing.assert_close(
            grad, want_grad, rtol=1e-6, atol=1e-12, equal_nan=True
        )
    assert torch.equal(state, want_state)


def check(program, rewrites=(None,)):
    """Compares a program, as each list of passes leaves it, with eager code.

    Returns:
        int: The number of runs of eager code, of a legal program.
    """
    want = expected(program)
    function, A = program.function()
    fast = Captured(function)
    for passes in rewrites:
        if passes is not None:
            run(fast, A, 9)  # captures
            fast.rewrite(passes=passes)
        for call, wanted in want.items():
            assert_same(run(fast, A, *call), wanted)
    return len(want)


def check_programs(count, test):
    """Writes programs until one fails, and makes that smaller for a while."""
    failed = {}  # when, by their source

    @settings(LONG, max_examples=count)
    @given(PROGRAMS)
    def run_test(program):
        source = repr(program)
        note(source)
        start = next(iter(failed.values()), time.monotonic())
        is_late = time.monotonic() > start + SHRINKING
        if is_late and source not in failed:
            reject()
        try:
            runs = test(program)
        except Exception:
            failed.setdefault(source, time.monotonic())
            raise
        assume(runs)

    run_test()


@pytest.mark.timeout(1800)
def test_compiled_programs_are_eager_ones():
    check_programs(COUNT, check)


def test_each_pass_removed_alone_changes_nothing():
    rewrites = [[n for n in NAMES if n != name] for name in NAMES[1:]]
    check_programs(12, lambda program: check(program, rewrites))


def test_a_fault_of_a_pass_is_found(monkeypatch):
    def draw_once(graph):
        keys = [n for n in graph.nodes if is_operator(n, 'next_key')]
        for key in keys[1:]:
            key.replace_all_uses_with(keys[0])

    monkeypatch.setattr(
        'torch_gsample.compiler.pipeline.PASSES',
        (*PASSES[:1], Pass('draw_once', draw_once, ''), *PASSES[1:]),
    )
    lines = (
        'M1 = A[:, s].individual_sample(2)',
        'M2 = A[:, s].individual_sample(2)',
    )
    with pytest.raises(AssertionError):
        check(Program(lines, ('M1', 'M2')))


def test_failing_programs_shrink_to_a_few_lines():
    def holds(program):
        source = repr(program)
        return 'collective_sample' in source and '.sum(' in source

    program = find(PROGRAMS, holds, settings=settings(max_examples=500))
    assert len(program.lines) <= 3
