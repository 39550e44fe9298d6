"""The package as a whole: imports, layers, sizes, documentation."""

import ast
import doctest
import functools
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

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
    '__main__': {'cli'},
    '_axes': set(),
    '_deprecated': set(),
    '_lazy': set(),
    'locks': set(),
    '_deprecated_layers': {'_deprecated_sampling', 'ops'},
    '_deprecated_sampling': {'csc', 'graph', 'ops'},
    '_library': set(),
    'bench': {
        *('algorithms', 'bench', 'csc', 'datasets', 'graph', 'loader'),
        *('ops', 'rng', 'sparse_sample'),
    },
    'batch_edges': {'csc'},
    'block': {'batch_edges', 'csc'},
    'cli': {
        *('algorithms', 'bench', 'cli', 'datasets', 'doctor', 'rng'),
        *('memory', 'owned_folder', 'run_script', 'samplers', 'sparse_sample'),
        *('relational', 'spark', 'storage', 'viz'),
    },
    'doctor': {'_library', 'codegen'},
    'fusion': {'batch_edges', 'block', 'fusion', 'loader', 'vertex'},
    'patch': {'fusion', 'loader', 'nn', 'samplers'},
    'memory': set(),
    'run_script': {'patch'},
    'rng': {'ops'},  # its draws, once called
    'ops': {'_deprecated', '_library', 'ops'},
    'owned_folder': set(),
    'path_argument': set(),
    'formats': {'_deprecated'},
    'csc': {'ops', 'placement'},
    'graph': {
        *('adjacency', 'csc', 'graph_types', 'ops'),
        'placement',
    },
    'graph_types': set(),
    'adjacency': {'csc', 'ops'},
    'graph_input': {'adjacency', 'graph', 'graph_types'},
    'placement': {'_library'},
    'huge_pages': set(),
    'quantize': {'huge_pages'},
    'options': {'placement'},
    'snapshot': set(),
    'list_cache': {'_library', 'ops', 'placement'},
    'sparse_sample': {
        *('_axes', '_deprecated', 'adjacency', 'csc', 'list_cache', 'ops'),
        *('placement', 'rng', 'snapshot', 'sparse_sample'),
    },
    'algorithms': {'algorithms', 'ops', 'rng', 'sparse_sample'},
    'samplers': {
        *('algorithms', 'batch_edges', 'block', 'compiler', 'csc', 'graph'),
        *('graph_input', 'graph_types', 'list_cache', 'ops', 'options'),
        *('placement', 'rng', 'samplers', 'snapshot', 'sparse_sample'),
    },
    'loader': {
        *('adjacency', 'algorithms', 'batch_edges', 'block', 'graph'),
        *(
            'graph_input',
            'graph_types',
            'loader',
            'ops',
            'options',
            'owned_folder',
        ),
        *('placement', 'rng', 'samplers', 'sparse_sample'),
    },
    'nn': {'loader', 'nn', 'ops', 'rng', 'sparse_sample'},
    'codegen': {'codegen', 'ops', 'owned_folder'},
    'compiler': {
        *('codegen', 'compiler', 'csc', 'ops', 'placement', 'rng'),
        *('snapshot', 'sparse_sample'),
    },
    'datasets': {'csc', 'datasets', 'ops'},
    'storage': {
        *('_library', 'adjacency', 'batch_edges', 'block', 'csc', 'graph'),
        *('graph_input', 'graph_types', 'memory', 'ops', 'options'),
        *('owned_folder', 'quantize', 'rng', 'samplers', 'sparse_sample'),
        *('storage', 'vertex'),
    },
    'graph_sampling': {'graph_sampling', 'ops', 'rng'},
    'relational': {
        *('graph', 'loader', 'memory', 'ops', 'options', 'owned_folder'),
        *('relational', 'rng', 'samplers', 'storage'),
    },
    'spark': {
        *('graph_sampling', 'loader', 'ops', 'options', 'owned_folder'),
        *('rng', 'spark', 'storage'),
    },
    'testing': {'csc', 'ops', 'rng'},
    'vertex': {
        *('adjacency', 'block', 'codegen', 'csc', 'ops', 'snapshot'),
        *('sparse_sample', 'vertex'),
    },
    'torch_private': set(),
    'viz': {'_axes', 'csc', 'graph_sampling', 'sparse_sample', 'viz'},
}


#: All may import these.
BELOW = {'_lazy', 'locks', 'path_argument', 'torch_private'}

