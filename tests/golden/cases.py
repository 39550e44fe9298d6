"""All cases of golden tests: a name, and a function that returns a nest.

The name before an `@` is that of the hash: after it stands another way to the
same result.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.golden import (
    disk_cases,
    layer_cases,
    loader_cases,
    matrix_cases,
    operator_cases,
    program_cases,
    sampler_cases,
)
from tests.golden.digest import digest

HASHES = Path(__file__).with_name('hashes.json')
GROUPS = {
    'operators': operator_cases,
    'samplers': sampler_cases,
    'loaders': loader_cases,
    'matrices': matrix_cases,
    'programs': program_cases,
    'layers': layer_cases,
    'disk': disk_cases,
}


@lru_cache
def all_cases() -> dict[str, Callable[[], Any]]:
    return {
        f'{group}/{name}': case
        for group, module in GROUPS.items()
        for name, case in module.cases().items()
    }


def hash_of(name: str) -> str:
    """The short hash of a case's current results."""
    return digest(all_cases()[name]())[:20]


def expected() -> dict[str, str]:
    return json.loads(HASHES.read_text())
