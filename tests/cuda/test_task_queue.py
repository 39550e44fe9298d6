"""The task queue, and what is seen of the classic mistakes in its use.

A mistake is planted by changing the text of the queue or of the kernel that
uses it, and must be caught under some schedule.
"""

import subprocess
from pathlib import Path

import pytest

from tests.cuda.emulated import CSRC

SOURCE = Path(__file__).with_name('task_queue_test.cpp')
QUEUE = CSRC / 'cuda' / 'task_queue.cuh'
ROOM = 2000  # tasks, for every seed
SEEDS = 40

#: The text that is changed, and by what.
MISTAKES = {
    'no barrier after fetch': ('__syncthreads();  // fetched', ''),
    'no barrier after work': ('__syncthreads();  // worked', ''),
    'no barrier after room is made': ('__syncthreads();  // announced', ''),
    'no barrier before the next fetch': ('__syncthreads();  // published', ''),
    'slot read before it is published': (
        'while (Atomic<uint32_t>(queue.ready[slot]).load(kAcquire) == 0)',
        'while (false)',
    ),
    'lost task': (
        'head.compare_exchange_strong(from, from + count, kRelaxed)',
        '(from = head.fetch_add(most, kRelaxed)) < announced',
    ),
    'same slots twice': (
        'head.compare_exchange_strong(from, from + count, kRelaxed)',
        '(head.store(from + count, kRelaxed), true)',
    ),
    'early termination': (
        'Atomic<uint32_t>(*queue.pending).load(kAcquire) == 0',
        'true',
    ),
    'children not counted before their parent ends': (
        '.fetch_add(count, kRelaxed);\n  do',
        '.fetch_add(0, kRelaxed);\n  do',
    ),
}


def run(program, room=ROOM, sanitizer='none'):
    """What went wrong first: a program that reads rubbish may crash."""
    prefix, seeds = [], SEEDS
    if sanitizer == 'thread':
        prefix, seeds = ['setarch', '-R'], 3
    done = subprocess.run(
        [*prefix, program, '1', str(seeds), str(room)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    crash = f'seed ?: signal {-done.returncode}' * (done.returncode < 0)
    return done.stdout + done.stderr + crash


def build_with(builder, folder, old, new, sanitizer='none'):
    """The program with a change in one place of the queue or the kernel."""
    texts = {path: path.read_text() for path in (SOURCE, QUEUE)}
    assert sum(text.count(old) for text in texts.values()) == 1
    (folder / 'cuda').mkdir()
    for path, text in texts.items():
        inside = folder if path == SOURCE else folder / 'cuda'
        (inside / path.name).write_text(text.replace(old, new))
    (folder / 'cuda' / 'portable.h').write_text(
        f'#include "{CSRC / "cuda" / "portable.h"}"\n'
    )
    flags = [f'-I{folder}', '-O0', '-w']
    return builder.program(folder / SOURCE.name, sanitizer, flags)


@pytest.mark.parametrize('sanitizer', ['none', 'thread'])
def test_every_task_runs_once(builder, sanitizer):
    program = builder.program(SOURCE, sanitizer)
    assert run(program, sanitizer=sanitizer) == 'ok\n'


def test_a_small_queue_is_reported(builder):
    program = builder.program(SOURCE, 'address')
    for room in (1, 20, 150):
        assert 'the queue is full' in run(program, room)


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
