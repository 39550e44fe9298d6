"""Every error of the operators' Python fronts, by type and by message."""

import ast
import re
from pathlib import Path

import pytest
import torch

from tests.ops.columns_errors import COLUMNS_ERRORS
from tests.ops.cuda_errors import CUDA_ERRORS
from tests.ops.device_errors import DEVICE_ERRORS
from tests.ops.edge_map_errors import EDGE_MAP_ERRORS
from tests.ops.hops_errors import HOPS_ERRORS
from tests.ops.neighbor_errors import NEIGHBOR_ERRORS, sample
from tests.ops.segment_errors import SEGMENT_ERRORS
from tests.ops.vertex_map_errors import VERTEX_MAP_ERRORS
from tests.ops.walk_errors import WALK_ERRORS
from torch_gsample import ops
from torch_gsample.ops import _check
from torch_gsample.ops.last_neighbors import _by_columns
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])
TIME = torch.tensor([1, 2, 3])
IDS = torch.arange(2)
META = torch.empty(4, dtype=torch.int64, device='meta')
NONE = torch.tensor([], dtype=torch.int64)


def sliced(indptr=INDPTR, indices=INDICES):
    return ops.slice_cols(indptr, indices, SEEDS)


def coo(row=(0, 1), col=(1, 0), num_rows=2, num_cols=2, index_dtype=None):
    return ops.coo_to_csc(
        torch.as_tensor(row),
        torch.as_tensor(col),
        num_rows,
        num_cols,
        index_dtype,
    )


def csc(indptr, indices=(0, 1), num_rows=2):
    indptr, indices = torch.tensor(indptr), torch.tensor(indices)
    ops.formats.check_csc(indptr, indices, num_rows, 'g')


def weights(weight, indptr=INDPTR):
    return ops.cumulate_weights(indptr, torch.as_tensor(weight), 'w')


def induce(rows=SEEDS, cols=SEEDS, row_batch=None, col_batch=None):
    return ops.induce_subgraph(
        INDPTR, INDICES, 3, rows, cols, row_batch, col_batch
    )


def negative(ids=IDS, num_nodes=3, **kw):
    return ops.negative_sample(ids, num_nodes, key=KEY, **kw)


def sample_nodes(k=1, num_nodes=3, **kw):
    return ops.sample_nodes(num_nodes, k, key=KEY, **kw)


VECTORS = [
    (TypeError, lambda: sample(seeds=[0]), "'seeds' must be a tensor (got in"),
    (TypeError, lambda: sliced(INDPTR.float()), "'indptr' must be int32 or i"),
    (TypeError, lambda: sample(seeds=SEEDS.short()), 'int64 (got torch.int16'),
    (ValueError, lambda: sliced(INDPTR[None]), 'a vector (got shape [1, 4])'),
    (ValueError, lambda: sliced(META), "'indptr' must be on the CPU (got met"),
    (ValueError, lambda: sliced(indices=META), "'indices' must be on the CPU"),
    (ValueError, lambda: sample(seeds=META), "'seeds' must be on the CPU (go"),
    (ValueError, lambda: sample(key=KEY.to('meta')), "'key' must be on the C"),
    (ValueError, lambda: negative(META), "'ids' must be on the CPU (got meta"),
    (ValueError, lambda: negative(max_time=META), "'max_time' must be on the"),
    (
        ValueError,
        lambda: weights(TIME.float().to('meta')),
        "'w' must be on th",
    ),
    (ValueError, lambda: sliced(NONE), "'indptr' must have at least one elem"),
    (ValueError, lambda: weights([], NONE), "'indptr' must have at least one"),
    (ValueError, lambda: ops.configuration_model(NONE, 0), 'at least one ele'),
]

