"""Reports on a compiled program: text, HTML and pictures."""

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.fx import Graph, Node

from torch_gsample.compiler.ir import is_pure
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.opaque import describe_opaque
from torch_gsample.compiler.page import time_text, write_page
from torch_gsample.compiler.pipeline import PASSES, Step, Trace


@dataclass
class OperatorTime:
    """The time of an operator of a compiled program.

    Args:
        text (str): Its line of the program.
        seconds (float): Measured, the median of several runs.
        predicted (float): The model's prediction, by which layouts are chosen
            before a measurement: seconds per call and per element; 0 if it is
            not an operator.
        line (str, optional): The file, the number and the text of the line
            of the program that it comes from.
        source (str, optional): The source of its generated kernel.
    """

    text: str
    seconds: float
    predicted: float
    line: str = ''
    source: str = ''


@dataclass
class Explanation:
    """The report on a compilation; see :func:`torch_gsample.explain`.

    Args:
        name (str): The program.
        trace (Trace): Its text after each pass.
        graph (torch.fx.Graph): The program after all passes.
        operators (List[OperatorTime]): The times of its operators, in order,
            without cached computations.
        once (float): Seconds of computations that are cached for a graph.
        eager (float): Seconds of a call of the program.
        compiled (float): Seconds of a call of the compiled program.
        choices (str): The decisions made by measuring.
        reads (str): The plan of the first call for reading graphs on disk.
    """

    name: str
    trace: Trace
    graph: Graph
    operators: list[OperatorTime] = field(default_factory=list)
    once: float = 0.0
    eager: float = 0.0
    compiled: float = 0.0
    choices: str = ''
    reads: str = ''

    @property
    def sources(self) -> dict[str, str]:
        """The sources of generated kernels, by expression."""
        targets = [node.target for node in self.graph.nodes]
        return {
            getattr(target, '__name__', str(target)): target.source
            for target in targets
            if isinstance(getattr(target, 'source', None), str)
        }

    @property
    def opaque(self) -> list[str]:
        """Operators unknown to the passes, with their line and cost."""
        return describe_opaque(self.graph)

    def __str__(self) -> str:
        parts = [f'{title}\n\n{text}' for title, text in self._sections()]
        return '\n\n'.join(part.rstrip() for part in parts) + '\n'

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns collapsible sections for notebooks."""
        parts = [
            f'<details open><summary><b>{html.escape(title)}</b></summary>'
            f'<pre>{html.escape(text)}</pre></details>'
            for title, text in self._sections()
        ]
        return '\n'.join(parts)

    def to_html(self, path: str | Path) -> None:
        """Writes a page: source lines, operators, kernels, costs and passes.

        Args:
            path (str): The file.
        """
        Path(path).write_text(write_page(self), encoding='utf-8')

    def to_dot(self) -> str:
        """Returns the program after all passes as Graphviz source.

        Cached computations are grey, side effects red.
        """
        lines = ['digraph {', '  node [shape=box, fontname=monospace];']
        names = {n: f'n{i}' for i, n in enumerate(self.graph.nodes)}
        texts = ir_text(self.graph).splitlines()
        for (node, name), text in zip(names.items(), texts, strict=True):
            lines.append(f'  {name} [label={_quoted(text)}{_color(node)}];')
            lines += [f'  {names[n]} -> {name};' for n in node.all_input_nodes]
        return '\n'.join([*lines, '}']) + '\n'

    def plot(self) -> Any:
        """Draws the program after all passes.

        Returns:
            graphviz.Source: The picture, which notebooks show; its method
            ``render`` writes it to a file.

        Raises:
            ImportError: If the package graphviz is not installed.
                :meth:`to_dot` does not need it.
        """
        try:
            import graphviz
        except ImportError as error:
            raise ImportError(
                "plot: the package 'graphviz' is missing: install it, or "
                "write 'to_dot()' to a file for the program 'dot'"
            ) from error
        return graphviz.Source(self.to_dot())

    def write(self, folder: str | Path) -> None:
        """Writes the report to a folder, under the next free number.

        Args:
            folder (str): The folder; created if missing.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob('*_00_captured.txt')))
        while True:  # other processes may write as well
            try:
                first = folder / f'{number:03}_00_captured.txt'
                first.open('x').close()
                break
            except FileExistsError:
                number += 1
        first.write_text(self.trace.captured)
        for place, step in enumerate(self.trace.steps, 1):
            path = folder / f'{number:03}_{place:02}_{step.name}.txt'
            comments = [f'# {line}\n' for line in _about(step)]
            path.write_text(''.join(comments) + step.text)
        for place, source in enumerate(self.sources.values()):
            (folder / f'{number:03}_kernel_{place:02}.cpp').write_text(source)
        (folder / f'{number:03}_program.dot').write_text(self.to_dot())
        self.to_html(folder / f'{number:03}_program.html')

    def _sections(self) -> list[tuple[str, str]]:
        """Returns titles and texts."""
        out = [(f'{self.name}, as captured', self.trace.captured)]
        for step in self.trace.steps:
            title, *notes = _about(step)
            text = ''.join(f'  {note}\n' for note in notes)
            out.append((title, text + '\n' * bool(notes) + step.text))
        if self.opaque:
            text = ''.join(f'{line}\n' for line in self.opaque)
            out.append(('Opaque functions', text))
        for name, source in self.sources.items():
            out.append((f'Generated for {name}', source))
        if self.choices:
            out.append(('Chosen by measuring', self.choices))
        if self.reads:
            out.append(('Read from disk', self.reads))
        if self.compiled:
            out.append((f'Time: {self._summary()}', self._table()))
        return out

    def _summary(self) -> str:
        text = f'{time_text(self.compiled)}, uncompiled '
        text += time_text(self.eager)
        if self.once:
            text += f', once for a graph {time_text(self.once)}'
        return text

    def _table(self) -> str:
        lines = ['measured    predicted   operator']
        lines += [
            f'{time_text(op.seconds):11} {time_text(op.predicted):11} '
            f'{op.text}'
            for op in self.operators
        ]
        return '\n'.join(lines) + '\n'


def _about(step: Step) -> list[str]:
    """Returns name, reason, time and decisions of a pass."""
    reasons = {item.name: item.reason for item in PASSES}
    reason = reasons.get(step.name, '')
    return [
        f'{step.name} ({reason}), {time_text(step.seconds)}',
        *step.notes,
    ]


def _quoted(text: str) -> str:
    escaped = text.replace('\\', '\\\\').replace('"', '\\"')
    return f'"{escaped}"'


def _color(node: Node) -> str:
    if node.op not in ('placeholder', 'output') and not is_pure(node):
        return ', color=red'
    invariant = node.meta.get('invariant') and node.op != 'placeholder'
    return ', style=filled, fillcolor=lightgrey' if invariant else ''
