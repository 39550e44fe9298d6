"""Runs generated kernels on a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from torch_gsample.codegen.build import BuildError, read, warn_once
from torch_gsample.codegen.cuda import CudaKernel, cuda_kernel
from torch_gsample.codegen.cuda_driver import Argument, driver
from torch_gsample.codegen.cuda_edges import needs_column
from torch_gsample.codegen.nvrtc import build_cubin
from torch_gsample.codegen.pieces import Pieces, over_hubs, stages_of
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    Unit,
)

_MOST_BLOCKS = 1 << 16
_MOST_VERTEX_BLOCKS = (1 << 31) - 1  # of a grid


def run_edge_map(
    unit: Unit, operands: Sequence[Tensor], num_rows: int
) -> Tensor | None:
    """Runs an edge map; returns None if it cannot be compiled.

    Results have the CPU's bits, except for functions of CUDA's library.

    Args:
        unit (Unit): The edge map.
        operands (Sequence[torch.Tensor]): What it reads, on a GPU.
        num_rows (int): Rows of the result, if it reduces rows.

    Raises:
        IndexError: If an index is out of range.
        ValueError: If operands do not match, or pointers descend.
    """
    device = operands[0].device
    found = _function(unit, device)
    if found is None:
        return None
    kernel, function = found
    operands = [x.contiguous() for x in operands]
    edges, cols = _count_edges(unit, operands)
    [output] = unit.outputs
    size = {EDGE: edges, DESTINATION: cols}.get(output.kind, num_rows)
    arguments: list[Argument] = [edges, cols]
    if unit.by is not None:
        arguments += [num_rows, *_edges_by_row(unit, operands, num_rows)]
    for leaf, tensor in zip(unit.leaves, operands, strict=True):
        arguments.append(tensor)
        if leaf.index is not None:
            arguments.append(tensor.shape[0])
    shape = (size, *(unit.sizes[axis] for axis in output.axes))
    out = operands[0].new_empty(shape, dtype=unit.dtype)
    work = edges if unit.pointers is None else cols
    if unit.by is not None:
        work = num_rows
    blocks = min(-(-work // kernel.groups), _MOST_BLOCKS)
    fault = operands[0].new_zeros(2, dtype=torch.int32)
    arguments += [out, fault]
    _launch(device, function, (blocks, kernel.threads), arguments)
    _check_fault('edge_map', fault)
    return out


def _count_edges(unit: Unit, operands: Sequence[Tensor]) -> tuple[int, int]:
    """Returns the numbers of edges and columns; all operands must agree."""
    edges = cols = None
    if unit.pointers is not None:
        indptr = operands[unit.pointers]
        cols, edges = indptr.numel() - 1, int(indptr[-1])
    for i, (leaf, x) in enumerate(zip(unit.leaves, operands, strict=True)):
        if x.dtype != leaf.dtype or x.device != operands[0].device:
            raise ValueError(
                f'edge_map: operand {i} must be {leaf.dtype} on '
                f'{operands[0].device} (got {x.dtype} on {x.device})'
            )
        rows = x.shape[0] if x.dim() else 1
        wanted = {DESTINATION: cols, PARAMETER: 1}.get(leaf.kind)
        if leaf.kind == EDGE and leaf.index is None:
            wanted = edges = rows if edges is None else edges
        if wanted is not None and rows != wanted:
            raise ValueError(
                f'edge_map: operand {i} must have {wanted} rows (got {rows})'
            )
    assert edges is not None
    return edges, cols or 0


def _edges_by_row(
    unit: Unit, operands: Sequence[Tensor], num_rows: int
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Returns row pointers, edges by row, and the column of each edge."""
    assert unit.by is not None
    index = operands[unit.by]
    ordered, perm = torch.sort(index.long(), stable=True)
    rows = torch.arange(num_rows + 1, device=index.device)
    starts = torch.searchsorted(ordered, rows)
    column = None
    if needs_column(unit):
        assert unit.pointers is not None
        indptr = operands[unit.pointers].long()
        places = torch.arange(index.numel(), device=index.device)
        column = torch.searchsorted(indptr, places, right=True) - 1
    return starts, perm, column