FORMATS = [
    (ValueError, lambda: coo(row=[0]), 'the same length (got 1 and 2)'),
    (IndexError, lambda: coo(row=[0, 2]), "'row' must be in [0, 2) (got 2)"),
    (IndexError, lambda: coo(col=[-3, 0]), "'col' must be in [0, 2) (got -3)"),
    (
        IndexError,  # and not 0, its low half
        lambda: coo(torch.tensor([0, 1]).int(), torch.tensor([2**32, 1])),
        "'col' must be in [0, 2) (got 4294967296)",
    ),
    (TypeError, lambda: coo(index_dtype=torch.float), "'index_dtype' must be"),
    (
        ValueError,
        lambda: ops.formats.index_widths('op', 2**31, 5, torch.int32),
        "op: 'index_dtype' must be torch.int64 for 2147483648 edges and 5",
    ),
    (
        ValueError,
        lambda: ops.formats.index_widths('op', 5, 2**31, torch.int32),
        'torch.int64 for 5 edges and 2147483648 nodes',
    ),
    (
        ValueError,
        lambda: csc([1, 2, 2]),
        "'indptr' of g must start at 0 (got ",
    ),
    (ValueError, lambda: csc([0, 3, 2]), 'descend (it does at position 2, to'),
    (ValueError, lambda: csc([0, 1, 1]), 'end at the number of edges, 2 (got'),
    (IndexError, lambda: csc([0, 1, 2], [0, 2]), '(got 2 at position 1)'),
    (IndexError, lambda: csc([0, 1, 2], [-1, 0]), '[0, 2) (got -1 at positi'),
    (
        TypeError,
        lambda: weights([1j] * 3),
        'a vector of real numbers (got tor',
    ),
    (TypeError, lambda: weights([[1.0]]), 'torch.float32 of shape [1, 1])'),
    (ValueError, lambda: weights([1.0]), "'w' must have 3 elements, one f"),
    (
        ValueError,
        lambda: _check.count('op', 'k', 0),
        'must be at least 1 (got',
    ),
    (
        ValueError,
        lambda: ops.formats.positive_weights(torch.tensor([0, -2.0])),
        "positive_weights: 'weight' must be finite and not negative (got -2.0",
    ),
    (ValueError, lambda: weights([1, -1, 1]), '(got -1.0 at position 1)'),
    (ValueError, lambda: weights([1, 1, torch.nan]), 'nan at position 2'),
    (ValueError, lambda: weights([torch.inf] * 3), '(got inf at position 0)'),
    (
        TypeError,
        lambda: ops.configuration_model(INDPTR, 0, torch.float32),
        "'index_dtype' must be torch.int32 or torch.int64 (got torch.float32)",
    ),
]

OTHERS = [
    (
        IndexError,
        lambda: _by_columns(
            torch.tensor([0]), NONE, NONE, SEEDS[1:], IDS[1:], 1
        ),
        "last_neighbors: 'cols' must be in [-1, 0) (got 2 at position 0)",
    ),
    (
        ValueError,
        lambda: ops.last_neighbors(
            INDPTR, INDICES, TIME, IDS, IDS, 1, edge_id=IDS
        ),
        "last_neighbors: 'edge_id' must have 3 elements (got 2)",
    ),
    (
        ValueError,
        lambda: ops.gather_rows(torch.tensor(1), SEEDS),
        'have at least one dimension (got shape [])',
    ),
    (
        ValueError,
        lambda: ops.gather_rows(META, SEEDS),
        "'input' must be on cpu, ",
    ),
    (
        IndexError,
        lambda: ops.gather_rows(SEEDS, TIME),
        "gather_rows: 'index' must be in [0, 2) (got 2 at position 1)",
    ),
    (
        TypeError,
        lambda: ops.gather_rows(TIME, SEEDS, widen=True),
        "'input' must be bfloat16, float16 or float32 to widen, or int8 with "
        "'scale' (got torch.int64)",
    ),
    (
        TypeError,
        lambda: ops.gather_rows(TIME, SEEDS, TIME.float()),
        "'input' must be int8 with 'scale' (got torch.int64)",
    ),
    (
        ValueError,
        lambda: ops.gather_rows(TIME.char(), SEEDS, TIME[:2].float()),
        "'scale' must be float32 of shape [3] on cpu (got torch.float32 of "
        'shape [2] on cpu)',
    ),
    (
        ValueError,
        lambda: ops.gather_rows(TIME.char(), SEEDS, TIME.double()),
        '(got torch.float64 of shape [3] on cpu)',
    ),
    (
        NotImplementedError,
        lambda: ops.gather_rows(
            TIME.half().requires_grad_(), SEEDS, widen=True
        ),
        'gather_rows: rows that are widened from torch.float16 have no grad',
    ),
    (
        NotImplementedError,
        lambda: ops.gather_rows(
            TIME.char(), SEEDS, TIME.float().requires_grad_()
        ),
        'rows that are widened from torch.int8 have no gradients',
    ),
    (TypeError, lambda: ops.gather_rows(TIME, TIME > 1), 'got torch.bool'),
    (
        IndexError,
        lambda: induce(rows=SEEDS + 1),
        "'row_nodes' must be in [0, ",
    ),
    (
        IndexError,
        lambda: induce(cols=SEEDS - 1),
        "'col_nodes' must be in [0, ",
    ),
    (ValueError, lambda: induce(row_batch=SEEDS), 'must be given together'),
    (
        ValueError,
        lambda: induce(row_batch=SEEDS, col_batch=TIME),
        "'col_batch' must have 2 elements (got 3)",
    ),
    (TypeError, lambda: negative(IDS.float()), "'ids' must be int32 or int64"),
    (
        ValueError,
        lambda: negative(order=IDS),
        "'order' must have 3 elements (",
    ),
    (
        ValueError,
        lambda: negative(cum_weight=IDS),
        "'cum_weight' must have 4 ",
    ),
    (
        ValueError,
        lambda: negative(anchor=TIME),
        "'anchor' must have 2 element",
    ),
]

