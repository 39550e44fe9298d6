"""The former module of :class:`torch_gsample.CSC`."""

from typing import Any

from torch_gsample import _deprecated


def __getattr__(name: str) -> Any:
    return _deprecated.find(__name__, name)
