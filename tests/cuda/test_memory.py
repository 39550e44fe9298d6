"""Errors of a GPU without free memory, and memory after a failed call."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tests.cuda.simulated import OnSimulated
from tests.cuda.test_flat_memory import assert_flat
from tests.ops.test_device import CALLS, CSRC, Operands

LACK = re.compile(
    r"out of memory on the device for ('\w+'|up to \d+ edges and \d+ "
    r"(nodes|columns), about \d+ MiB, at '\w+') \((\d+) elements, (\d+) "
    r'bytes, after (\d+) bytes that this call asked for\)'
)


@pytest.fixture
def simulated(emulated):
    yield OnSimulated(emulated)
    emulated.allow_allocations(-1)


def failing(emulated, call, number):
    """The error of a call whose allocation of a number fails, or None."""
    emulated.allow_allocations(number)
    try:
        call()
    except RuntimeError as error:
        return error
    finally:
        emulated.allow_allocations(-1)


@pytest.mark.parametrize('name', CALLS)
def test_every_allocation_of_an_operator_may_fail(name, simulated, emulated):
    """The error names the operator, the purpose and the size."""
    op = name.split(', ')[0].split()[0]
    with simulated.running():
        call = partial(CALLS[name], Operands(simulated.put))
        want = simulated.get(tree_leaves(call()))
        asked = -1
        for number in itertools.count():
            error = failing(emulated, call, number)
            if error is None:
                break
            # No front is in the way of this one.
            assert op == 'check_csc' or type(error) is torch.OutOfMemoryError
            text = str(error).splitlines()[0]
            assert text.startswith(f'{op}: ')
            _, _, elements, size, before = LACK.search(text).groups()
            assert int(size) in (4 * int(elements), 8 * int(elements)) or (
                "'sort'" in text and int(size) == 16 * int(elements)
            )
            assert int(before) >= asked
            asked = int(before)
        assert number > 0
        assert asked > 0 or number == 1
        again = simulated.get(tree_leaves(call()))
    assert all(map(torch.equal, again, want))


@pytest.mark.parametrize(
    ('fault', 'free_bytes', 'said'),
    [
        (
            'an illegal memory access was encountered',
            0,
            'CUDA says: an illegal memory access was encountered',
        ),
        ('', 2**40, f'CUDA reports no fault, and {2**40} bytes are free: '),
    ],
    ids=['of-the-device', 'unknown'],
)
def test_a_fault_is_not_called_a_lack_of_memory(
    simulated, emulated, fault, free_bytes, said
):
    """Torch before 2.13 tells an operator only that it failed."""

    def fail():
        with simulated.running():
            call = partial(CALLS['slice_cols'], Operands(simulated.put))
            emulated.allow_allocations(1, fault, free_bytes)
            with pytest.raises(RuntimeError) as raised:
                call()
            emulated.allow_allocations(1, '', free_bytes=100)
            with pytest.raises(torch.OutOfMemoryError):
                call()
        return raised

    # From 2.13 on, torch keeps the text of a thread's last error: a new thread
    # has none of an earlier test.
    with ThreadPoolExecutor(1) as thread:
        raised = thread.submit(fail).result()
    assert type(raised.value) is RuntimeError
    text = str(raised.value).splitlines()[0]
    assert text.startswith('slice_cols: no memory was allocated for ')
    assert said in text


@pytest.mark.parametrize('name', ['sample_neighbors', 'sample_layers'])
@pytest.mark.parametrize('last', [False, True])
def test_calls_that_fail_leave_nothing(name, last, simulated, emulated):
    with simulated.running():
        call = partial(CALLS[name], Operands(simulated.put))
        number = 0
        while last and failing(emulated, call, number + 1) is not None:
            number += 1
        emulated.configure(1, 1, 32, 0)

        def fail(_):
            assert failing(emulated, call, number) is not None

        for i in range(100):
            fail(i)
        assert_flat(emulated, fail, 200)


def test_operators_allocate_in_one_place():
    """So that none of them has an error of its own for a lack of memory."""
    allocates = re.compile(r'new_(empty|zeros)|stable::(empty|clone)|aten::')
    for path in (CSRC / 'bind').glob('*_cuda.*'):
        if path.stem not in ('device_memory_cuda', 'aten_cuda'):
            assert not allocates.search(path.read_text()), path
