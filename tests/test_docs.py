"""The examples of the documentation run, and its links lead somewhere."""

import ast
import doctest
import importlib.util
import re
from pathlib import Path

import pytest
import torch

TOP = Path(__file__).resolve().parent.parent
PAGES = [TOP / 'README.md', TOP / 'CONTRIBUTING.md', *TOP.glob('docs/**/*.md')]


def make_pages():
    path = TOP / 'docs/make_pages.py'
    spec = importlib.util.spec_from_file_location('make_pages', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ids(path: Path) -> str:
    return path.name


@pytest.mark.parametrize('page', PAGES, ids=ids)
def test_examples_of_a_page_run(page):
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0


@pytest.mark.parametrize('page', PAGES, ids=ids)
def test_links_of_a_page_lead_to_files(page):
    for link in re.findall(r'\]\(([^)#\s]+)\)', page.read_text()):
        if '://' not in link:
            assert (page.parent / link).exists(), link


def test_architecture_names_files_that_exist():
    text = (TOP / 'docs/architecture.md').read_text()
    names = set(re.findall(r'`([\w/]+\.(?:py|cpp|h))`', text))
    files = [
        str(p)
        for d in ('csrc', 'torch_gsample', 'tests')
        for p in (TOP / d).rglob('*')
    ]
    for name in names:
        assert any(f.endswith('/' + name) for f in files), name


@pytest.mark.skipif(
    torch.__version__ < '2.13', reason='the text of another Dynamo'
)
def test_pages_of_passes_say_what_the_compiler_says():
    texts = make_pages().pages()
    for path, text in texts.items():
        assert path.read_text() == text, f'{path}: run `make docs-pages`'
    assert set((TOP / 'docs/passes').glob('*.md')) < set(texts)


def test_docstrings_become_markdown():
    text = (
        'Does :func:`~a.b.c` on ``x``.\n\nBefore::\n\n    %0 = f(x)\n\n'
        '    %1 = g(%0)\n\nAfter, see :mod:`..ir`::\n\n    %0 = h(x)'
    )
    assert make_pages().markdown(text) == (
        'Does `c` on `x`.\n\nBefore:\n\n```text\n%0 = f(x)\n\n%1 = g(%0)\n'
        '```\n\nAfter, see `ir`:\n\n```text\n%0 = h(x)\n```\n'
    )


def messages() -> list[str]:
    """What the page of errors quotes: terms of its lists."""
    text = (TOP / 'docs/troubleshooting.md').read_text()
    return re.findall(r'^`([^`]+)`\n: ', text, re.MULTILINE)


def raised_texts() -> str:
    """All texts of the package but docstrings, values as an ellipsis."""
    texts = []
    for path in (TOP / 'torch_gsample').rglob('*.py'):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docs = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
        for node in nodes:
            if id(node) in docs:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(v, 'value', '…') for v in node.values)
                parts = (p if isinstance(p, str) else '…' for p in parts)
                texts.append(''.join(parts))
            elif isinstance(node, ast.Constant) and node.value is not None:
                texts.append(str(node.value))
    return '\n'.join(texts)


def test_errors_of_the_page_are_raised_somewhere():
    raised = raised_texts()
    assert len(messages()) > 30
    for message in messages():
        assert message in raised, message


def test_every_public_module_is_in_the_reference():
    pages = {p.stem for p in (TOP / 'docs/api').glob('*.md')}
    assert pages == set(make_pages().public_modules()), 'make docs-pages'
