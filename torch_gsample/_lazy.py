"""Packages that import a name's module when the name is first used (PEP 562).

The names of each module come in; ``__getattr__`` and ``__dir__`` go out.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str,
    modules: Mapping[str, Iterable[str]],
    parts: Iterable[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package (str): Its name.
        modules (Mapping[str, Iterable[str]]): The public names of each of its
            modules.
        parts (Iterable[str], optional): Modules that are attributes.
    """
    home = {name: module for module in modules for name in modules[module]}
    parts = frozenset(parts)

    def get(name: str) -> Any:
        if name in parts:
            return import_module(f'{package}.{name}')
        if name not in home:
            raise AttributeError(
                f'module {package!r} has no attribute {name!r}',
                name=name,
                obj=sys.modules[package],  # for Python's "Did you mean"
            )
        value = getattr(import_module(f'{package}.{home[name]}'), name)
        setattr(
            sys.modules[package], name, value
        )  # found directly from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *parts})

    return get, names
