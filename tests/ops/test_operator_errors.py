"""Every error of the operators themselves, behind their Python fronts."""

import re
from pathlib import Path

import pytest
import torch

from tests.ops.columns_errors import COLUMNS
from tests.ops.edge_map_errors import EDGE_MAPS, HOSTILE
from tests.ops.hops_errors import LAYERS
from tests.ops.matrix_errors import MATRICES
from tests.ops.neighbor_errors import NEIGHBORS
from tests.ops.neighbors import call_one
from tests.ops.sample_by_kernel_errors import SAMPLES_BY_KERNEL
from tests.ops.vertex_map_errors import VERTEX_MAPS
from tests.ops.walk_errors import WALK_OPERATOR_ERRORS
from torch_gsample import ops
from torch_gsample.rng import make_key

BIND = Path(__file__).resolve().parents[2] / 'csrc' / 'bind'
GSAMPLE = torch.ops.gsample

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])
TIME = torch.tensor([1, 2, 3])
NONE = torch.tensor([], dtype=torch.int64)

# Texts that no case below brings about.
ELSEWHERE = {
    ': interrupted',  # test_python_host.py
    ": 'wide_indptr' is needed for ",  # it takes 2^31 edges
    ": 'rows' must have less than 2^31 elements (got ",  # it takes 2^31 rows
    ": 'id' must have less than 2^31 elements (got ",  # it takes 2^31 ids
    # Operators on a GPU, tests/cuda:
    ": 'sorted' needs one node type and one relation on a GPU",
    ": the frontiers 'edges' and 'walk' need a graph on the CPU",
    ": 'ptr' needs the frontiers 'row' or 'nodes' on a GPU, not sorted",
    ': too many batches (',
    ": 'cum_weight' or 'device_of' must be given on a GPU",
    ": 'ptr', 'cum_weight' or 'device_of' must be given on a GPU",
    ": 'num_nodes' must be less than 2^63 for all batches together",
    ": 'row_ptr' and 'col_ptr' must ascend from 0 to the numbers of rows and "
    "columns, of which a batch has all if 'cols' is not given (they do not at "
    'position ',
    ": 'weight' must be finite and not negative (it is not at position ",
    ": 'weight' must be positive, and it and its inverse finite (it is not at "
    'position ',
    ": 'indptr' must be int64 to count ",
    ": 'cum_weight' must have at least ",
    ': hops must have less than ',  # it takes 2^31 columns
    # Those take 2^31 edges, or a torch that is broken, or a GPU:
    ': a sample must have less than 2^31 edges (this one has ',
    ": torch's CUDA library was not found; is this a build of torch for CUDA?",
    ': torch has no current stream on device ',
    ": 'input' must be on the device of 'index' or in pinned host memory "
    '(see Tensor.pin_memory)',
    ": the graph must be on the device of '",
}


def negative(ids=SEEDS, num_nodes=3, key=KEY, call_id=0, **kw):
    return GSAMPLE.negative_sample(ids, num_nodes, True, key, call_id, **kw)


def around(anchor, indptr=INDPTR):
    return negative(anchor=anchor, indptr=indptr, indices=INDICES)


def induce(indptr=INDPTR, cols=SEEDS, **kw):
    return GSAMPLE.induce_subgraph(indptr, INDICES, 3, SEEDS, cols, **kw)


