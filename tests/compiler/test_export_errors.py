"""Exported programs refuse other arguments, and files that are not theirs."""

import contextlib
import copy
import hashlib
import json
import re
import struct

import pytest
import torch

import torch_gsample as gsample
from tests.compiler.programs import graph
from torch_gsample import SparseSample
from torch_gsample.compiler.exported import file

A, SEEDS = graph(), torch.arange(0, 40, 7)
WEIGHT = torch.linspace(1, 2, 40, dtype=torch.float64)


def program(A, seeds, x, fanouts):
    part = A[:, seeds].mul(x, dim=0).div(WEIGHT, dim=1)
    first = part.individual_sample(fanouts[0])
    second = A[:, first.row()].individual_sample(fanouts[1])
    return [first.div(first.sum(dim=0), dim=0), second]


X = torch.rand(len(SEEDS), dtype=torch.float64)


@pytest.fixture(scope='module')
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp('exported') / 'program.gsp'
    gsample.export(program, A, SEEDS, X, [2, 3], path=path)
    return path


@pytest.fixture(scope='module')
def loaded(path):
    return gsample.load_program(path)


# Calls #######################################################################

B = graph(torch.float32)
CALLS = {
    'dtype of values': (
        (B, SEEDS, X),
        r"program: 'A.value' must have dtype torch.float64 \(got "
        r'torch.float32\)',
    ),
    'no values': (
        (A._of_value(None), SEEDS, X),
        r"'A.value' must be a tensor \(got None\)",
    ),
    'another graph': (
        (SparseSample.from_edge_index(torch.ones(2, 3).long()), SEEDS, X),
        r"'A.csc.num_rows' must be 40, as at export \(got 2\)",
    ),
    'no matrix': ((SEEDS, SEEDS, X), "'A' must be a SparseSample"),
    'ids of nodes': (
        (A[:, torch.arange(40)], SEEDS, X),
        "'A.col_ids' must be None",
    ),
    'dtype of seeds': (
        (A, SEEDS.int(), X),
        r"'seeds' must have dtype torch.int64 \(got torch.int32\)",
    ),
    'rank of seeds': (
        (A, SEEDS[None], X),
        r"'seeds' must have shape \[\*\] \(got \[1, 6\]\)",
    ),
    'list of seeds': ((A, [1], X), r"'seeds' must be a tensor \(got \[1\]\)"),
    'a length': (
        (A, SEEDS, X[1:]),
        r"'x' must have shape \[6\] \(got \[5\]\)",
    ),
    'strides': (
        (A, SEEDS, X.repeat(2)[::2]),
        r"'x' must be contiguous \(got strides \(2,\)\)",
    ),
    'gradient': (
        (A, SEEDS, X.clone().requires_grad_()),
        "'x' must not require a gradient: it was exported without",
    ),
    'fan-outs': (
        (A, SEEDS, X, [2, 4]),
        r"'fanouts\[1\]' must be 3, as at export \(got 4\)",
    ),
    'more fan-outs': (
        (A, SEEDS, X, [2, 3, 4]),
        r"'fanouts' must be a list of 2 \(got \[2, 3, 4\]\)",
    ),
    'fan-outs of another type': (
        (A, SEEDS, X, (2, 3)),
        r"'fanouts' must be a list of 2 \(got \(2, 3\)\)",
    ),
    'a subclass': (
        (A, SEEDS, type('Mine', (torch.Tensor,), {})(X.float())),
        r"'x' must be a plain tensor \(got Mine\)",
    ),
}


@pytest.mark.parametrize('case', CALLS)
def test_a_call_that_does_not_fit_names_argument_and_rule(case, loaded):
    args, text = CALLS[case]
    with pytest.raises(ValueError, match=text):
        loaded(*args)