@dataclass(frozen=True)
class _Edges:
    """The edges that kernels of a call read.

    Args:
        indices (torch.Tensor): Their neighbours.
        edge_id (torch.Tensor, optional): Their rows in features.
        num_neighbors (int): Rows of operands of neighbours.
        num_rows (int): Rows of operands of edges.
        fault (torch.Tensor): The error counters.
    """

    indices: Tensor
    edge_id: Tensor | None
    num_neighbors: int
    num_rows: int
    fault: Tensor

    def compute(
        self,
        unit: Unit,
        bounds: tuple[Tensor, Tensor],
        operands: Sequence[Tensor],
        out: Sequence[Tensor],
        order: Tensor | None = None,
    ) -> None:
        """Runs a compiled unit over vertices with edges ``[begin, end)``."""
        device = self.indices.device
        found = _function(unit, device)
        assert found is not None
        kernel, function = found
        vertices = bounds[1].numel()
        count = vertices if order is None else order.numel()
        blocks = min(-(-count // kernel.groups), _MOST_VERTEX_BLOCKS)
        arguments = [
            *(count, vertices, self.num_neighbors, self.indices.numel()),
            *(self.num_rows, *bounds, self.indices, self.edge_id, order),
            *(x.contiguous() for x in operands),
            *(*out, self.fault),
        ]
        _launch(device, function, (blocks, kernel.threads), arguments)


def run_vertex_unit(
    unit: Unit,
    graph: Sequence[Tensor | None],
    num_neighbors: int,
    num_edges: int,
    operands: Sequence[Tensor],
    hubs: Pieces | None = None,
) -> list[Tensor] | None:
    """Runs a unit over a graph checked at construction.

    Returns None if it cannot be compiled. It does not synchronise with the
    GPU.

    Args:
        unit (Unit): The unit.
        graph (Sequence[torch.Tensor]): Pointers, neighbours, and optionally
            edge ids and the order of vertices.
        num_neighbors (int): Rows of operands of neighbours.
        num_edges (int): Rows of operands of edges.
        operands (Sequence[torch.Tensor]): What it reads, on a GPU.
        hubs (Pieces, optional): The first vertices of the order, in pieces;
            others have one piece.
    """
    indptr, indices, edge_id, order = graph
    assert indptr is not None
    assert indices is not None
    if hubs is not None and not _are_compiled(unit, hubs, indptr.device):
        hubs = None
    if hubs is None and _function(unit, indptr.device) is None:
        return None
    out = []
    for output in unit.outputs:
        shape = indptr.numel() - 1, unit.width(output.axes)
        if output.kind == EDGE:
            shape = num_edges, shape[1]
        out.append(indptr.new_empty(shape, dtype=output.memory))
        # Some edges may not be in the graph.
        if output.kind == EDGE and edge_id is not None:
            out[-1].zero_()
    fault = indptr.new_zeros(2, dtype=torch.int32)
    edges = _Edges(indices, edge_id, num_neighbors, num_edges, fault)
    if hubs is not None:
        assert order is not None
        if hubs.vertices.numel():
            order = order[hubs.vertices.numel() :]
            _over_hubs(edges, unit, hubs, operands, out)
        unit = stages_of(unit).rest
    edges.compute(unit, (indptr, indptr[1:]), operands, out, order)
    return out


def _are_compiled(unit: Unit, hubs: Pieces, device: torch.device) -> bool:
    """Whether the stages of a unit can be compiled, if there are hubs."""
    stages = stages_of(unit)
    units = stages.units if hubs.vertices.numel() else [stages.rest]
    return all(_function(x, device) is not None for x in units)


def _over_hubs(
    edges: _Edges,
    unit: Unit,
    hubs: Pieces,
    operands: Sequence[Tensor],
    out: Sequence[Tensor],
) -> None:
    """Computes the rows of hubs, and of their edges."""
    pieces = _Edges(
        *(hubs.hub, None, hubs.vertices.numel(), hubs.hub.numel()), edges.fault
    )

    def at_pieces(
        unit: Unit, given: list[Tensor], of_edges: list[Tensor]
    ) -> list[Tensor]:
        found = _empty(unit, hubs.hub)
        bounds = hubs.first, hubs.last
        edges.compute(unit, bounds, given, [*found, *of_edges])
        return found

    def at_hubs(unit: Unit, given: list[Tensor]) -> list[Tensor]:
        found = _empty(unit, hubs.vertices)
        bounds = hubs.bounds, hubs.bounds[1:]
        pieces.compute(unit, bounds, given, found)
        return found

    over_hubs(unit, hubs, operands, out, at_pieces, at_hubs)


def _empty(unit: Unit, like: Tensor) -> list[Tensor]:
    """Returns memory for the results of vertices, one row each."""
    return [
        like.new_empty(
            (like.numel(), unit.width(output.axes)), dtype=output.memory
        )
        for output in unit.outputs
        if output.kind != EDGE
    ]


#: The functions of live units, by device; None if a unit cannot be compiled.
_functions: WeakKeyDictionary[
    Unit, dict[torch.device, tuple[CudaKernel, int] | None]
] = WeakKeyDictionary()


def _function(
    unit: Unit, device: torch.device
) -> tuple[CudaKernel, int] | None:
    known = _functions.setdefault(unit, {})
    if device not in known:
        made = None  # not known before: other threads would use it
        try:
            kernel = cuda_kernel(unit)
            made = kernel, _loaded(kernel.source, device)
        except BuildError as error:
            warn_once(error)
        known[device] = made
    return known[device]


@lru_cache(maxsize=1024)  # a module is never unloaded: see cuda_driver.py
def _loaded(source: str, device: torch.device) -> int:
    """Compiles and loads a kernel for a device."""
    library = driver()  # first: without a driver, compiling is pointless
    major, minor = torch.cuda.get_device_capability(device)
    with build_cubin(source, f'sm_{major}{minor}') as file:
        return library.load(device.index or 0, read(file), 'gsample_kernel')


def _launch(
    device: torch.device,
    function: int,
    shape: tuple[int, int],
    arguments: Sequence[Argument],
) -> None:
    if shape[0] > 0:
        stream = torch.cuda.current_stream(device).cuda_stream
        driver().launch(device.index or 0, function, shape, arguments, stream)


def _check_fault(name: str, fault: Tensor) -> None:
    index, pointers = fault.tolist()
    if index:
        raise IndexError(f'{name}: an index is out of range')
    if pointers:
        raise ValueError(
            f'{name}: pointers must ascend from 0 to the number of edges'
        )