IMPORT = """
import json, sys
import torch, torch_geometric, torch_geometric.loader
started = []
def hook(event, args):
    names = 'subprocess.', 'os.exec', 'os.fork', 'os.posix_spawn', 'os.system'
    if event.startswith(names):
        started.append(f'{event}{args}')
sys.addaudithook(hook)
steps = [{*sys.modules}]
print('|')
import torch_gsample
steps.append({*sys.modules})
from torch_gsample.loader import NeighborLoader
steps.append({*sys.modules})
torch_gsample.SparseSample, torch_gsample.algorithms
print('|')
added = [sorted(b - a) for a, b in zip(steps, steps[1:])]
print(json.dumps([added, started, sorted({*sys.modules} - steps[0])]))
"""
#: What ``import torch_gsample`` adds, and the most that a loader adds: modules
#: are counted, as a time would be that of the machine.
FIRST = ['torch_gsample', 'torch_gsample._lazy']
MOST = 160


@pytest.fixture(scope='module')
def imports() -> dict:
    """The modules and programs of a process that imported the package.

    PyG's own are left out: it imports more where more is installed.
    """
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', IMPORT],
        capture_output=True,
        text=True,
        cwd=TOP,
        check=True,
    )
    _, printed, report = done.stdout.split('|')
    added, started, modules = json.loads(report)
    return {
        'printed': printed.strip() + done.stderr,
        'added': added,
        'started': started,
        'modules': set(modules),
    }


def files_of(part: str) -> list[Path]:
    return [*(PACKAGE / part).rglob('*.py'), *PACKAGE.glob(f'{part}.py')]


class Facts(NamedTuple):
    """What a file contains; trees of all files would take much memory."""

    #: Absolute names of imported modules and, ``from`` them, of names.
    modules: list[str]
    names: set[str]
    #: Lines where a tuple is written and taken apart.
    unpacked: list[int]
    #: The lines of each function.
    lines: list[tuple[str, int]]
    #: Public names whose docstrings do not begin with a sentence.
    unsaid: list[str]


@functools.cache
def facts_of(path: Path) -> Facts:
    tree = ast.parse(path.read_text())
    facts = Facts([], set(), [], [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f'{node.module}.{a.name}' for a in node.names]
            facts.names.update(names, [node.module])
            if node.module == 'torch_gsample':
                facts.modules.extend(names)
            facts.modules.append(node.module)
        elif isinstance(node, ast.Import):
            facts.modules.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.Starred):
            if isinstance(node.value, ast.Tuple):
                facts.unpacked.append(node.lineno)
        elif isinstance(node, ast.FunctionDef):
            body = node.body[bool(ast.get_docstring(node)) :]
            lines = node.end_lineno - body[0].lineno if body else 0
            facts.lines.append((node.name, lines))
    for name, node in public(tree):
        first = (ast.get_docstring(node) or '').split('\n\n')[0].rstrip()
        if not first.endswith(('.', '::')):
            facts.unsaid.append(name)
    return facts


def public(tree: ast.AST, prefix: str = ''):
    """Public classes, functions and methods of a module or class."""
    for node in ast.iter_child_nodes(tree):
        kinds = ast.FunctionDef, ast.ClassDef
        if isinstance(node, kinds) and not node.name.startswith('_'):
            names = node.decorator_list
            # The getter of a setter says it.
            if not any(isinstance(x, ast.Attribute) for x in names):
                yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f'{node.name}.')


def imported_parts(path: Path) -> set[str]:
    """Parts of the package that a file imports."""
    names = facts_of(path).modules
    parts = [n.split('.') for n in names if n.startswith('torch_gsample.')]
    return {
        p[1]
        for p in parts
        if (PACKAGE / p[1]).exists() or (PACKAGE / f'{p[1]}.py').exists()
    }


@pytest.mark.parametrize('part', LAYERS)
def test_imports_go_one_way(part):
    for path in files_of(part):
        assert imported_parts(path) <= LAYERS[part] | BELOW, path


def imports_among(paths: dict[str, Path]) -> dict[str, set[str]]:
    """Which of some modules each of them imports, anywhere in its file."""
    return {x: facts_of(paths[x]).names & paths.keys() - {x} for x in paths}


def test_imports_have_no_circle():
    paths = {
        '.'.join(path.relative_to(TOP).with_suffix('').parts): path
        for part in LAYERS
        for path in files_of(part)
    }
    left = imports_among(paths)
    while free := [name for name in left if not left[name] & left.keys()]:
        for name in free:
            del left[name]
    assert not left