FORMATS = {
    "coo_to_csc: 'col' must have 3 elements (got 2)": lambda: (
        GSAMPLE.coo_to_csc(TIME, SEEDS, 9, True, True)
    ),
    "coo_to_csc: 'num_cols' must be less than 1152921504606846975 (got": (
        lambda: GSAMPLE.coo_to_csc(TIME, TIME, 2**63 - 1, True, True)
    ),
    "rmat_edges: 'num_edges' must be less than 1152921504606846975 (g": (
        lambda: ops.rmat_edges(3, 2**63 - 1, [0.25] * 4, 0)
    ),
    "'num_cols' must not be negative (got -1)": lambda: GSAMPLE.coo_to_csc(
        NONE, NONE, -1, True, True
    ),
    "'col' must be in [0, 3) (it is not at position 2)": lambda: (
        GSAMPLE.coo_to_csc(TIME, TIME, 3, True, True)
    ),
    "'row' must be in [0, 3) (got 4 at position": lambda: GSAMPLE.coo_to_csc(
        torch.tensor([0, 4]), torch.tensor([0, 1]), 3, True, True, 3
    ),
    "sort_edges: 'edge_index' must be contiguous, [2, num_edges]": lambda: (
        GSAMPLE.sort_edges(torch.zeros(3, 2).long().t(), 1, 1, 0)
    ),
    "sort_edges: 'edge_index' must be int32 or int64": lambda: (
        GSAMPLE.sort_edges(torch.zeros(2, 3), 1, 1, 0)
    ),
    "sort_edges: 'num_rows' must be in [0, 2^31 - 1) (got -1)": lambda: (
        GSAMPLE.sort_edges(torch.zeros(2, 3).long(), -1, 1, 0)
    ),
    "sort_edges: 'edge_index' has too many edges for int32 (got 3)": lambda: (
        GSAMPLE.sort_edges(torch.zeros(2, 3).long(), 1, 2**31 - 3, 0)
    ),
    "sort_edges: 'loops' must be 0, 1 or 2 (got 3)": lambda: (
        GSAMPLE.sort_edges(torch.zeros(2, 3).long(), 1, 1, 3)
    ),
    "transpose_columns: 'indptr' must ascend from 0 to the 2 edges": lambda: (
        GSAMPLE.transpose_columns(
            torch.tensor([0, 3]).int(), torch.zeros(2).int(), None, 1
        )
    ),
    "and 'indices' be in [0, 1)": lambda: GSAMPLE.transpose_columns(
        torch.tensor([0, 2]).int(), torch.tensor([0, 1]).int(), None, 1
    ),
    "transpose_columns: 'edge_id' must have 2 elements (got 3)": lambda: (
        GSAMPLE.transpose_columns(
            torch.tensor([0, 2]).int(),
            *(torch.zeros(2).int(), torch.zeros(3).int(), 1),
        )
    ),
    "check_csc: 'indptr' must not be empty": lambda: GSAMPLE.check_csc(
        NONE, NONE, 0
    ),
    "'num_rows' must not be negative (got -5)": lambda: GSAMPLE.check_csc(
        INDPTR, INDICES, -5
    ),
    "'indptr' must ascend from 0 to the 3 weights": lambda: (
        GSAMPLE.cumulate_weights(INDPTR + 1, TIME.float())
    ),
    "cumulate_weights: 'indptr' must not be empty": lambda: (
        GSAMPLE.cumulate_weights(NONE, TIME[:2].float())
    ),
    "cumulate_weights: 'weight' must be finite and not negative": lambda: (
        GSAMPLE.cumulate_weights(INDPTR, -1 - TIME.abs().float())
    ),
    "cumulate_weights: 'weight' has the wrong dtype": lambda: (
        GSAMPLE.cumulate_weights(INDPTR, TIME)
    ),
    'expected scalar type Long but found Float': lambda: (
        GSAMPLE.cumulate_weights(INDPTR.float(), TIME.float())
    ),
}

