"""Ends the choice of layouts: fuses the chosen candidates."""

import copy
import warnings
from collections.abc import Mapping

from torch.fx import GraphModule

from torch_gsample.compiler.cost import resolve
from torch_gsample.compiler.pipeline import AFTER_LAYOUTS, run_again


def settle(module: GraphModule, picks: Mapping[str, str]) -> None:
    """Keeps the chosen candidates of a program, and fuses the rest.

    A value that two candidates read is stored for both. If one remains, a
    kernel may compute it, so the passes after the choice run again. If one
    fails, a warning names it, and the program is left unfused.

    Args:
        module (torch.fx.GraphModule): The program after all passes.
        picks (Dict[str, str]): The candidate of each choice.
    """
    resolve(module.graph, picks)
    names = module.meta.get(AFTER_LAYOUTS, ())
    resolved = copy.deepcopy(module.graph)
    try:
        run_again(module.graph, names)
    except Exception as error:
        warnings.warn(f'gsample: {error}', stacklevel=2)
        module.graph = resolved
