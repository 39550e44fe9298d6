"""Generated kernels refuse malformed graphs, or compute right results."""

import pytest
import torch

from tests import reference
from tests.ops import edge_map_errors as edges
from tests.ops import vertex_map_errors as vertices
from tests.ops.test_malformed import TRIALS, malformed_graph, some
from torch_gsample import ops
from torch_gsample.vertex import Loops
from torch_gsample.vertex.kernels.fused_unit import fused
from torch_gsample.vertex.kernels.relations import Level

#: Allowed errors of a call with a malformed argument.
REFUSED = RuntimeError, ValueError, IndexError


def rounded(rows):
    return torch.tensor(rows, dtype=torch.float64).nan_to_num(7).flatten()


def assert_near(got, want):
    assert torch.allclose(got.double().nan_to_num(7).flatten(), rounded(want))


def features(size, seed):
    return some(1, 9, size, seed).float()


def test_edge_kernels_of_malformed_graphs_are_refused_or_true():
    refused = 0
    for seed in TRIALS:
        indptr, _ = (part.long() for part in malformed_graph(seed))
        if seed % 3:
            indptr = indptr.clamp(0, 10).sort().values
            indptr[0], indptr[-1] = 0, 10
        operands = [
            features(10, seed),
            features(4, seed + 1),
            some(-(seed % 5 == 0), 4 + (seed % 7 == 0), 10, seed),
            features(4, seed + 2),
            indptr,
        ]
        operands[seed % 5] = operands[seed % 5][seed % 9 == 0 :]
        try:
            [out] = ops.kernels.run_kernel(
                edges.PRODUCT.loaded.number, operands
            )
        except REFUSED:
            refused += 1
            continue
        want = reference.edge_map(
            edges.PRODUCT.unit, [x.tolist() for x in operands]
        )
        assert_near(out, want)
    assert 100 < refused < 400


def test_sums_of_malformed_rows_are_refused_or_true():
    refused = 0
    for seed in TRIALS:
        operands = [features(9 + seed % 2, seed), some(-1, 40, 10, seed)]
        num_rows = [40, 39, -1, 1, 2**62 + 2**20][seed % 5]
        try:
            [out] = ops.kernels.run_kernel(
                edges.ROWS.loaded.number, operands, (), num_rows
            )
        except REFUSED:
            refused += 1
            continue
        want = reference.edge_map(
            edges.ROWS.unit, [x.tolist() for x in operands], num_rows
        )
        assert_near(out, want)
    assert 100 < refused < 400


def malformed_vertices(seed):
    """Arguments of a kernel of a graph, some of them wrong."""
    indptr, indices = (part.int() for part in malformed_graph(seed))
    edge_id = some(-1 if seed % 5 == 0 else 0, 12, 10, seed).int()
    num_edges = [12, 12, 12, 11, 2**62 + 2**20][seed % 7 % 5]
    order = torch.randperm(4).int() if seed % 4 else some(0, 6, 4, seed).int()
    if len(set(order.tolist())) < 4 and order.max() < 4:
        order = None  # no permutation: missing positions are not written
    elif seed % 3 == 0:
        order = order[:-1]  # the other rows are zeros
    operands = [features(8, seed).view(4, 2), features(4, seed + 1)]
    operands.append(features(min(num_edges, 12), seed + 2))
    return indptr, indices, edge_id, order, 4, num_edges, operands


def test_vertex_kernels_of_malformed_graphs_are_refused_or_true():
    refused = 0
    for seed in TRIALS:
        given = malformed_vertices(seed)
        try:
            *graph, num_rows, num_edges, operands = given
            out = ops.kernels.run_kernel(
                vertices.KERNEL, operands, graph, num_rows, num_edges
            )
        except REFUSED:
            refused += 1
            continue
        *graph, order, num_neighbors, num_edges, operands = given
        want = reference.vertex_map(
            vertices.UNIT,
            *[part.tolist() for part in graph],
            *(None if order is None else order.tolist(),),
            *(num_neighbors, num_edges),
            [x.view(x.shape[0], -1).tolist() for x in operands],
        )
        # An edge that has two places has the value of either.
        for got, rows in zip(out[:2], want[:2], strict=True):
            assert_near(got, rows)
    assert 100 < refused < 400


def test_vertex_programs_of_malformed_graphs_are_refused_or_true():
    refused, made = 0, fused(vertices.UNIT)
    for seed in TRIALS:
        low = -(seed % 3 == 0)
        edge_index = torch.stack([some(low, 4, 5, seed), some(0, 4, 5, -seed)])
        sizes = [4, 3 + seed % 2, 5 + (seed % 5 == 0), 0]
        if seed % 11 == 0:
            sizes[seed % 4] = 2**62 + 2**20
        operands = [features(8, seed).view(4, 2), features(sizes[1] % 9, seed)]
        operands.append(features(5, seed + 2))
        graph = [edge_index], None, sizes, int(Loops.KEEP), int(Level.EDGES)
        try:
            out = torch.ops.gsample.vertex_unit(made.number, *graph, operands)
        except REFUSED:
            refused += 1
            continue
        want = reference.vertex_unit(
            made.unit,
            [edge_index.tolist()],
            *graph[1:],
            [x.view(x.shape[0], -1).tolist() for x in operands],
        )
        for got, rows in zip(out, want, strict=True):
            assert_near(got, rows)
    assert 100 < refused < 400


@pytest.mark.parametrize('number', [-1, 2**40, 2**63 - 1])
def test_a_vertex_program_of_another_process_is_refused(number):
    arguments = vertices.vertex_unit_arguments(wanted=False)[1:]
    with pytest.raises(ValueError, match=rf"'unit' must .* \(got {number}\)"):
        torch.ops.gsample.vertex_unit(number, *arguments)
