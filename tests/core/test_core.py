"""The sampling core, number by number, in every way that it is compiled."""

import itertools
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests import reference_core as reference
from tests.built import program
from tests.reference import negative as pick_negative

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / 'csrc' / 'core'
SOURCE = Path(__file__).with_name('core_test.cpp')
MASK64 = reference.MASK64

# Functions of the core that others call, so that they have no row of their
# own in the table.
INNER = {'half', 'block', 'select_floyd', 'operator', 'guess', 'window'}
INNER |= {'node', 'is_edge', 'weights', 'weight', 'candidate'}
INNER |= {'count_and_draw', 'fire_width', 'exceeds'}
# All bit patterns are in tests/ops/test_gather_rows.py.
INNER |= {'widen', 'float_bits', 'float_from_bits'}

GXX = [os.environ.get('CXX', 'g++'), '-std=c++17', '-Wall', '-Werror']
NVCC = ['-std=c++17', '-x', 'cu', '-Werror', 'all-warnings'] + [
    f'-gencode=arch=compute_{arch},code=sm_{arch}' for arch in (75, 80, 90)
]
BUILDS = {
    'O0': [*GXX, '-O0'],
    'O3': [*GXX, '-O3', '-ffp-contract=off'],
    'O3-native': [*GXX, '-O3', '-march=native'],
}


def find_nvcc():
    home = os.environ.get('CUDA_HOME')
    paths = [Path(home) / 'bin' / 'nvcc'] if home else []
    paths += sorted(Path('/usr/local').glob('cuda*/bin/nvcc'))
    found = next((str(path) for path in paths if path.exists()), None)
    return found or shutil.which('nvcc')


@pytest.fixture(scope='session')
def core_table():
    """A function that builds and runs the program, and returns its output."""
    tables = {}

    def table(name, command):
        if name not in tables:
            built = program([*command, f'-I{CORE.parent}'], SOURCE)
            tables[name] = subprocess.run(
                [built], check=True, capture_output=True, text=True
            ).stdout
        return tables[name]

    return table


def signed(number):
    return number - 2**64 if number >= 2**63 else number


def as_double(bits):
    return struct.unpack('<d', struct.pack('<Q', bits))[0]


def double_bits(value):
    return struct.unpack('<Q', struct.pack('<d', value))[0]