def test_missing_and_unknown_arguments_are_named(loaded):
    with pytest.raises(TypeError, match="program: 'x' is missing"):
        loaded(A, SEEDS)
    with pytest.raises(TypeError, match=r'program: .* argument .?depth'):
        loaded(A, SEEDS, X, depth=3)
    assert len(loaded(A, SEEDS, X)) == 2  # constants may be left out


def test_modes_are_those_of_the_export(loaded, tmp_path):
    args = A, SEEDS, X
    with torch.autocast('cpu'):
        for call in (
            lambda: loaded(*args),
            lambda: gsample.export(
                program, *args, [2, 3], path=tmp_path / 'p'
            ),
        ):
            with pytest.raises(ValueError, match='without autocast'):
                call()
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ValueError, match='dtype must be float32'):
            loaded(*args)
    finally:
        torch.set_default_dtype(torch.float32)
    x = X.clone().requires_grad_()
    with torch.no_grad():
        loaded(A, SEEDS, x)
    with torch.inference_mode():
        loaded(*args)


def test_a_loaded_program_is_not_compiled_again(loaded):
    text = 'compiled already\n(.*\n)*Call it uncompiled'
    with pytest.raises(gsample.compiler.CompileError, match=text):
        gsample.compile(loaded)(A, SEEDS, X)


# Exports #####################################################################


@pytest.mark.parametrize(
    ('function', 'args', 'error', 'text'),
    [
        (lambda A, f: f(A), (A, len), TypeError, "'f' must be of tensors"),
        (lambda A: {0.5: A}, (A,), TypeError, 'must have keys that are None'),
        (
            lambda A, x: x,
            (A, X.repeat(2)[::2]),
            ValueError,
            "'x' must be cont",
        ),
        (
            lambda A: A.values().as_strided((3,), (2,)),
            (A,),
            ValueError,
            "'<lambda>': a file may call operators .*as_strided",
        ),
    ],
)
def test_a_value_that_no_file_can_hold_is_an_export_error(
    function, args, error, text, tmp_path
):
    path = tmp_path / 'p'
    with pytest.raises((error, gsample.compiler.CompileError), match=text):
        gsample.export(function, *args, path=path)
    assert not path.exists()


# Files #######################################################################


