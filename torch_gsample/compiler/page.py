"""The page of ``Explanation.to_html``: source, program and kernels.

An explanation of a compiled program comes in; a page without scripts and
external files goes out.
"""

import html
import itertools
from collections.abc import Sequence
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881;
  --measured: #2a7f62; --predicted: #b58b3b; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 80rem; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; }
pre, code, td { font-family: ui-monospace, monospace; font-size: 12.5px; }
pre { background: var(--soft); border-radius: 6px; margin: .3rem 0;
  overflow-x: auto; padding: .6rem .8rem; }
table { border-collapse: collapse; width: 100%; }
th { font-weight: 600; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem;
  vertical-align: top; }
td { overflow-wrap: anywhere; }
td.ir { white-space: pre-wrap; }
td.cost { white-space: nowrap; width: 13rem; }
@media (max-width: 45rem) {
  table { table-layout: fixed; } th, td { padding: .3rem .2rem; }
  th { overflow: hidden; } td.cost { width: 25%; }
}
.bar { border-radius: 2px; display: block; height: .55rem; margin-top: .2rem;
  min-width: 1px; }
.measured { background: var(--measured); }
.predicted { background: var(--predicted); }
summary { cursor: pointer; }
"""
#: Text for operators without a source line.
_NO_LINE = 'made by passes'


def write_page(explanation: Any) -> str:
    """Returns the page.

    Args:
        explanation (Explanation): Its content: each source line next to its
            operators, their kernels and costs; then the passes.
    """
    title = html.escape(f'{explanation.name}, compiled')
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n'
        f'<h1>{title}</h1>\n{_calls(explanation)}{_operators(explanation)}'
        f'<h2>Passes</h2>\n{explanation._repr_html_()}\n</body></html>\n'
    )


def _calls(explanation: Any) -> str:
    """Returns the time of a call, compiled and eager."""
    if not explanation.compiled:
        return ''
    times = {'Compiled': explanation.compiled, 'Eager': explanation.eager}
    if explanation.once:
        times['Once a graph'] = explanation.once
    longest = max(times.values())
    rows = [
        f'<tr><td>{name}</td><td class="cost">{_cost(seconds, longest)}</td>'
        '</tr>\n'
        for name, seconds in times.items()
    ]
    return f'<h2>Time of a call</h2>\n<table>\n{"".join(rows)}</table>\n'


def _operators(explanation: Any) -> str:
    """Returns source lines with their operators and costs."""
    if not explanation.operators:
        return ''
    longest = max(
        max(op.seconds, op.predicted) for op in explanation.operators
    )
    lines = [
        '<h2>Source, operators and kernels</h2>\n<table>\n<tr><th>source</th>'
        '<th>operators and kernels</th><th>measured</th><th>predicted</th>'
        '</tr>\n'
    ]
    for line, group in itertools.groupby(
        explanation.operators, lambda op: op.line
    ):
        lines += _rows(line, list(group), longest)
    return ''.join([*lines, '</table>\n'])


def _rows(line: str, operators: Sequence[Any], longest: float) -> list[str]:
    """Returns the rows of one source line's operators."""
    source = f'<td rowspan="{len(operators)}">{html.escape(line or _NO_LINE)}'
    source += '</td>'
    rows = []
    for op in operators:
        kernel = (
            f'<details><summary>kernel</summary><pre>{html.escape(op.source)}'
            '</pre></details>'
            if op.source
            else ''
        )
        rows.append(
            f'<tr>{source}<td class="ir">{html.escape(op.text)}{kernel}</td>'
            f'<td class="cost">{_cost(op.seconds, longest)}</td>'
            f'<td class="cost">{_cost(op.predicted, longest, "predicted")}'
            '</td></tr>\n'
        )
        source = ''
    return rows


def _cost(seconds: float, longest: float, kind: str = 'measured') -> str:
    """Returns a time, with a bar for its share of the longest."""
    if not seconds:
        return ''
    share = 100 * seconds / longest
    return (
        f'{time_text(seconds)}<span class="bar {kind}" '
        f'style="width:{share:.1f}%"></span>'
    )


def time_text(seconds: float) -> str:
    """Returns a time in a suitable unit."""
    if seconds < 1e-3:
        return f'{seconds * 1e6:.1f} us'
    return f'{seconds * 1e3:.2f} ms'
