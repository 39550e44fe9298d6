"""Text, table and plot of a ``SparseSample``."""

import html
from typing import Any

import torch

from torch_gsample._axes import make_axes
from torch_gsample.sparse_sample.convert import to_dense
from torch_gsample.sparse_sample.ids import column_of_edge, row_of_edge
from torch_gsample.sparse_sample.parts import Parts

_MAX_ROWS = 10
_MAX_PLOT = 200


def text(matrix: Parts) -> str:
    """Returns a one-line summary of a matrix."""
    parts = [
        f'shape=[{matrix.num_rows}, {matrix.num_cols}]',
        f'num_edges={matrix.num_edges}',
    ]
    if matrix.value is not None:
        features = list(matrix.value.shape[1:])
        parts.append(f'value={matrix.value.dtype}'.replace('torch.', ''))
        if features:
            parts.append(f'features={features}')
        if matrix.value.requires_grad:
            parts.append('requires_grad=True')
    for name in ('row_ids', 'col_ids'):
        if getattr(matrix, name) is not None:
            parts.append(name)
    layouts = [
        name
        for name, layout in (('csc', matrix._csc), ('csr', matrix._csr))
        if layout is not None
    ]
    parts.append('+'.join(layouts))
    return f'SparseSample({", ".join(parts)})'


def table(matrix: Parts) -> str:
    """Returns a table of the first edges, for notebooks."""
    rows = row_of_edge(matrix)[:_MAX_ROWS].tolist()
    cols = column_of_edge(matrix)[:_MAX_ROWS].tolist()
    edges = matrix.edge_id[:_MAX_ROWS].tolist()
    values = matrix.values()[:_MAX_ROWS].tolist()
    lines = [
        '<tr>'
        + ''.join(f'<td>{html.escape(str(cell))}</td>' for cell in line)
        + '</tr>'
        for line in zip(rows, cols, values, edges, strict=True)
    ]
    if matrix.num_edges > _MAX_ROWS:
        lines.append(
            f'<tr><td colspan="4">{matrix.num_edges - _MAX_ROWS:,} more'
            '</td></tr>'
        )
    head = ''.join(
        f'<th>{name}</th>' for name in ('row', 'column', 'value', 'edge')
    )
    return (
        f'<table><caption>{html.escape(repr(matrix))}</caption>'
        f'<tr>{head}</tr>{"".join(lines)}</table>'
    )


def plot(matrix: Parts, ax: Any = None) -> Any:
    """Plots the matrix as squares coloured by value.

    Args:
        ax (matplotlib.axes.Axes, optional): The axes; default: new ones.

    Returns:
        matplotlib.axes.Axes: The axes.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If :obj:`ax` has another type.
        ValueError: If the matrix has more than 200 rows or columns, or
            features.
    """
    if max(matrix.shape) > _MAX_PLOT:
        raise ValueError(
            f'plot: the matrix must have at most {_MAX_PLOT} rows and '
            f'columns (got shape {list(matrix.shape)})'
        )
    if matrix.values().dim() > 1:
        raise ValueError(
            'plot: the matrix must have one value an edge (got shape '
            f'{list(matrix.values().shape)})'
        )
    ax = make_axes('plot', ax, (6.4, 4.8))
    dense = to_dense(matrix).detach().to(torch.float64)
    held = to_dense(matrix._of_value(None)) > 0
    image = ax.imshow(dense.masked_fill(~held, torch.nan).numpy())
    ax.set_xlabel('destination')
    ax.set_ylabel('source')
    ax.figure.colorbar(image, ax=ax)
    return ax
