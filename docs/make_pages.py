"""Writes the pages that say what the code says.

    python docs/make_pages.py

A page for each pass is made of its docstring,
``how_a_sampler_is_compiled.md`` has the text of a program after each pass,
and ``api`` has a page for each module with public names, which Sphinx fills. A
test compares them with what the code says now.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import torch

import torch_gsample as gsample
from torch_gsample import SparseSample
from torch_gsample.algorithms import ladies
from torch_gsample.compiler.pipeline import PASSES, Pass, Step

DOCS = Path(__file__).resolve().parent
WALK = DOCS / 'how_a_sampler_is_compiled.md'
_NOTICE = '<!-- Made by `make docs-pages`: do not edit. -->'
#: Modules without ``__all__`` whose names are public.
_MODULES = 'placement', 'rng', 'testing'
_BEGIN, _END = '<!-- begin: the passes -->', '<!-- end: the passes -->'


def pages() -> dict[Path, str]:
    """Returns the text of each page."""
    out = {
        DOCS / 'passes' / f'{item.name}.md': _page(place)
        for place, item in enumerate(PASSES)
    }
    out[DOCS / 'passes' / 'README.md'] = _index()
    before, rest = WALK.read_text().split(_BEGIN)
    after = rest.split(_END)[1]
    out |= {
        DOCS / 'api' / f'{name}.md': _reference(name)
        for name in public_modules()
    }
    out[WALK] = f'{before}{_BEGIN}\n\n{_walk()}\n{_END}{after}'
    return out


# The reference ###############################################################


def public_modules() -> list[str]:
    """Returns the modules that users import from."""
    out = ['torch_gsample', *(f'torch_gsample.{m}' for m in _MODULES)]
    for found in pkgutil.walk_packages(
        gsample.__path__, 'torch_gsample.', onerror=lambda _: None
    ):
        private = any(part.startswith('_') for part in found.name.split('.'))
        if not private and hasattr(
            importlib.import_module(found.name), '__all__'
        ):
            out.append(found.name)
    return sorted(out)


def _reference(name: str) -> str:
    parts = [f'# {name}\n\n{_NOTICE}\n', _directive(f'automodule:: {name}')]
    if name == 'torch_gsample':
        parts += _names()
    else:
        parts.append(_summaries(public_names(name)))
    return '\n'.join(parts)


def _directive(text: str) -> str:
    return f'```{{eval-rst}}\n.. {text}\n```\n'


def _summaries(names: list[str]) -> str:
    """Lists names with their first sentences; each gets a page of its own."""
    lines = ''.join(f'\n   {name}' for name in names)
    return _directive(f'autosummary::\n   :toctree: generated\n{lines}')


def _names() -> list[str]:
    """Says of each name of the package where it is described, or does so."""
    lines = ['| name | described in |\n|---|---|']
    here = []
    modules = [m for m in public_modules() if m != 'torch_gsample']
    for name in gsample.__all__:
        value = getattr(gsample, name)
        if inspect.ismodule(value):
            lines.append(
                f'| `{name}` | [{value.__name__}]({value.__name__}.md) |'
            )
            continue
        # An operator may have the name of the function that calls it.
        homes = [
            m
            for m in modules
            if name in public_names(m)
            and getattr(importlib.import_module(m), name) is value
        ]
        if homes:
            link = f'{{py:obj}}`{name} <{homes[0]}.{name}>`'
            lines.append(f'| {link} | [{homes[0]}]({homes[0]}.md) |')
        elif name != '__version__':
            here.append(name)
    return ['\n'.join(lines) + '\n', _summaries(here)]


def public_names(module: str) -> list[str]:
    """Returns the names that a public module is there for."""
    loaded = importlib.import_module(module)
    own = [
        name
        for name, value in vars(loaded).items()
        if getattr(value, '__module__', '') == module and name[0] != '_'
    ]
    return getattr(loaded, '__all__', own)


# A page for each pass ########################################################


def _page(place: int) -> str:
    item = PASSES[place]
    module = _module(item)
    path = Path(str(module.__file__)).relative_to(DOCS.parent)
    lines = [
        f'# `{item.name}`\n\n{_NOTICE}\n',
        markdown(inspect.getdoc(module) or ''),
        '## Position\n',
        f'Pass {place + 1} of {len(PASSES)}. Reason: {item.reason}.',
    ]
    for word, other in (('Previous', place - 1), ('Next', place + 1)):
        if 0 <= other < len(PASSES):
            name = PASSES[other].name
            lines.append(f'{word}: [`{name}`]({name}.md).')
    lines.append(f'Source: [`{path}`](../../{path}).')
    return '\n'.join(lines) + '\n'


def _index() -> str:
    lines = [
        f'# Passes, in order\n\n{_NOTICE}\n',
        f'[How a sampler is compiled](../{WALK.name}) shows their effects on',
        'a program.\n',
        '| pass | effect | reason for the position |\n|---|---|---|',
    ]
    lines += [
        f'| [`{p.name}`]({p.name}.md) | {_summary(p)} | {p.reason} |'
        for p in PASSES
    ]
    return '\n'.join(lines) + '\n'


def _module(item: Pass) -> ModuleType:
    module = inspect.getmodule(inspect.unwrap(item.run))
    assert module is not None
    return module


def _summary(item: Pass) -> str:
    text = inspect.getdoc(_module(item)) or ''
    return _inline(' '.join(text.split('\n\n')[0].split())).rstrip('.')


def markdown(text: str) -> str:
    """Turns a docstring into Markdown.

    What is indented below a line that ends with ``::`` is a block of text.
    """
    out: list[str] = []
    in_block = False
    for line in text.splitlines():
        if in_block and line and not line.startswith('    '):
            while not out[-1]:
                out.pop()
            out += ['```', '']
            in_block = False
        if in_block:
            if not line and out[-1] == '```text':
                continue
            out.append(line[4:])
        elif line.endswith('::'):
            out += [_inline(line[:-1]), '', '```text']
            in_block = True
        else:
            out.append(_inline(line))
    joined = '\n'.join(out + ['```'] * in_block) + '\n'
    # Markdown has no tables without a head: they stay as they are.
    return re.sub(r'(?ms)^(=+ +=+\n.*?^=+ +=+)$', r'```text\n\1\n```', joined)


def _inline(line: str) -> str:
    line = re.sub(r':\w+:`~?[\w.]*?(\w+)`', r'`\1`', line)
    return line.replace('``', '`')


# The way of a program ########################################################


def explain_ladies() -> gsample.compiler.Explanation:
    """Compiles LADIES for a small graph."""
    edge_index = torch.arange(60).view(2, 30) * 7 % 10
    value = torch.arange(1.0, 31)
    A = SparseSample.from_edge_index(edge_index, value, num_nodes=10)
    return gsample.explain(ladies, A, torch.arange(3), [4])


def _walk() -> str:
    trace = explain_ladies().trace
    _, _, body = inspect.getsource(ladies).split('"""')
    parts = [
        f'The program, with `fanouts=[4]`:\n\n```python{body}```\n',
        f'## Captured\n\n{_block(trace.captured)}',
    ]
    reasons = {item.name: item for item in PASSES}
    fired = {step.name for step in trace.steps}
    parts += [_section(step, reasons[step.name]) for step in trace.steps]
    idle = [p.name for p in PASSES if p.name not in fired]
    if idle:
        links = ', '.join(f'[`{n}`](passes/{n}.md)' for n in idle)
        parts.append(f'## Without effect\n\nOn this program: {links}.\n')
    return '\n'.join(parts)


def _section(step: Step, item: Pass) -> str:
    link = f'[`{step.name}`](passes/{step.name}.md)'
    notes = ''.join(f'- {_inline(note)}\n' for note in step.notes)
    return (
        f'## {step.name}\n\n{link}: {_summary(item)}.\n\n'
        + (f'{notes}\n' if notes else '')
        + _block(step.text)
    )


def _block(text: str) -> str:
    return f'```text\n{text}```\n'


def main() -> None:
    texts = pages()
    for folder in (DOCS / 'api', DOCS / 'passes'):
        folder.mkdir(exist_ok=True)
        for path in set(folder.glob('*.md')) - set(texts):
            path.unlink()  # its pass or module is gone
    for path, text in texts.items():
        path.write_text(text)


if __name__ == '__main__':
    main()
