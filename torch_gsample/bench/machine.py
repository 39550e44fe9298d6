"""The machine and the versions of a benchmark."""

import importlib.metadata
import os
import platform
from datetime import date
from pathlib import Path

_PACKAGES = (
    'torch torch_gsample torch-geometric pyg-lib torch-sparse torch-cluster '
    'dgl'
).split()


def versions() -> dict[str, str]:
    """Returns the versions of what is measured, where it is installed."""
    out = {}
    for name in _PACKAGES:
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return out


def machine() -> str:
    """Describes the day, the processor and the versions in a line."""
    name = platform.processor() or platform.machine()
    info = Path('/proc/cpuinfo')
    names = (
        [
            line.split(':')[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith('model name')
        ]
        if info.exists()
        else []
    )
    if names:
        name = names[0]
    import torch

    import torch_gsample

    return (
        f'{date.today()}, {name}, {os.cpu_count()} cores, torch '
        f'{torch.__version__}, torch_gsample {torch_gsample.__version__}'
    )
