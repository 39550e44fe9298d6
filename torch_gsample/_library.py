"""Loads the extension, whose operators live in ``torch.ops.gsample``."""

from pathlib import Path

import torch


def load() -> None:
    """Loads the extension once.

    Raises:
        ImportError: If it was not built, or does not fit the installed torch.
    """
    path = Path(__file__).with_name('_C.so')
    if not path.exists():
        raise ImportError(
            f'torch_gsample: the extension {path} is missing. Build it with '
            f'`pip install --no-build-isolation -e .` in a checkout, or '
            f'reinstall the package.'
        )
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        raise ImportError(
            f'torch_gsample: the extension {path} does not load with torch '
            f'{torch.__version__} (2.11 or later is needed): {error}'
        ) from error


load()
