"""The programs of layers, made once."""

from collections.abc import Callable
from typing import Any

import torch

from torch_gsample.locks import new_lock
from torch_gsample.vertex.program import VertexProgram

_lock = new_lock()


def layer_program(layer: str) -> Callable[[Any], VertexProgram]:
    """Creates vertex programs whose errors name a layer."""
    return lambda function: VertexProgram(function, layer)


def made_once(
    make: Callable[..., VertexProgram],
) -> Callable[..., VertexProgram]:
    """Makes one program for each combination of arguments.

    Dynamo calls the maker instead of tracing it. It reads attributes of a
    class one by one, where it would not see a later entry of a dictionary.

    Args:
        make (Callable): Makes a program of hashable arguments.
    """
    names: dict[tuple, str] = {}

    class Made:
        """Has the programs as attributes."""

    @torch.compiler.assume_constant_result
    def name_of(*key: Any) -> str:
        with _lock:
            if key not in names:
                name = f'program_{len(names)}'
                setattr(Made, name, make(*key))
                names[key] = name
            return names[key]

    def program(*key: Any) -> VertexProgram:
        made: VertexProgram = getattr(Made, name_of(*key))
        return made

    return program
