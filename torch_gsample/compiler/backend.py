"""The backend of ``torch.compile``."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

from torch_gsample.compiler.explanation import Explanation
from torch_gsample.compiler.ir import placeholders
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.pipeline import Trace
from torch_gsample.ops._fake import BACKENDS
from torch_gsample.torch_private import argument_of, is_of_module


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
    program, trace = optimize(gm, chosen)
    if chosen.dump:
        Explanation('program', trace, program.graph).write(chosen.dump)
    return lower(program)


BACKENDS.append(backend)


def optimize(gm: GraphModule, options: Options) -> tuple[GraphModule, Trace]:
    """Returns a captured program after all passes, and its way there.

    Raises:
        PassError: If a pass fails, and that is an error by option.
    """
    note_sources(gm)
    program = copy.deepcopy(gm)
    return program, options.rewrite(program)


def note_sources(gm: GraphModule) -> None:
    """Notes which inputs the function is given as they are.

    Copies of a graph lose what Dynamo says about their source.
    """
    for node in placeholders(gm.graph):
        node.meta['is_argument'] = argument_of(node) is not None
        node.meta['is_of_module'] = is_of_module(node)
