"""The task queue of `sample_hops`, and what is seen of mistakes in its use.

A mistake is planted by changing the text of the kernel or of its queue, and
must be caught under some schedule.
"""

import subprocess
from pathlib import Path

import pytest

from tests.cuda.emulated import CSRC

SOURCE = Path(__file__).with_name('task_queue_test.cpp')
KERNEL = ['node_table', 'order_hops', 'sample_hops', 'task_queue']
ROOM = 1000  # tasks, for every seed
EDGES = 4000
SEEDS = 40

#: The text that is changed, and by what.
MISTAKES = {
    'no barrier after tickets are taken': ('__syncthreads();  // taken', ''),
    'no barrier after tasks are read': (
        'const int found = __syncthreads_count(task != kNoTask);',
        'const int found = __shfl_sync(~0u, 1, 0);',
    ),
    'no barrier after edges are drawn': ('__syncthreads();  // drawn', ''),
    'no barrier after room is made': ('__syncthreads();  // announced', ''),
    'slot read before it is published': (
        'Atomic<uint32_t>(queue.ready[slot]).load(kAcquire) == 0',
        'false',
    ),
    'tickets forgotten when one has a task': (
        'if (__syncthreads_or(shared_.waits[t]) == 0) {',
        '{',
    ),
    'task read twice': (
        '        shared_.waits[t] = false;',
        '        shared_.waits[t] = threadIdx.x == 1;',
    ),
    'same tickets twice': (
        '*first = head.fetch_add(count, kRelaxed);',
        'head.store((*first = head.load(kRelaxed)) + count, kRelaxed);',
    ),
    'lost task': ('publish_task(a_.queue, slot++, own & ~kMade)', '++slot'),
    'early termination': (
        'threadIdx.x == 0 && is_done(a_.queue)',
        'threadIdx.x == 0',
    ),
    'children not counted before their parent ends': (
        'tail.fetch_add((pending << kPendingShift) + made, kRelaxed)',
        '(tail.fetch_sub(uint64_t{retired} << kPendingShift, kRelaxed), '
        'tail.fetch_add((uint64_t{made} << kPendingShift) + made, kRelaxed))',
    ),
    'seeds not counted while a block announces them': (
        'clear_counts(a_.queue, gridDim.x);',
        'clear_counts(a_.queue, 1);',
    ),
    'entry taken twice': (
        'key.compare_exchange_strong(found, node, kRelaxed)',
        '(key.store(node, kRelaxed), true)',
    ),
    'position that depends on the order': (
        'least.fetch_min(value, kRelaxed)',
        'least.store(value, kRelaxed)',
    ),
}

#: Those of a queue that is full.
FULL_MISTAKES = {
    'ticket past the end': ('slot >= queue.capacity ||', ''),
    'lost tasks stay pending': (
        'fetch_sub((uint64_t{made} << kPendingShift) + made,',
        'fetch_sub(made,',
    ),
    'room that is not given back': (
        'fetch_sub((uint64_t{made} << kPendingShift) + made,',
        'fetch_sub((uint64_t{made} << kPendingShift),',
    ),
    'tasks past the end': (
        '*first <= queue.capacity && made <= queue.capacity - *first',
        'true',
    ),
}


def run(program, room=ROOM, edges=EDGES, sanitizer='none'):
    """What went wrong first: a program that reads rubbish may crash."""
    prefix, seeds = [], SEEDS
    if sanitizer == 'thread':
        prefix, seeds = ['setarch', '-R'], 3
    done = subprocess.run(
        [*prefix, program, '1', str(seeds), str(room), str(edges)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    crash = f'seed ?: signal {-done.returncode}' * (done.returncode < 0)
    return done.stdout + done.stderr + crash


def build_with(builder, folder, old, new, sanitizer='none'):
    """The program with a change in one place of the kernel."""
    paths = [CSRC / 'cuda' / f'{name}.cuh' for name in KERNEL]
    (changed,) = [path for path in paths if old in path.read_text()]
    text = changed.read_text()
    assert text.count(old) == 1
    (folder / 'cuda').mkdir()
    for path in CSRC.iterdir():
        if path.name != 'cuda':
            (folder / path.name).symlink_to(path)
    for path in (CSRC / 'cuda').iterdir():
        if path != changed:
            (folder / 'cuda' / path.name).symlink_to(path)
    (folder / 'cuda' / changed.name).write_text(text.replace(old, new))
    (folder / SOURCE.name).write_text(SOURCE.read_text())
    flags = [f'-I{folder}', '-O0', '-w']
    return builder.program(folder / SOURCE.name, sanitizer, flags)


def test_hops_are_those_of_plain_loops(builder):
    assert run(builder.program(SOURCE, flags=['-O0'])) == 'ok\n'


def test_little_room_is_reported(builder):
    program = builder.program(SOURCE, 'address')
    for room in (1, 5, 60):
        assert 'fault 4' in run(program, room)
    for edges in (0, 50, 200):
        assert 'fault 4' in run(program, edges=edges)


@pytest.mark.parametrize('mistake', MISTAKES)
def test_mistakes_are_caught(builder, tmp_path, mistake):
    report = run(build_with(builder, tmp_path, *MISTAKES[mistake]))
    assert report.startswith('seed ')


@pytest.mark.parametrize('mistake', FULL_MISTAKES)
def test_mistakes_of_a_full_queue_are_caught(builder, tmp_path, mistake):
    program = build_with(builder, tmp_path, *FULL_MISTAKES[mistake], 'address')
    report = run(program, room=5)
    caught = 'heap-buffer-overflow', 'switches', 'more slots are announced'
    assert any(words in report for words in caught)


def test_a_relaxed_publish_is_caught(builder, tmp_path):
    """It harms nobody on this machine: ThreadSanitizer sees it."""
    program = build_with(
        builder, tmp_path, 'store(1, kRelease)', 'store(1, kRelaxed)', 'thread'
    )
    report = run(program, sanitizer='thread')
    assert 'data race' in report
    assert 'read_task' in report
