"""The emulator of csrc/emu runs kernels, and reports each mistake."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name('emulator_test.cpp')

#: The emulator's report on a kernel with a mistake.
REPORTS = {
    'divergent_barrier': 'divergent barrier: reaches __syncthreads',
    'divergent_grid_barrier': 'divergent barrier: reaches grid_barrier',
    'barrier_without_some': 'deadlock: waits forever in ',
    'divergent_collective': 'divergent collective: reaches __ballot_sync',
    'other_collective': 'divergent collective: reaches ',
    'mask_without_caller': '0000ffff does not name the lane that calls it',
    'mask_names_who_left': 'ffffffff',
    'mask_names_nobody': 'its mask ffffffff names lane 16, which has left',
    'overlapping_masks': 'leaves, while others wait for it in __ballot_sync',
    'shuffle_from_outside': 'reads lane 20, which its mask 0000ffff does not',
    'livelock': 'livelock: still runs after',
    'waits_for_unstarted': 'livelock: still runs after',
    'barrier_of_plain_launch': 'in a launch that is not cooperative',
    'too_many_blocks': '4 blocks of 64 threads are not all resident',
    'large_shared': '50000 bytes of shared memory, more than 49152',
    'two_shared': '1028 and 1024 bytes: a kernel has one struct',
}


def run(program, case, seed, sanitizer='none'):
    # ThreadSanitizer needs a fixed layout of memory.
    prefix = ['setarch', '-R'] if sanitizer == 'thread' else []
    return subprocess.run(
        [*prefix, program, case, str(seed)],
        capture_output=True,
        text=True,
        timeout=60,
        env={'ASAN_OPTIONS': 'detect_leaks=0'},
    )


@pytest.fixture(scope='module')
def program(builder):
    return builder.program(SOURCE)


def warp_sum(block_threads, thread):
    """The sum of `block_threads - 1 - t` over the warp of a thread."""
    first = thread // 32 * 32
    return sum(block_threads - 1 - t for t in range(first, first + 32))


def expected():
    """What every thread of the kernel `right` writes, with 3 blocks of 64."""
    for t in [*range(64)] * 3:
        lane, group = t % 32, t % 32 // 3
        half = range(t // 16 * 16, t // 16 * 16 + 16)
        yield [
            warp_sum(64, t),
            sum(i % 3 == 0 for i in half),
            3 if group < 10 else 2,
            t - 1 if lane % 8 else t,
            t + 1 if lane % 8 < 7 else t,
            t - lane % 8,
            1,
            32,
            64 * 32 * 3,
        ]


@pytest.mark.parametrize('seed', range(10))
def test_barriers_and_collectives_follow_cuda(program, seed):
    out = run(program, 'right', seed).stdout
    want = [number for row in expected() for number in row]
    assert list(map(int, out.split())) == want


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('case', REPORTS)
def test_mistakes_are_reported_with_their_place(program, case, seed):
    out = run(program, case, seed).stdout
    assert out.startswith(f'kernel {case}')
    assert REPORTS[case] in out


def test_the_report_names_block_thread_and_line(program):
    out = run(program, 'divergent_barrier', 1).stdout
    line = (
        SOURCE.read_text()
        .splitlines()
        .index('__global__ void divergent_barrier(uint32_t*, uint32_t*) {')
    )
    assert f'emulator_test.cpp:{line + 3}' in out
    assert f'emulator_test.cpp:{line + 5}' in out
    assert 'block (' in out
    assert 'thread (' in out


def test_threads_may_leave_before_a_barrier(program):
    """As CUDA: barriers count the threads that are left."""
    assert set(run(program, 'early_exit', 1).stdout.split()) == {'0'}


def test_shared_memory_begins_as_rubbish(program):
    out = run(program, 'poison', 1).stdout.split()
    assert out[:4] == [str(0xCDCDCDCD)] * 4


def test_a_seed_decides_the_order(program):
    reports = [run(program, 'divergent_barrier', s).stdout for s in range(8)]
    again = [run(program, 'divergent_barrier', s).stdout for s in range(8)]
    assert reports == again
    assert len(set(reports)) > 1


@pytest.mark.parametrize(
    'case', ['race', 'relaxed_publish', 'shuffle_orders_nothing']
)
def test_data_races_are_found_by_thread_sanitizer(builder, case):
    program = builder.program(SOURCE, 'thread')
    done = run(program, case, 1, 'thread')
    assert 'WARNING: ThreadSanitizer: data race' in done.stderr
    assert case in done.stderr


@pytest.mark.parametrize('case', ['right', 'early_exit', 'livelock'])
def test_thread_sanitizer_is_silent_where_cuda_orders(builder, case):
    done = run(builder.program(SOURCE, 'thread'), case, 1, 'thread')
    assert (done.returncode, done.stderr) == (0, '')


def test_address_sanitizer_watches_shared_memory(builder):
    program = builder.program(SOURCE, 'address')
    assert 'heap-buffer-overflow' in run(program, 'beyond_shared', 1).stderr
    done = run(program, 'right', 1)
    assert (done.returncode, done.stderr) == (0, '')