OTHERS = {
    "gather_rows: 'input' must be contiguous and have rows": lambda: (
        GSAMPLE.gather_rows(torch.zeros(2, 2).t(), SEEDS)
    ),
    "gather_rows: 'input' must be int8 with 'scale'": lambda: (
        GSAMPLE.gather_rows(TIME, SEEDS, TIME.float())
    ),
    "gather_rows: 'input' must be bfloat16, float16 or float32 to widen": (
        lambda: GSAMPLE.gather_rows(TIME, SEEDS, widen=True)
    ),
    "gather_rows: 'scale' has the wrong dtype": lambda: GSAMPLE.gather_rows(
        TIME.char(), SEEDS, TIME
    ),
    "gather_rows: 'scale' must have 3 elements (got 2)": lambda: (
        GSAMPLE.gather_rows(TIME.char(), SEEDS, TIME[:2].float())
    ),
    "gather_rows: 'index' has the wrong dtype": lambda: GSAMPLE.gather_rows(
        TIME, SEEDS.int()
    ),
    "gather_rows: 'index' must be in [0, 3) (got 3 at position 2)": lambda: (
        GSAMPLE.gather_rows(TIME, TIME)
    ),
    "induce_subgraph: 'indptr' must not be empty": lambda: induce(NONE),
    "'row_batch' and 'col_batch' must be given together": lambda: induce(
        row_batch=SEEDS
    ),
    "'col_nodes' must be in [0, 3) and 'indptr' must ascend": lambda: induce(
        cols=SEEDS + 1
    ),
    'must ascend from 0 to the number of edges': lambda: induce(INDPTR + 1),
    "negative_sample: 'num_nodes' must be positive": lambda: negative(
        num_nodes=0
    ),
    "'call_id' must be in [0, 65536) (got 65536)": lambda: negative(
        call_id=65536
    ),
    "'order', 'order_time' and 'max_time' go together": lambda: negative(
        order=TIME
    ),
    "'anchor', 'indptr' and 'indices' go together": lambda: negative(
        anchor=SEEDS
    ),
    "'anchor' must be in [0, 3) (got 3) and 'indptr' must asc": lambda: around(
        SEEDS + 1
    ),
    "(got 0) and 'indptr' must ascend": lambda: around(SEEDS, INDPTR * 2),
    "configuration_model: 'indptr' must not be empty": lambda: (
        GSAMPLE.configuration_model(NONE, 0, True)
    ),
    "'indptr' must start at 0": lambda: GSAMPLE.configuration_model(
        INDPTR + 1, 0, True
    ),
    "'indptr' must ascend": lambda: GSAMPLE.configuration_model(
        -INDPTR, 0, True
    ),
    "'scale' must be in [0, 40] (got 41)": lambda: ops.rmat_edges(
        41, 1, [1, 0, 0, 0], 0
    ),
    "'num_edges' must not be negative": lambda: ops.rmat_edges(
        3, -1, [1, 0, 0, 0], 0
    ),
    "'quadrants' must be four probabilities": lambda: ops.rmat_edges(
        3, 1, [1, 0, 0], 0
    ),
    "'quadrants' must be probabilities": lambda: ops.rmat_edges(
        3, 1, [float('nan'), 0, 0, 1], 0
    ),
    "'quadrants' must sum to 1": lambda: ops.rmat_edges(
        3, 1, [0.5, 0, 0, 0], 0
    ),
}

CASES = NEIGHBORS | FORMATS | OTHERS | MATRICES | WALK_OPERATOR_ERRORS
CASES |= COLUMNS | EDGE_MAPS | LAYERS | VERTEX_MAPS | SAMPLES_BY_KERNEL


@pytest.mark.parametrize('message', CASES)
def test_operators_guard_themselves(message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        CASES[message]()


@pytest.mark.parametrize('call', HOSTILE)
def test_generated_kernels_reject_bad_operands(call):
    with pytest.raises(RuntimeError, match='run_kernel: '):
        call()


def test_meta_tensors_are_refused():
    meta = [t.to('meta') for t in (INDPTR, INDICES, SEEDS)]
    with pytest.raises(RuntimeError, match='meta Tensors'):
        call_one(GSAMPLE.sample_neighbors, *meta, [1], KEY)


def error_texts():
    """The fixed texts of each STD_TORCH_CHECK, with the operator before."""
    for path in sorted(BIND.iterdir()):
        text = re.sub(r'"\s*"', '', path.read_text())
        for check in re.findall(r'STD_TORCH_CHECK\((.*?)\);', text, re.DOTALL):
            for part in re.findall(r'"(: [^"]*)"', check):
                if part != ": '":  # an argument's name follows
                    yield part


def test_every_error_of_the_operators_is_tested():
    known = []
    for call in CASES.values():
        with pytest.raises(RuntimeError) as caught:
            call()
        known.append(str(caught.value))
    texts = set(error_texts())
    assert len(texts) >= 30
    for text in texts - ELSEWHERE:
        assert any(text in message for message in known), text