MATRICES = [
    (
        IndexError,
        lambda: ops.slice_cols(INDPTR, INDICES, SEEDS + 1),
        "'cols' must be in [0, 3) (got 3)",
    ),
    (
        IndexError,
        lambda: ops.slice_rows(INDPTR, INDICES, 3, SEEDS - 1),
        "'rows' must be in [0, 3) (got -1)",
    ),
    (
        IndexError,
        lambda: ops.unique_nodes(TIME, 3),
        "'id' must be in [0, 3) (got 3)",
    ),
    (
        TypeError,
        lambda: ops.mask_columns(INDPTR, INDICES),
        "mask_columns: 'mask' must be bool (got torch.int64)",
    ),
    (
        ValueError,
        lambda: ops.mask_columns(INDPTR, (INDICES > 0).view(1, -1)),
        "mask_columns: 'mask' must be a vector (got shape [1, 3])",
    ),
    (
        ValueError,
        lambda: ops.slice_cols(INDPTR[:0], INDICES, SEEDS),
        "slice_cols: 'indptr' must have at least one element",
    ),
    (
        IndexError,
        lambda: ops.has_edges(INDPTR, INDICES, INDPTR, INDICES, num_rows=2),
        "has_edges: 'rows' must be in [0, 2) (got 2)",
    ),
    (
        ValueError,
        lambda: ops.has_edges(INDPTR, INDICES, INDPTR, INDICES, SEEDS),
        "has_edges: 'ptr' must have 3 elements, one more than there are "
        'columns (got 4)',
    ),
    (
        ValueError,
        lambda: ops.match_edges(
            INDPTR, INDICES, 3, INDPTR, INDICES.flip(0), 3
        ),
        'match_edges: two matrices must have the same edges (got 3 edges of '
        '[3, 3] and 3 of [3, 3], or edges at other positions)',
    ),
    (ValueError, lambda: sample_nodes(-1), "'k' must not be negative (got -1"),
    (
        ValueError,
        lambda: sample_nodes(cum_weight=TIME),
        "'cum_weight' must have 4 elements (got 3)",
    ),
    (
        TypeError,
        lambda: ops.random_uniform(TIME.float(), key=KEY),
        "'id' must be int32 or int64 (got torch.float32)",
    ),
    (
        TypeError,
        lambda: ops.random_uniform(TIME, key=None),
        "'key' must be an int64 tensor (got None)",
    ),
]

CASES = VECTORS + NEIGHBOR_ERRORS + FORMATS + OTHERS + MATRICES
CASES += SEGMENT_ERRORS + HOPS_ERRORS + WALK_ERRORS + EDGE_MAP_ERRORS
CASES += COLUMNS_ERRORS + CUDA_ERRORS + DEVICE_ERRORS + VERTEX_MAP_ERRORS


@pytest.mark.parametrize(('error', 'call', 'message'), CASES)
def test_errors_name_the_argument_the_rule_and_the_value(error, call, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert type(caught.value) is error
    assert re.match(r'\w+: ', str(caught.value))  # the operator


def messages():
    for error, call, _ in CASES:
        with pytest.raises(error) as caught:
            call()
        yield str(caught.value)


def raised_texts():
    """The longest fixed text of every `raise` in the fronts."""
    for path in sorted(Path(ops.__file__).parent.glob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                texts = [
                    part.value
                    for part in ast.walk(node.exc)
                    if isinstance(part, ast.Constant)
                    and isinstance(part.value, str)
                ]
                yield max(texts, key=len)


def test_every_error_of_the_fronts_is_tested():
    known, texts = list(messages()), list(raised_texts())
    assert len(texts) >= 25
    for text in texts:
        assert any(text in message for message in known), text
