"""The package as a whole: imports, layers, sizes, documentation."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import torch_gsample

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / 'torch_gsample'
MODULES = [
    m.name
    for m in pkgutil.walk_packages(
        torch_gsample.__path__, 'torch_gsample.', onerror=lambda _: None
    )
    if m.name != 'torch_gsample._C'  # no Python module
]
#: What each part of the package may import from the package.
LAYERS = {
    '_library': set(),
    'rng': set(),
    'ops': {'_library', 'ops'},
    'formats': {'ops'},
    'samplers': {'formats', 'ops', 'rng', 'samplers'},
    'loader': {'formats', 'loader', 'ops', 'rng', 'samplers'},
    'datasets': {'datasets', 'formats', 'ops'},
    'testing': {'formats', 'ops', 'rng'},
}


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code],
        capture_output=True,
        text=True,
        cwd=TOP,
        check=True,
    )
    return done.stdout + done.stderr


def imported_parts(path: Path) -> set[str]:
    """Parts of the package that a file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == 'torch_gsample':
                names += [f'torch_gsample.{a.name}' for a in node.names]
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    parts = [n.split('.') for n in names if n.startswith('torch_gsample.')]
    return {
        p[1]
        for p in parts
        if (PACKAGE / p[1]).exists() or (PACKAGE / f'{p[1]}.py').exists()
    }


@pytest.mark.parametrize('part', LAYERS)
def test_imports_go_one_way(part):
    folder = PACKAGE / part
    files = (
        folder.rglob('*.py') if folder.is_dir() else [PACKAGE / f'{part}.py']
    )
    for path in files:
        assert imported_parts(path) <= LAYERS[part], path


def test_every_part_has_a_layer():
    parts = {p.stem for p in PACKAGE.iterdir() if p.suffix == '.py'}
    parts |= {p.parent.name for p in PACKAGE.glob('*/__init__.py')}
    assert parts - {'__init__'} == set(LAYERS)


def test_import_prints_nothing_and_loads_nothing_heavy():
    code = (
        'import sys, torch_gsample; '
        "heavy = {'matplotlib', 'duckdb', 'pyspark', 'rich', 'hypothesis'}; "
        'print(sorted(heavy & set(sys.modules)) or "")'
    )
    assert python(code).strip() == ''


def test_import_is_quick():
    code = (
        'import time, torch, torch_geometric, torch_geometric.loader\n'
        'start = time.process_time()\n'
        'import torch_gsample\n'
        'print(time.process_time() - start)'
    )
    seconds = statistics.median(float(python(code)) for _ in range(3))
    # The bound is 0.3 s; processor time does not see the other programs of a
    # busy machine, but its caches do.
    assert seconds < 0.6


@pytest.mark.parametrize('name', MODULES)
def test_examples_of_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize('name', MODULES)
def test_modules_say_what_they_are(name):
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize('name', ['torch_gsample', *MODULES])
def test_exported_names_are_documented(name):
    module = importlib.import_module(name)
    for key in getattr(module, '__all__', []):
        value = getattr(module, key)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f'{name}.{key}'


def test_files_and_functions_are_short():
    for folder in ('torch_gsample', 'csrc', 'tests', 'examples', 'benchmark'):
        for path in (TOP / folder).rglob('*'):
            if path.suffix in ('.py', '.cpp', '.h', '.cu', '.cuh'):
                assert len(path.read_text().splitlines()) <= 400, path
    for path in PACKAGE.rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[bool(ast.get_docstring(node)) :]
                lines = node.end_lineno - body[0].lineno if body else 0
                assert lines <= 60, f'{path}: {node.name}'


def test_no_file_names_a_path_of_a_machine():
    home = re.compile(r'(?<![\w/.])/(?:home|root|work|farm)/\w')
    files = subprocess.run(
        ['git', 'ls-files'], cwd=TOP, capture_output=True, text=True
    ).stdout.split()
    for name in files:
        path = TOP / name
        if path.suffix in ('.npz', '.png') or not path.exists():
            continue
        assert not home.search(path.read_text()), name