@pytest.mark.parametrize('part', sorted({*LAYERS} - {'codegen', 'vertex'}))
def test_no_tuple_is_taken_apart_where_it_is_written(part):
    """As in ``*(a, b)``: a list of names is a string that is split."""
    for path in files_of(part):
        assert not facts_of(path).unpacked, path


def test_sampling_imports_go_down():
    order = 'ops', 'sparse_sample', 'algorithms', 'samplers'
    for i, part in enumerate(order):
        for path in files_of(part):
            assert not imported_parts(path) & set(order[i + 1 :]), path


def test_every_part_has_a_layer():
    parts = {p.stem for p in PACKAGE.iterdir() if p.suffix == '.py'}
    parts |= {p.parent.name for p in PACKAGE.glob('*/__init__.py')}
    assert parts - {'__init__'} == set(LAYERS)


def test_packages_that_are_imported_are_declared():
    tomllib = pytest.importorskip('tomllib')  # new in Python 3.11
    project = tomllib.loads((TOP / 'pyproject.toml').read_text())['project']
    extras = project['optional-dependencies']
    declared = [*project['dependencies']]
    declared += [x for name in extras if name != 'dev' for x in extras[name]]
    declared = {re.match(r'[\w-]+', x)[0].replace('-', '_') for x in declared}
    declared |= {'dgl', 'pytest'}  # only where a user has them anyway
    modules = {'pytorch_frame': 'torch_frame'}  # of another name
    declared |= {modules.get(name, name) for name in declared}
    for path in PACKAGE.rglob('*.py'):
        names = {name.split('.')[0] for name in facts_of(path).modules}
        names -= {*sys.stdlib_module_names, 'torch_gsample'}
        assert names <= declared, f'{path}: {names - declared}'


def test_import_prints_nothing(imports):
    assert imports['printed'] == ''


def test_import_loads_nothing_heavy(imports):
    heavy = {
        *('matplotlib', 'duckdb', 'pyspark', 'pyarrow', 'scipy'),
        *('rich', 'hypothesis'),
    }
    assert not heavy & imports['modules']
    own = {m for m in imports['modules'] if m.startswith('torch_gsample.')}
    assert not {m for m in own if '.datasets' in m or '.testing' in m}


def test_names_are_imported_when_they_are_used():
    """Help and versions of the command need no torch."""
    text = (
        'import sys, torch_gsample as gs\n'
        'assert gs.__version__ and {*gs.__all__} <= {*dir(gs)}\n'
        'assert "torch" not in sys.modules'
    )
    subprocess.run([sys.executable, '-c', text], cwd=TOP, check=True)
    assert all(hasattr(torch_gsample, n) for n in torch_gsample.__all__)
    with pytest.raises(AttributeError, match="no attribute 'sampels'"):
        torch_gsample.sampels  # noqa: B018


def test_import_starts_no_program(imports):
    """No compiler above all."""
    assert imports['started'] == []


def test_imports_add_few_modules(imports):
    """A loader needs no compiler before a program is sampled."""
    package, loader = imports['added']
    assert package == FIRST
    assert len(loader) <= MOST
    parts = {name.split('.')[1] for name in loader if '.' in name}
    assert not parts & {'codegen', 'compiler', 'fusion', 'storage', 'vertex'}


# Those of Spark run in its session, see tests/spark.
@pytest.mark.parametrize(
    'name', ['torch_gsample', *(m for m in MODULES if '.spark.' not in m)]
)
def test_examples_of_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize('name', MODULES)
def test_modules_have_docstrings(name):
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize('name', ['torch_gsample', *MODULES])
def test_exported_names_are_documented(name):
    module = importlib.import_module(name)
    for key in getattr(module, '__all__', []):
        value = getattr(module, key)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f'{name}.{key}'


@pytest.mark.parametrize(
    'part', sorted(set(LAYERS) - {'_library', 'datasets'})
)
def test_public_names_have_docstrings(part):
    """Of data sets only the exported names are public."""
    for path in files_of(part):
        assert not facts_of(path).unsaid, path


def test_files_and_functions_are_short():
    for folder in (PACKAGE, 'csrc', 'tests', 'examples', 'benchmark', 'tools'):
        for path in (TOP / folder).rglob('*'):
            if path.suffix in ('.py', '.cpp', '.h', '.cu', '.cuh'):
                assert len(path.read_text().splitlines()) <= 400, path
    for path in PACKAGE.rglob('*.py'):
        for name, lines in facts_of(path).lines:
            assert lines <= 60, f'{path}: {name}'


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
