"""How a ``SparseSample`` looks."""

import html
from typing import Any

import torch

from torch_gsample._axes import make_axes

_MAX_ROWS = 10
_MAX_PLOT = 200


class Show:
    """Texts and pictures."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        parts = [
            f'shape=[{self.num_rows}, {self.num_cols}]',
            f'num_edges={self.num_edges}',
        ]
        if self.value is not None:
            features = list(self.value.shape[1:])
            parts.append(f'value={self.value.dtype}'.replace('torch.', ''))
            if features:
                parts.append(f'features={features}')
            if self.value.requires_grad:
                parts.append('requires_grad=True')
        for name in ('row_ids', 'col_ids'):
            if getattr(self, name) is not None:
                parts.append(name)
        layouts = [
            name
            for name, layout in (('csc', self._csc), ('csr', self._csr))
            if layout is not None
        ]
        parts.append('+'.join(layouts))
        return f'SparseSample({", ".join(parts)})'

    def _repr_html_(self: Any) -> str:
        """Returns a table of the first edges, for notebooks."""
        rows = self.row_of_edge()[:_MAX_ROWS].tolist()
        cols = self.column_of_edge()[:_MAX_ROWS].tolist()
        edges = self.edge_id[:_MAX_ROWS].tolist()
        values = self.values()[:_MAX_ROWS].tolist()
        lines = [
            '<tr>'
            + ''.join(f'<td>{html.escape(str(cell))}</td>' for cell in line)
            + '</tr>'
            for line in zip(rows, cols, values, edges, strict=True)
        ]
        if self.num_edges > _MAX_ROWS:
            lines.append(
                f'<tr><td colspan="4">{self.num_edges - _MAX_ROWS:,} more'
                '</td></tr>'
            )
        head = ''.join(
            f'<th>{name}</th>' for name in ('row', 'column', 'value', 'edge')
        )
        return (
            f'<table><caption>{html.escape(repr(self))}</caption>'
            f'<tr>{head}</tr>{"".join(lines)}</table>'
        )

    def plot(self: Any, ax: Any = None) -> Any:
        """Draws the matrix, an edge a square, coloured by value.

        Args:
            ax (matplotlib.axes.Axes, optional): Where to draw.

        Returns:
            matplotlib.axes.Axes: What was drawn on.

        Raises:
            ImportError: If matplotlib is not installed.
            TypeError: If :obj:`ax` is something else.
            ValueError: If the matrix has more than 200 rows or columns, or
                features.
        """
        if max(self.shape) > _MAX_PLOT:
            raise ValueError(
                f'plot: the matrix must have at most {_MAX_PLOT} rows and '
                f'columns (got shape {list(self.shape)})'
            )
        if self.values().dim() > 1:
            raise ValueError(
                'plot: the matrix must have one value an edge (got shape '
                f'{list(self.values().shape)})'
            )
        ax = make_axes('plot', ax, (6.4, 4.8))
        dense = self.to_dense().detach().to(torch.float64)
        held = self.with_value(None).to_dense() > 0
        image = ax.imshow(dense.masked_fill(~held, torch.nan).numpy())
        ax.set_xlabel('destination')
        ax.set_ylabel('source')
        ax.figure.colorbar(image, ax=ax)
        return ax
