"""No sample of any operator, sampler, loader or program changes."""

import ast
import importlib
from pathlib import Path

import pytest
import torch

from tests.golden.cases import all_cases, expected, hash_of

#: Modules with a case for each public name, and the exceptions.
PUBLIC = {
    # Records of options and results.
    'torch_gsample.ops': {
        *('Layers', 'Sample', 'Sampling', 'Walks'),
        'last_neighbors',  # no draw
    },
    'torch_gsample.samplers': {'KeyedSampler'},
    # Last neighbours are no draw.
    'torch_gsample.loader': {
        *('BatchShape', 'GraphSAINTSampler', 'LastNeighborLoader'),
        'ClusterData',
    },
    'torch_gsample.algorithms': {'EdgeBandit', 'SaintNorm', 'Subgraphs'},
    'torch_gsample.storage': {'RowSource'},
    'torch_gsample.graph_sampling': {
        *('GraphProperties', 'SampleQuality'),
        *('graph_properties', 'sample_quality'),
    },
    'torch_gsample.nn': set(),
    # Products of a softmax's results are not exact.
    'torch_gsample.vertex.nn': {'HGTConv'},
    # Sessions, checks of frames, ids and layouts.
    'torch_gsample.spark': {
        *('SampledBatches', 'SampledGraph', 'SampledParquetLoader'),
        *('check_graph', 'local_session'),
        *('EncodedGraph', 'VertexIds', 'assign_ids', 'encode_graph'),
        *('read_graphalytics', 'read_ids', 'read_snb'),
        *('JobReport', 'StageMetrics', 'watch'),
        *('graph_properties', 'sample_quality'),
    },
}
#: On a hub, and by several threads where there are some.
THREADED = (
    'operators/sample_neighbors/hub/plain',
    'operators/sample_neighbors/hub/weighted disjoint',
    'operators/sample_layers/hub/nodes',
    'operators/sample_cols/hub/weighted',
    'operators/sum_columns/hub/3',
    'loaders/NeighborLoader/hub/plain',
    'matrices/sum/hub',
    'programs/ladies/hub',
    'layers/gatv2/hub',
)


@pytest.mark.filterwarnings('ignore:Cannot convert to bidirectional')
@pytest.mark.parametrize('name', all_cases())
def test_a_sample_is_the_one_of_the_golden_hash(name):
    golden, _, _ = name.partition('@')
    assert hash_of(name) == expected()[golden], (
        'a sample has changed: see tests/golden/write.py'
    )


@pytest.mark.parametrize('threads', [1, 2, 5])
@pytest.mark.parametrize('name', THREADED)
def test_a_sample_is_the_same_for_any_number_of_threads(name, threads):
    torch.set_num_threads(threads)
    assert hash_of(name) == expected()[name]


def test_hashes_are_those_of_cases():
    names = {name for name in all_cases() if '@' not in name}
    assert set(expected()) == names
    assert {name.partition('@')[0] for name in all_cases()} == names


def words() -> set[str]:
    """The names that the sources of the cases use."""
    out = set()
    folder = Path(__file__).parent
    spark = folder.parent / 'spark' / 'test_golden.py'
    for path in [*folder.glob('*operators.py'), *folder.glob('*_cases.py')]:
        out |= _words_of(path)
    return out | _words_of(spark)


def _words_of(path: Path) -> set[str]:
    out = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            out.add(node.attr)
        elif isinstance(node, ast.alias):
            out.add(node.name)
        elif isinstance(node, ast.Constant):  # names in tables
            out.add(node.value)
    return out


@pytest.mark.parametrize('module', PUBLIC)
def test_every_public_name_has_a_case(module):
    names = set(importlib.import_module(module).__all__)
    assert names - words() <= PUBLIC[module]
