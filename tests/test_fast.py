"""What ``make test-fast`` runs."""

import pytest

from tests.fast import OTHERS, SELECTION, TOP, concerned


@pytest.mark.parametrize(
    ('path', 'expected'),
    [
        ('tests/test_rng.py', ['tests/test_rng.py']),
        ('tests/spark/graphs.py', ['tests/spark']),
        ('csrc/core/philox.h', ['tests/core', 'tests/ops']),
        ('csrc/cuda/walk.cuh', ['tests/cuda']),
        ('LICENSE', []),
        ('tests/test_that_went.py', []),
    ],
)
def test_files_have_tests(path, expected):
    assert concerned(path) == expected


def test_a_module_has_the_concerned_its_folder_and_those_that_import_it():
    found = concerned('torch_gsample/spark/walk.py')
    assert 'tests/spark/test_operators.py' in found
    assert 'tests/viz/test_batch.py' not in found
    assert 'tests/test_rng.py' in concerned('torch_gsample/rng.py')


def test_all_folders_exist():
    folders = [f'tests/{name}' for name in SELECTION]
    tests = [path for paths in OTHERS.values() for path in paths]
    for path in [*folders, *OTHERS, *tests]:
        assert (TOP / path).exists(), path
