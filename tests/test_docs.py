"""The examples of the documentation run, and its links lead somewhere."""

import ast
import doctest
import importlib.util
import re
from pathlib import Path

import pytest
import torch

from torch_gsample import loader, samplers

TOP = Path(__file__).resolve().parent.parent
PAGES = [TOP / 'README.md', TOP / 'CONTRIBUTING.md', *TOP.glob('docs/**/*.md')]


def load(name: str):
    path = TOP / f'docs/{name}.py'
    spec = importlib.util.spec_from_file_location(name, path)
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


def test_times_of_the_readme_are_recorded():
    text = (TOP / 'README.md').read_text()
    record = re.search(r'\((benchmark/results/[\w-]+\.md)\)', text)[1]
    recorded = re.findall(r'[\d,]*\d', (TOP / record).read_text())
    times = re.findall(r'(?<=\| )\**([\d,]+)\**(?= \|)', text)
    assert len(times) == 10
    assert {*times} <= {*recorded}
    figures = (TOP / 'docs/benchmarks.md').read_text()
    for speedup in re.findall(r'\d[\d.]*x', text):
        assert f'| {speedup} |' in figures


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
def test_pages_of_passes_are_current():
    texts = load('make_pages').pages()
    for path, text in texts.items():
        assert path.read_text() == text, f'{path}: run `make docs-pages`'
    assert set((TOP / 'docs/passes').glob('*.md')) < set(texts)


def test_docstrings_become_markdown():
    text = (
        'Does :func:`~a.b.c` on ``x``.\n\nBefore::\n\n    %0 = f(x)\n\n'
        '    %1 = g(%0)\n\nAfter, see :mod:`..ir`::\n\n    %0 = h(x)'
    )
    assert load('make_pages').markdown(text) == (
        'Does `c` on `x`.\n\nBefore:\n\n```text\n%0 = f(x)\n\n%1 = g(%0)\n'
        '```\n\nAfter, see `ir`:\n\n```text\n%0 = h(x)\n```\n'
    )


def messages() -> list[str]:
    """The messages that the page of errors quotes: terms of its lists."""
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
    assert pages == set(load('make_pages').public_modules()), 'make docs-pages'


def test_reference_lists_neighbor_loader_and_sampler_first():
    """Its tables list names in the order of ``__all__``."""
    for module, name in (
        (loader, 'NeighborLoader'),
        (samplers, 'NeighborSampler'),
    ):
        assert module.__all__[0] == name
        assert len({*module.__all__}) == len(module.__all__)


PICTURES = sorted((TOP / 'docs/images').glob('*.svg'))


def brightness(color: str) -> float:
    """Relative luminance, as in WCAG 2.2."""
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in shares
    ]
    weights = 0.2126, 0.7152, 0.0722
    return sum(w * c for w, c in zip(weights, linear, strict=True))


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(brightness, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize('picture', PICTURES, ids=ids)
def test_pictures_suit_light_and_dark_pages(picture):
    style = load('picture_style')
    text = picture.read_text()
    background = text.split('<g id="patch_1">')[1].split('</g>')[0]
    assert 'fill: none' in background or 'opacity: 0' in background
    words = re.findall(r'-->\s*<g ([^>]*)>', text)  # behind its text
    assert words
    for word in words:  # black without a style
        color = re.search(r'fill: (#\w{6})', word)
        assert color is not None
        assert color[1] in (style.INK, style.ON_LIGHT, style.ON_DARK)
    for page in ('#ffffff', '#131416'):  # furo's
        assert contrast(style.INK, page) > 4
        assert min(contrast(bar, page) for bar in style.BARS) > 3


def test_pictures_of_one_run_are_equal(tmp_path):
    from matplotlib.figure import Figure

    style = load('picture_style')
    for name in ('a.svg', 'b.svg'):
        with style.picture_style():
            figure = Figure()
            figure.subplots().set_title('a title')
            style.save(figure, tmp_path / name)
    assert (tmp_path / 'a.svg').read_text() == (tmp_path / 'b.svg').read_text()


def test_signatures_have_dots_as_in_the_source():
    shorten = load('conf').shorten_ellipsis
    assert shorten(None, '(a, b=Ellipsis)', None) == ('(a, b=...)', None)
    assert shorten(None, None, None) is None


def test_links_to_folders_are_texts_but_the_gallery_has_a_page():
    source = ['[Runs](../benchmark/results), [Gallery](../examples/gallery)']
    load('conf').unlink_folders(None, 'docs/index', source)
    assert source == ['Runs, [Gallery](/docs/gallery/index.rst)']