def parts(data: bytes) -> tuple[dict, bytes]:
    """The header of a file, and the bytes of its tensors."""
    [length] = struct.unpack('<q', data[8:16])
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def sealed(header, rest: bytes) -> bytes:
    """A file with a checksum that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = file.MAGIC + struct.pack('<q', len(text)) + text + rest
    return body + hashlib.sha256(body).digest()


def refusal(data: bytes, tmp_path) -> str:
    """The error of a file."""
    path = tmp_path / 'hostile.gsp'
    path.write_bytes(data)
    with pytest.raises(
        ValueError, match=r'load_program: .*hostile.gsp: '
    ) as e:
        gsample.load_program(path)
    return str(e.value)


def test_a_file_that_is_cut_off_or_changed_is_refused(path, tmp_path):
    data = path.read_bytes()
    for length in (0, 3, 8, 15, 16, 40, 48, 200, len(data) // 2):
        refusal(data[:length], tmp_path)
    assert 'checksum' in refusal(data[:-1], tmp_path)
    assert 'checksum' in refusal(data + b'\0', tmp_path)
    assert 'not an exported program' in refusal(b'PK' + data[2:], tmp_path)
    for at in range(0, len(data), max(1, len(data) // 100)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        refusal(bytes(changed), tmp_path)


def node_of(header: dict, name: str) -> dict:
    nodes = header['graph']['nodes']
    return next(n for n in nodes if name in str(n['target']))


def set_(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(header):
        for key in keys:
            header = header[key]
        header[last] = value

    return change


def of_node(name, *keys_and_value):
    return lambda h: set_(*keys_and_value)(node_of(h, name))


HOSTILE = {
    'version': (set_('version', 2), r'must be version 1 \(got 2\)'),
    'operator': (
        of_node('sample_layers', 'target', 'aten.mined.default'),
        "has no operator 'aten.mined.default'",
    ),
    'file operator': (
        of_node('sample_layers', 'target', 'aten.from_file.default'),
        "may call operators .*'aten.from_file.default'",
    ),
    'library operator': (
        of_node('sample_layers', 'target', 'gsample.load_kernel.default'),
        'may call operators',
    ),
    'attribute': (
        of_node('sample_layers', 'target', 'aten.__class__.default'),
        'may call operators',
    ),
    'space': (
        of_node('sample_layers', 'target', 'os.system'),
        'may call operators',
    ),
    'method': (
        lambda h: node_of(h, 'sample_layers').update(
            op='call_method', target='numpy'
        ),
        "may not call the method 'numpy'",
    ),
    'attribute of a module': (
        of_node('sample_layers', 'op', 'get_attr'),
        "'op' must be known",
    ),
    'keyword': (
        of_node('sample_layers', 'kwargs', {'k=print(1), key': 1}),
        'has no argument',
    ),
    'signature': (
        lambda h: h['graph']['operators'].update(
            {'gsample.next_key.default': 'gsample::next_key(int x) -> int'}
        ),
        'next_key.default has different arguments',
    ),
    'later node': (
        of_node('sample_layers', 'args', [{'node': 10**6}]),
        'must come before its users',
    ),
    'device': (
        of_node('sample_layers', 'args', [{'device': 'cuda'}]),
        "must be 'cpu'",
    ),
    'kernel operation': (
        set_('graph', 'kernels', 0, 'expressions', 0, 0, 'system("ls")'),
        'must be of',
    ),
    'kernel number': (
        lambda h: h['graph']['kernels'][0]['expressions'].append(
            ['constant', 'float32', [], '1); system("ls")']
        ),
        'a constant must be a number',
    ),
    'tensor': (
        lambda h: next(iter(h['tensors'].values())).__setitem__(1, [1 << 60]),
        'ends beyond the end',
    ),
    'result': (set_('result', ['named', 'os.path', []]), 'no NamedTuple'),
    'matrix': (set_('result', ['matrix', []]), "of the kind 'matrix'"),
    'output': (set_('results', 0, ['output', 99]), '(got 99)'),
    'source': (set_('inputs', 0, ['tensor', 'X']), "malformed .KeyError: 'X'"),
    'rule': (
        set_('arguments', 2, [['Pow', 9, 9]]),
        'sizes have an invalid rule',
    ),
    'parameter': (set_('arguments', 0, 0, 0, 'import os'), 'import os'),
}


@pytest.mark.parametrize('case', HOSTILE)
def test_a_file_of_a_stranger_is_refused(case, path, tmp_path):
    change, text = HOSTILE[case]
    header, rest = parts(path.read_bytes())
    change(header)
    said = refusal(sealed(header, rest), tmp_path)
    assert re.search(text, said), said


def test_headers_that_are_deep_are_refused(path, tmp_path):
    _, rest = parts(path.read_bytes())
    refusal(sealed(b'[' * 100000, rest), tmp_path)
    header, rest = parts(path.read_bytes())
    deep: list = []
    for _ in range(400):
        deep = [deep]
    node_of(header, 'sample_layers')['args'] = deep
    refusal(sealed(header, rest), tmp_path)


def places(value, at=()):
    """Where the plain values of a header are."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, (*at, key))
    else:
        yield at


def test_headers_with_other_values_load_or_are_refused(path, tmp_path):
    header, rest = parts(path.read_bytes())
    found, refused = list(places(header)), 0
    others = None, -1, 1 << 70, 'x', [], {}, 0.5
    for i, at in enumerate(found[:: max(1, len(found) // 150)]):
        changed = copy.deepcopy(header)
        set_(*at, others[i % len(others)])(changed)
        (tmp_path / 'p').write_bytes(sealed(changed, rest))
        with contextlib.suppress(ValueError):
            gsample.load_program(tmp_path / 'p')
            refused -= 1
        refused += 1
    assert refused > 75
