"""Configuration of Sphinx; see ``docs/make.py``.

The source folder is the repository, so that links between pages and to files
work in both.
"""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import torch_gsample
from torch_gsample import loader, samplers, spark

sys.path.insert(0, str(Path(__file__).parent))  # of picture_style

project = 'torch_gsample'
author = 'the authors of torch_gsample'
version = release = torch_gsample.__version__

extensions = [
    'myst_parser',
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.viewcode',
    'sphinx.ext.napoleon',
    'sphinx_copybutton',
    'sphinx-mathjax-offline',  # formulas without a network
    'sphinx_gallery.gen_gallery',  # runs programs: pages and notebooks
]
# Buttons copy input without prompts, and no output.
copybutton_prompt_text = r'>>> |\.\.\. |\$ '
copybutton_prompt_is_regexp = True
root_doc = 'docs/index'
include_patterns = [
    'docs/**/*.md',
    'docs/*.md',
    'docs/gallery/*.rst',
    'docs/api/generated/*.rst',
    'benchmark/README.md',
    'benchmark/results/*.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'README.md',
]
exclude_patterns = ['.*', 'build', 'dist', 'csrc', 'tests', '*.egg-info']

myst_enable_extensions = ['deflist', 'dollarmath']
myst_heading_anchors = 4
suppress_warnings = [
    'myst.header',  # pages made of docstrings begin at the second level
    'toc.not_included',  # what the index does not list has links to it
]

# Import lazy names now, as autodoc reads attributes.
for _module in (loader, samplers, spark):
    for _name in _module.__all__:
        setattr(_module, _name, getattr(_module, _name))

# For autosummary from the source folder, for pages from that of this file.
templates_path = ['docs/templates', 'templates']
autodoc_member_order = 'bysource'
autodoc_typehints = 'none'  # docstrings have them, with shapes
napoleon_use_rtype = False

# Names of other projects cannot be looked up without a network.
nitpicky = True
nitpick_ignore_regex = [('py:.*', r'(?!torch_gsample\b).*')]

sphinx_gallery_conf = {
    'examples_dirs': 'examples/gallery',
    'gallery_dirs': 'docs/gallery',
    'image_scrapers': ('picture_style.scrape_svg',),
    'reset_modules': ('picture_style.start_program',),
    'abort_on_example_error': True,
    'download_all_examples': False,
    'min_reported_time': 10**6,  # pages without times
    'show_signature': False,
    'write_computation_times': False,
}

html_theme = 'furo'
html_static_path = ['site']
html_css_files = ['site.css']
html_js_files = ['versions.js']
html_sidebars = {
    '**': [
        'sidebar/brand.html',
        'sidebar/versions.html',
        'sidebar/search.html',
        'sidebar/scroll-start.html',
        'sidebar/navigation.html',
        'sidebar/scroll-end.html',
    ]
}
html_search_scorer = 'docs/site/scorer.js'
html_title = f'torch_gsample {release}'
html_show_sphinx = False
html_show_copyright = False
pygments_style = 'friendly'


def name_the_rest(_: Sphinx, page: str, source: list[str]) -> None:
    """Lists the pages that are missing in the index."""
    if page == root_doc:
        pages = sorted(p.stem for p in Path(__file__).parent.glob('*.md'))
        named = source[0].split()
        rest = [p for p in pages if p not in named and p != 'index']
        if rest:
            options = ':caption: More\n:hidden:\n\n'
            names = '\n'.join(rest)
            source[0] += f'\n```{{toctree}}\n{options}{names}\n```\n'


def unlink_folders(_: Sphinx, page: str, source: list[str]) -> None:
    """Replaces links to folders by their text; the gallery has a page."""
    top = Path(__file__).parent.parent
    gallery = top / 'examples/gallery'
    here = top / Path(page).parent

    def text_of(link: re.Match) -> str:
        if (here / link[2]).resolve() == gallery:
            return f'[{link[1]}](/docs/gallery/index.rst)'
        return link[1] if (here / link[2]).is_dir() else link[0]

    source[0] = re.sub(r'\[([^][]+)\]\(([^)#:]+)\)', text_of, source[0])


def resolve_short_name(app: Sphinx, env: Any, node: Any, text: Any) -> Any:
    """Finds names of ``torch_gsample`` on the pages of their modules."""
    package, _, name = node.get('reftarget', '').rpartition('.')
    module = getattr(getattr(torch_gsample, name, None), '__module__', '')
    domain = env.domains['py']
    for target in domain.objects:
        home, _, last = target.rpartition('.')
        if package == project and last == name and module.startswith(home):
            kind, page = node['reftype'], node['refdoc']
            return domain.resolve_xref(
                env, page, app.builder, kind, target, node, text
            )
    return None


def shorten_ellipsis(*arguments: Any) -> tuple[str, str | None] | None:
    """Writes defaults of ``...`` as in the source."""
    signature, returned = arguments[-2:]
    if signature is None:
        return None
    return signature.replace('=Ellipsis', '=...'), returned


def setup(app: Sphinx) -> None:
    """Connects the functions above."""
    app.connect('source-read', name_the_rest)
    app.connect('source-read', unlink_folders)
    app.connect('missing-reference', resolve_short_name)
    app.connect('autodoc-process-signature', shorten_ellipsis)
