"""The backend of ``torch.compile``."""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch._dynamo.source import LocalSource
from torch.fx import GraphModule

from torch_gsample.compiler.ir import placeholders, verify
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.pipeline import PassError, Trace, run_passes


def backend(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles what Dynamo captured: ``torch.compile(fn, backend='gsample')``.

    Samples are those of eager code for the same seed, and gradients flow as
    they do there. What the passes do not know runs as plain torch code.

    Args:
        gm (torch.fx.GraphModule): The captured program.
        example_inputs (List[Any]): Its inputs; only Dynamo's fake values of
            them are looked at.
        mode (str, optional): Ignored.
        options (Dict[str, Any], optional): See :class:`Options`.

    Raises:
        ValueError: If an option is not known.
    """
    chosen = Options.read(options)
    note_sources(gm)
    program = copy.deepcopy(gm)
    try:
        trace = run_passes(program.graph, chosen)
    except PassError as error:
        if chosen.strict:
            raise
        warnings.warn(
            f'gsample: {error}: the program runs as it was captured',
            stacklevel=2,
        )
        program, trace = _as_captured(gm), None
    if chosen.dump and trace is not None:
        _write(Path(chosen.dump), trace)
    return lower(program)


def _as_captured(gm: GraphModule) -> GraphModule:
    """The program without passes, but for the form in which keys are found."""
    program = copy.deepcopy(gm)
    try:
        canonicalize(program.graph)
        verify(program.graph)
    except Exception:
        return copy.deepcopy(gm)
    return program


def note_sources(gm: GraphModule) -> None:
    """Notes which inputs the function is given as they are.

    Copies of a graph lose what Dynamo says about their source.
    """
    for node in placeholders(gm.graph):
        source = getattr(node, '_dynamo_source', None)
        node.meta['is_argument'] = isinstance(source, LocalSource)


def _write(folder: Path, trace: Trace) -> None:
    """Writes the text of a program after each pass, numbered."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob('*_captured.txt')))
    texts = [('captured', trace.captured)]
    texts += [(step.name, step.text) for step in trace.steps]
    for place, (name, text) in enumerate(texts):
        path = folder / f'{number:03}_{place:02}_{name}.txt'
        path.write_text(text)
