"""Kernels of vertex programs against plain loops."""

import pytest

from tests import reference
from tests.ops import vertex_map_errors as case


def listed(x):
    return x.view(x.shape[0], -1).tolist()


@pytest.mark.parametrize('edge_id', [case.EDGES, None])
@pytest.mark.parametrize('order', [case.ORDER, case.ORDER[:2], None])
def test_a_kernel_is_its_reference(edge_id, order):
    count = 4 if edge_id is not None else 3
    operands = [*case.OPERANDS[:2], case.OPERANDS[2][:count]]
    want = reference.vertex_map(
        case.UNIT,
        case.INDPTR.tolist(),
        case.INDICES.tolist(),
        None if edge_id is None else edge_id.tolist(),
        *(None if order is None else order.tolist(), 2, count),
        [listed(x) for x in operands],
    )
    got = case.run(
        edge_id=edge_id, order=order, num_edges=count, operands=operands
    )
    assert [listed(x) for x in got] == want


@pytest.mark.parametrize('call', case.HOSTILE_VERTICES)
def test_kernels_reject_bad_operands(call):
    with pytest.raises(RuntimeError, match='run_kernel: '):
        call()


def test_edges_of_no_vertex_are_not_read():
    ints = case.ints
    got = case.run(ints(1, 2, 2, 3), ints(9, 0, 1), ints(-1, 2, 0))
    want = case.run(ints(0, 1, 1, 2), ints(0, 1), ints(2, 0))
    assert [listed(x) for x in got] == [listed(x) for x in want]
