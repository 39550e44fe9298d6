"""Later calls compare guards and run what was compiled, without Dynamo."""

import threading
import weakref

import pytest
import torch
from torch._C._dynamo.eval_frame import set_eval_frame
from torch._dynamo.types import ConvertFrameReturn

import torch_gsample as gsample
from tests.compiler.programs import A, graph, tensors
from torch_gsample.rng import make_key, program_scope

SEEDS = torch.arange(5)


def hop(A, seeds, k=2, *, times=1.0):
    S = A[:, seeds].individual_sample(k)
    return S.mul(torch.full((A.num_rows,), times, dtype=torch.float64), dim=1)


def run(program, *args, **kwargs):
    with program_scope(make_key(3)):
        return tensors(program(*args, **kwargs))


def same(program, fast, *args, **kwargs):
    return all(
        map(
            torch.equal,
            run(program, *args, **kwargs),
            run(fast, *args, **kwargs),
        )
    )


def found(fast, *args, **kwargs):
    """Whether a call runs without Dynamo."""
    [direct] = fast._functions.values()
    return direct.find(args, kwargs) is not None


@pytest.fixture(scope='module')
def fast():
    return gsample.compile(hop)


@pytest.fixture(autouse=True)
def _compiled(fast):
    assert same(hop, fast, A, SEEDS)  # the tests before may have reset Dynamo


@pytest.mark.parametrize(
    ('args', 'kwargs'),
    [
        ((A, SEEDS), {}),
        ((A, SEEDS[:0]), {}),
        ((A, torch.arange(30)), {}),
        ((A, SEEDS, 2), {}),
        ((A,), {'seeds': SEEDS}),
        ((A, SEEDS), {'times': 1.0, 'k': 2}),
    ],
)
def test_calls_that_were_compiled_run_without_dynamo(fast, args, kwargs):
    assert found(fast, *args, **kwargs)
    assert same(hop, fast, *args, **kwargs)


@pytest.mark.parametrize(
    ('args', 'kwargs'),
    [
        ((A, SEEDS, 3), {}),
        ((A, SEEDS), {'times': 2.0}),
        ((graph(torch.float32), SEEDS), {}),
        ((A, SEEDS.to(torch.int32)), {}),
        ((A[:30, :30], SEEDS), {}),
    ],
)
def test_calls_of_another_kind_are_compiled_first(fast, args, kwargs):
    own = gsample.compile(hop)
    run(own, A, SEEDS)
    assert not found(own, *args, **kwargs)
    assert same(hop, own, *args, **kwargs)
    assert found(own, *args, **kwargs)
    assert found(own, A, SEEDS)


@pytest.mark.parametrize(
    ('args', 'kwargs'),
    [
        ((A,), {}),
        ((A, SEEDS, 2, 1.0), {}),
        ((A, SEEDS), {'seeds': SEEDS}),
        ((A, SEEDS), {'other': 1}),
    ],
)
def test_calls_with_other_arguments_are_errors_of_python(fast, args, kwargs):
    with pytest.raises(TypeError):
        fast(*args, **kwargs)


def test_programs_dropped_by_dynamo_are_recompiled(fast):
    assert found(fast, A, SEEDS)
    [direct] = fast._functions.values()
    code = weakref.ref(direct.find((A, SEEDS), {}).__code__)
    torch._dynamo.reset()
    assert code() is None
    assert not found(fast, A, SEEDS)
    assert same(hop, fast, A, SEEDS)
    assert found(fast, A, SEEDS)


def test_functions_that_a_program_calls_are_compared():
    def scaled_by(text):
        return eval(f'lambda S: S.mul(torch.tensor({text}).double())')

    def program(A, seeds):
        return scale(A[:, seeds])

    scale = scaled_by('2.0')
    fast = gsample.compile(program)
    run(fast, A, SEEDS)
    assert found(fast, A, SEEDS)
    scale = None  # the next one may be where it was
    scale = scaled_by('3.0')
    assert not found(fast, A, SEEDS)
    assert same(program, fast, A, SEEDS)


def test_variables_of_a_closure_may_change():
    k = 2

    def program(A, seeds):
        return A[:, seeds].individual_sample(k)

    fast = gsample.compile(program)
    for k in (2, 3, 2):  # noqa: B007
        assert same(program, fast, A, SEEDS)
        assert found(fast, A, SEEDS)


def test_modules_run_without_dynamo_and_see_their_parameters():
    class Scaled(torch.nn.Linear):
        def forward(self, A, seeds, times=1):
            return A[:, seeds].mul(self.weight[0, 0].double() * times)

    module = Scaled(1, 1)
    fast = gsample.compile(module)
    run(fast, A, SEEDS, times=2)
    assert found(fast, A, SEEDS, times=2)
    assert not found(fast, A, SEEDS)
    with torch.no_grad():
        module.weight.mul_(3)
    assert same(module, fast, A, SEEDS, times=2)


def test_a_stance_of_torch_holds(fast):
    with torch.compiler.set_stance('force_eager'):
        assert not found(fast, A, SEEDS)
        assert same(hop, fast, A, SEEDS)
    assert found(fast, A, SEEDS)


def test_modes_of_functions_are_compared(fast):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    with Mode():
        assert not found(fast, A, SEEDS)


def test_whoever_looks_at_frames_sees_these_calls(fast):
    seen = []

    def look(*_):
        callback = set_eval_frame(None)
        try:
            seen.append(found(fast, A, SEEDS))
        finally:
            set_eval_frame(callback)

    prior = set_eval_frame(lambda *_: ConvertFrameReturn())
    try:
        seen.append(found(fast, A, SEEDS))
    finally:
        set_eval_frame(prior)
    look()
    assert seen == [False, True]


def test_threads_share_compiled_programs(fast):
    wrong, calls = [], []

    def work():
        for size in range(12):
            calls.append(found(fast, A, torch.arange(size)))
            if not same(hop, fast, A, torch.arange(size)):
                wrong.append(size)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(calls)
