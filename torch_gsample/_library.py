"""Loads the extension, whose operators live in ``torch.ops.gsample``."""

from pathlib import Path

import torch

from torch_gsample.torch_private import has_kernel

PATH = Path(__file__).with_name('_C.so')


def load() -> None:
    """Loads the extension once.

    Raises:
        ImportError: If it was not built, or does not fit the installed torch.
    """
    if not PATH.exists():
        raise ImportError(
            f'torch_gsample: the extension {PATH} is missing. Build it with '
            f'`pip install --no-build-isolation -e .` in a checkout, or '
            f'reinstall the package.'
        )
    try:
        torch.ops.load_library(str(PATH))
    except OSError as error:
        raise ImportError(
            f'torch_gsample: the extension {PATH} does not load with torch '
            f'{torch.__version__} (2.11 or later is needed): {error}'
        ) from error


def has_cuda_kernel(operator: str) -> bool:
    """Whether an operator runs on GPUs in this build."""
    return has_kernel(f'gsample::{operator}', 'CUDA')


load()
