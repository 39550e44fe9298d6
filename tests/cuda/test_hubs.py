"""Hubs on a GPU: their edges are split over groups, with the CPU's bits."""

from itertools import chain

import pytest
import torch

from tests.cuda.generated import Kernels, assert_nvcc_compiles
from tests.cuda.test_vertex_map import calls, placed, source_of
from tests.vertex.programs import features
from torch_gsample import ops
from torch_gsample.codegen import pieces, run_cuda
from torch_gsample.codegen.cuda import cuda_kernel
from torch_gsample.codegen.pieces import stages_of
from torch_gsample.vertex.kernels import layout as layouts
from torch_gsample.vertex.kernels.fused_unit import fused_units
from torch_gsample.vertex.kernels.layouts import Layouts

#: Softmax, maxima and means, draws, gradients of edges.
DTYPES = {
    'gat': torch.bfloat16,
    **dict.fromkeys(('pna', 'dropped', 'weighted'), torch.float32),
}
PIECE, N, E = 4, 16, 150


@pytest.fixture(scope='module')
def short_pieces():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pieces, 'PIECE', PIECE)
        patched.setattr(layouts, 'FEW', 0)  # hubs come first in an order
        forget_kernels()
        yield
    forget_kernels()


def forget_kernels():
    """Drops compiled kernels, whose pieces have another size."""
    for fused in list(fused_units.values()):
        fused._kernels.clear()


@pytest.fixture(scope='module')
def recorded(short_pieces):
    row, col = ops.rmat_edges(4, E, [0.57, 0.19, 0.19, 0.05], 1)
    edge_index = torch.stack([row, col])
    return {
        name: calls(name, edge_index, features(name, dtype, N, E))
        for name, dtype in DTYPES.items()
    }


def sources_of(found):
    sources = []
    for fused, made, _, _ in found:
        sources.append(source_of(fused, made))
        unit = fused._indexed(made.incoming.indptr.dtype)
        sources += [cuda_kernel(x).source for x in stages_of(unit).units]
    return list(dict.fromkeys(sources))


@pytest.fixture(scope='module')
def kernels(kernels_from, builder, tmp_path_factory, recorded):
    folder = tmp_path_factory.mktemp('hubs')
    sources = sources_of(chain(*recorded.values()))
    return kernels_from(lambda: Kernels(builder, folder, sources))


def test_hubs_in_pieces_have_the_bits_of_the_cpu(
    kernels, recorded, monkeypatch
):
    split = []
    over_hubs = run_cuda._over_hubs
    monkeypatch.setattr(
        run_cuda,
        '_over_hubs',
        lambda *args: split.append(args[2]) or over_hubs(*args),
    )
    for fused, made, operands, want in chain(*recorded.values()):
        there = placed(kernels, made), kernels.put(operands)
        with kernels.running():
            got = fused.run_on_gpu(*there)
        for a, b in zip(got, want, strict=True):
            kernels.assert_same(a, b)
        count, vertices = kernels.last[:2]  # others, by the last kernel
        assert count == vertices - split[-1].vertices.numel()
    assert len(split) == sum(map(len, recorded.values()))
    # More pieces than edges of a piece: joins are not in pieces.
    assert any(int(x.bounds.diff().max()) > PIECE for x in split)


def test_whole_hubs_have_the_same_bits(kernels, recorded, monkeypatch):
    # Where a stage cannot be compiled.
    monkeypatch.setattr(run_cuda, '_are_compiled', lambda *args: False)
    for found in recorded.values():
        fused, made, operands, want = found[0]
        there = placed(kernels, made), kernels.put(operands)
        with kernels.running():
            got = fused.run_on_gpu(*there)
        kernels.assert_same(got[0], want[0])
        assert kernels.last[0] == kernels.last[1]


def test_nvcc_compiles_the_stages(recorded, tmp_path):
    assert_nvcc_compiles(sources_of(recorded['dropped'][:1]), tmp_path)


def test_a_malformed_index_of_a_hub_is_noted(kernels, recorded):
    fused, made, operands, _ = recorded['gat'][0]
    layout = placed(kernels, made).incoming
    indices = layout.indices.clone()
    indices[int(layout.hubs.first[0])] = N
    parts = layout.indptr, indices, layout.num_rows, layout.edge_id
    there = Layouts(layouts.Layout(*parts, checked=True), E)
    with kernels.running():
        fused.run_on_gpu(there, kernels.put(operands))
    assert kernels.last[-1].tolist() == [1, 0]


def test_pieces_have_all_edges_of_hubs_once(short_pieces):
    degree = torch.tensor([2, 0, 9, 3, 4, 1, 5])
    indptr = torch.cat([torch.zeros(1, dtype=torch.long), degree.cumsum(0)])
    order = torch.tensor([2, 3, 4, 6, 0, 5, 1])
    found = pieces.Pieces.of(indptr, order)
    assert found.vertices.tolist() == [2, 3, 4, 6]
    assert found.bounds.tolist() == [0, 3, 4, 5, 7]
    assert found.hub.tolist() == [0, 0, 0, 1, 2, 3, 3]
    assert found.first.tolist() == [2, 6, 10, 11, 14, 19, 23]
    assert found.last.tolist() == [6, 10, 11, 14, 18, 23, 24]
    assert pieces.Pieces.of(indptr[:2], order[:1]).hub.numel() == 0
