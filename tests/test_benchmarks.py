"""Programs that no test runs to the end: the names that they use exist."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
PROGRAMS = sorted(
    path
    for folder in ('benchmark', 'docs', 'examples')
    for path in (TOP / folder).rglob('*.py')
)


def names_of_the_package(tree: ast.Module) -> set[tuple[str, str]]:
    """Modules of the package, and the names that a program imports."""
    nodes = list(ast.walk(tree))
    package = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == 'torch_gsample'
    }
    imported = {
        (node.module, alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        and (node.module or '').split('.')[0] == 'torch_gsample'
        for alias in node.names
    }
    return imported | {
        ('torch_gsample', node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in package
    }


def is_there(module: str, name: str) -> bool:
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f'{module}.{name}')
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize(
    'path', PROGRAMS, ids=lambda path: str(path.relative_to(TOP))
)
def test_a_program_takes_names_that_exist(path):
    names = names_of_the_package(ast.parse(path.read_text()))
    assert [name for name in names if not is_there(*name)] == []


def test_a_name_that_is_gone_is_found():
    text = 'import torch_gsample as g\ng.NodeProbs(1)\ng.ops.sample_columns'
    names = names_of_the_package(ast.parse(text))
    assert [name for name in names if not is_there(*name)] == [
        ('torch_gsample', 'NodeProbs')
    ]
