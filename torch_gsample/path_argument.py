"""Paths in arguments, for functions that read or write files."""

import os
from pathlib import Path
from typing import Any


def path_argument(name: str, key: str, value: Any) -> Path:
    """Returns the path in an argument.

    Args:
        name (str): Name of the caller, for messages.
        key (str): Name of the argument.
        value (str or Path): The path.

    Raises:
        TypeError: If it is none.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(
            f"{name}: '{key}' must be a path (got {type(value).__name__})"
        )
    return Path(value)
