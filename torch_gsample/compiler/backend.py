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
from torch_gsample.torch_private.dynamo import argument_of, is_of_module


def backend(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a program captured by Dynamo.

    Use it by ``torch.compile(fn, backend='gsample')``.

    Samples and gradients are those of eager code for the same seed. Operators
    unknown to the passes run as plain torch code.

    Args:
        gm (torch.fx.GraphModule): The captured program.
        example_inputs (List[Any]): Its inputs; only their fake values by
            Dynamo are read.
        mode (str, optional): Ignored.
        options (Dict[str, Any], optional): See :class:`Options`.

    Raises:
        ValueError: If an option is unknown.
    """
    chosen = Options.read(options)
    program, trace = optimize(gm, chosen)
    if chosen.dump:
        Explanation('program', trace, program.graph).write(chosen.dump)
    return lower(program)


BACKENDS.append(backend)


def optimize(gm: GraphModule, options: Options) -> tuple[GraphModule, Trace]:
    """Returns a captured program after all passes, and their trace.

    Raises:
        PassError: If a pass fails and ``strict`` is set.
    """
    note_sources(gm)
    program = copy.deepcopy(gm)
    return program, options.rewrite(program)


def note_sources(gm: GraphModule) -> None:
    """Marks inputs that are arguments of the function.

    Copies of a graph lose Dynamo's information about their source.
    """
    for node in placeholders(gm.graph):
        node.meta['is_argument'] = argument_of(node) is not None
        node.meta['is_of_module'] = is_of_module(node)
