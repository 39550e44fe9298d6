"""The examples of the documentation run, and its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PAGES = [TOP / 'README.md', TOP / 'CONTRIBUTING.md', *TOP.glob('docs/*.md')]


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
