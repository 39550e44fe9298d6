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

RETIRE = """      if (threadIdx.x == 0)
        retire_tasks(a_.queue, count);
"""
PUSH = """      for (int slot = 0; slot < a_.slots(); ++slot) {
        const int64_t edges = draw(-1, slot, count);
        if (slot == 0 || edges > 0)
          push(slot == 0 ? carry(count) : 0, shared_.first_edge, edges);
      }
"""

#: The text that is changed, and by what.
MISTAKES = {
    'no barrier after a claim': ('__syncthreads();  // claimed', ''),
    'no barrier after fetch': (
        '__syncthreads();  // fetched\n      if (count',
        'if (count',
    ),
    'no barrier after edges are drawn': ('__syncthreads();  // drawn', ''),
    'no barrier after room is made': ('__syncthreads();  // announced', ''),
    'slot read before it is published': (
        'while (Atomic<uint32_t>(queue.ready[slot]).load(kAcquire) == 0)',
        'while (false)',
    ),
    'claim past the tail': (
        'head.compare_exchange_strong(from, from + count, kRelaxed)',
        '(from = head.fetch_add(most, kRelaxed)) < announced',
    ),
    'same slots twice': (
        'head.compare_exchange_strong(from, from + count, kRelaxed)',
        '(head.store(from + count, kRelaxed), true)',
    ),
    'lost task': ('publish_task(a_.queue, slot++, own & ~kMade)', '++slot'),
    'early termination': (
        'Atomic<uint32_t>(*queue.pending).load(kAcquire) == 0',
        'true',
    ),
    'children not counted before their parent ends': (
        PUSH + RETIRE,
        RETIRE + PUSH,
    ),
    'seeds not counted while a block announces them': (
        '*a_.queue.pending = gridDim.x;',
        '*a_.queue.pending = 0;',
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


def test_a_relaxed_publish_is_caught(builder, tmp_path):
    """It harms nobody on this machine: ThreadSanitizer sees it."""
    program = build_with(
        builder, tmp_path, 'store(1, kRelease)', 'store(1, kRelaxed)', 'thread'
    )
    report = run(program, sanitizer='thread')
    assert 'data race' in report
    assert 'read_task' in report
