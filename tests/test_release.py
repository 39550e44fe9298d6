"""Requirements of a release: metadata, community files and the workflow."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import torch_gsample

tomllib = pytest.importorskip('tomllib')  # new in Python 3.11

TOP = Path(__file__).resolve().parent.parent
GITHUB = TOP / '.github'
PROJECT = tomllib.loads((TOP / 'pyproject.toml').read_text())['project']
WORKFLOW = yaml.safe_load((GITHUB / 'workflows/ci.yml').read_text())
CITATION = yaml.safe_load((TOP / 'CITATION.cff').read_text())
RECIPE = yaml.safe_load((TOP / 'tools/conda/recipe.yaml').read_text())
#: Names that conda has for distributions of PyPI.
CONDA = {'torch': 'pytorch', 'torch-geometric': 'pytorch_geometric'}


@pytest.mark.parametrize(
    ('schema', 'pattern'),
    [
        ('github-workflows', '.github/workflows/*.yml'),
        ('dependabot', '.github/dependabot.yml'),
        ('github-issue-forms', '.github/ISSUE_TEMPLATE/[bf]*.yml'),
        ('github-issue-config', '.github/ISSUE_TEMPLATE/config.yml'),
        ('citation-file-format', 'CITATION.cff'),
    ],
)
def test_community_files_have_their_schema(schema, pattern):
    files = sorted(map(str, TOP.glob(pattern)))
    assert files
    check = [sys.executable, '-m', 'check_jsonschema', *files]
    done = subprocess.run(
        [*check, '--builtin-schema', f'vendor.{schema}'],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_the_workflow_runs_targets_that_exist():
    """Schemas do not know the Makefile, nor what jobs need."""
    targets = re.findall(r'^([\w-]+):', (TOP / 'Makefile').read_text(), re.M)
    jobs = WORKFLOW['jobs']
    steps = [step for job in jobs.values() for step in job['steps']]
    run = [step['run'] for step in steps if 'run' in step]
    assert run
    for command in run:
        assert command.startswith('make ')
        assert {*command.split()[1:]} <= {*targets, 'test-wheel', 'sdist'}
    assert {*jobs['publish']['needs']} == {*jobs} - {'publish'}
    assert all(job['timeout-minutes'] <= 60 for job in jobs.values())
    uploaded = [s['with'] for s in steps if 'upload-artifact' in str(s)]
    loaded = [s['with'] for s in steps if 'download-artifact' in str(s)]
    assert all(item in uploaded for item in loaded)


def test_the_only_address_is_that_of_the_metadata():
    """There is none before the project is published, and none is invented."""
    home = PROJECT.get('urls', {}).get('Homepage')
    cited = CITATION.get('repository-code')
    assert cited == RECIPE['about'].get('homepage') == home
    listed = subprocess.run(
        ['git', 'ls-files', '*.md', '*.yml', '*.yaml', '*.toml', '*.cff'],
        cwd=TOP,
        capture_output=True,
        text=True,
    )
    files = listed.stdout.split() or ['README.md', 'pyproject.toml']
    pattern = r'https://git[\w.]+/[\w-]+/torch[_-]gsample\b'
    for name in files:
        for address in re.findall(pattern, (TOP / name).read_text()):
            assert address == home, name


def test_one_version_is_everywhere():
    version = torch_gsample.__version__
    assert str(CITATION['version']) == version
    sections = re.findall(
        r'^## ([\d.]+) \(([\d-]+)\)$', (TOP / 'CHANGELOG.md').read_text(), re.M
    )
    assert sections[0] == (version, str(CITATION['date-released']))


def test_the_conda_recipe_is_that_of_the_package():
    assert RECIPE['context']['version'] == torch_gsample.__version__
    assert RECIPE['about']['summary'] == PROJECT['description']
    assert RECIPE['about']['license'] == PROJECT['license']
    found = {re.sub(' ', '', item) for item in RECIPE['requirements']['run']}
    wanted = {f'python{PROJECT["requires-python"]}'}
    for item in PROJECT['dependencies']:
        name, version = re.fullmatch(r'([\w-]+)(.*)', item).groups()
        wanted.add(CONDA.get(name, name) + version)
    assert found == wanted
    entry = f'gsample = {PROJECT["scripts"]["gsample"]}'
    assert RECIPE['build']['python']['entry_points'] == [entry]