def mix64(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK64
    return x ^ (x >> 31)


def weight_range(*weights):
    sums = [sum(weights[:i]) for i in range(len(weights) + 1)]
    bounds = [x for pair in itertools.pairwise(sums) for x in pair]
    return [sums[-1], *bounds]


def uniform(select):
    return lambda key, root, id, n, k: select(
        reference.Stream(key, root, id), n, k
    )


def weighted(select):
    return lambda key, root, id, k, *weights: select(
        reference.Stream(key, root, id), weights, k
    )


def walk_draws(key, walker, step, attempt):
    draws = reference.WalkDraws(key, walker)
    return [
        draws.position(step),
        draws.restart(step),
        draws.candidate(step, attempt),
        draws.coin(step, attempt),
    ]


def restarts(draw, probability):
    threshold = reference.restart_threshold(as_double(probability))
    return [threshold, reference.restarts(draw, threshold)]


def second_order(p, q, invert_p, invert_q):
    p, q = as_double(p), as_double(q)
    law = reference.second_order(
        1 / p if invert_p else p, 1 / q if invert_q else q
    )
    forward = law.near, law.far
    return [law.back, *forward, min(forward), max(forward)]


def select_by_mass(draw, *factors):
    masses = [a * b for a, b in zip(factors[::2], factors[1::2], strict=True)]
    return [reference.select_by_mass(draw, masses)]


def sum_column(*bits):
    total = 0.0
    for number in bits:
        total += as_double(number)
    return [double_bits(total)]


def labor_scale(k, *bits):
    """Holds the largest weights at 1, one after the other."""
    weights, n = list(map(as_double, bits)), len(bits)
    scale, full = (1.0 if n <= k else 0.0), -1
    while n > k:
        held = [weight * scale >= 1 for weight in weights]
        if sum(held) <= full:
            break
        full, rest = sum(held), 0.0
        for weight, is_held in zip(weights, held, strict=True):
            rest += 0 if is_held else 1 / weight
        scale = rest / (n * n / k - full)
    return [double_bits(scale)]


def search(x, *values):
    return [sum(v <= x for v in values), sum(v < x for v in values)]


def negative(stream, id, time, n, near, *weights):
    """Nodes stand in descending order, at odd times, if there is a time."""
    edges = [node for node in range(n) if near >> node & 1]
    nodes, limit = range(n), n
    if time > 0:
        nodes, limit = nodes[::-1], max(1, min(n, (time + 1) // 2))
    allowed = list(zip(nodes[:limit], weights[:limit], strict=True))
    draw = reference.Stream(stream, 0, id)
    return [1, pick_negative(draw, allowed, edges) & MASK64]


def fire(p, stream, node, most, entry):
    p, draw = as_double(p), reference.Stream(stream, 0, node)
    width, power = 0, p
    while width < most and reference.unit_interval(draw(0)) < power:
        width, power = width + 1, power * p
    return [width, draw(entry + 1)]


# What each row of the table must be, from its inputs.
REFERENCE = {
    'mulhi32': lambda a, b: [a * b >> 32],
    'mulhi64': lambda a, b: [a * b >> 64],
    'double_bits': lambda a: [double_bits(float(a))],
    'mix64': lambda x: [mix64(x)],
    'philox': lambda key, *counter: [*reference.philox(key, counter)],
    'stream_key': lambda seed, epoch, batch, call, relation: [
        reference.stream_key((seed, epoch, batch), call, relation)
    ],
    'bounded': lambda draw, n: [reference.bounded(draw, n)],
    'unit_interval': lambda draw: [double_bits(reference.unit_interval(draw))],
    'stream': lambda key, root, id, slot: [
        reference.Stream(key, root, id)(slot)
    ],
    'select_with_replacement': uniform(reference.select_with_replacement),
    'select_without_replacement': uniform(
        reference.select_without_replacement
    ),
    'ceil_log2': lambda n: [reference.ceil_log2(n)],
    'fixed_point': lambda weight, shift: [
        reference.fixed_point(as_double(weight), signed(shift))
    ],
    'fixed_point_shift': lambda weight, n: [
        reference.fixed_point_shift(as_double(weight), n) & MASK64
    ],
    'cum_weight_size': lambda edges, cols: [edges + -(-cols // 64)],
    'has_zero_weight': lambda low, high, col: [(high << 64 | low) >> col & 1],
    'find': lambda r, *weights: [reference.find(weights, r)] * 5,
    'range': weight_range,
    'select_weighted_with_replacement': weighted(
        reference.select_weighted_with_replacement
    ),
    'select_weighted_without_replacement': weighted(
        reference.select_weighted_without_replacement
    ),
    'walk_draws': walk_draws,
    'restarts': restarts,
    'relative_weight': lambda bits: [
        reference.relative_weight(as_double(bits))
    ],
    'second_order': second_order,
    'accepts': lambda coin, weight: [reference.accepts(coin, weight)],
    'select_by_mass': select_by_mass,
    'sum_column': sum_column,
    'labor_scale': labor_scale,
    'search': search,
    'negative': negative,
    'fire': fire,
}


def parse(table):
    for line in table.splitlines():
        inputs, outputs = line.split(' =')
        name, *numbers = inputs.split()
        yield name, list(map(int, numbers)), list(map(int, outputs.split()))


def test_the_reference_knows_the_published_answers():
    ones = 2**32 - 1
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    for key, counter, answer in (
        (0, (0,) * 4, '6627e8d5 e169c58d bc57ac4c 9b00dbd8'),
        (MASK64, (ones,) * 4, '408f276d 41c83b0e a20bc7c6 6d5451fd'),
        (0x299F31D0A4093822, pi, 'd16cfe09 94fdcceb 5001e420 24126ea1'),
    ):
        words = reference.philox(key, counter)
        assert ' '.join(f'{word:08x}' for word in words) == answer


@pytest.mark.parametrize('name', REFERENCE)
def test_the_core_equals_the_reference(core_table, name):
    rows = [r for r in parse(core_table('O0', BUILDS['O0'])) if r[0] == name]
    assert len(rows) >= 20
    for _, inputs, outputs in rows:
        assert outputs == REFERENCE[name](*inputs), inputs


@pytest.mark.parametrize('build', BUILDS)
def test_optimisation_changes_no_bit(core_table, build):
    table = core_table(build, BUILDS[build])
    assert table == core_table('O0', BUILDS['O0'])


def test_nvcc_compiles_the_core_for_host_and_device(core_table):
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip('nvcc was not found')
    table = core_table('nvcc', [nvcc, *NVCC])
    assert table == core_table('O0', BUILDS['O0'])


def test_the_table_has_every_function_of_the_core():
    headers = map(SOURCE.with_name, ('sums.h', 'negatives.h'))
    sources = SOURCE, *headers
    program, functions = '\n'.join(map(Path.read_text, sources)), set()
    for header in CORE.glob('*.h'):
        text = re.sub(r'#.*', '', header.read_text())
        functions |= set(re.findall(r'GSAMPLE_HD\s[\w\s]*?\b(\w+)\(', text))
    assert len(functions) >= 20
    for name in functions - INNER:
        assert re.search(rf'\b{name}\(', program), name


def test_the_table_has_rows_of_every_name(core_table):
    names = {name for name, _, _ in parse(core_table('O0', BUILDS['O0']))}
    assert names == set(REFERENCE)
