"""The style of the documentation's pictures, for light and dark pages."""

from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

#: The colour of lines and texts, readable on white and on black.
INK = '#7a7a7a'
#: The colours of texts in filled boxes.
ON_LIGHT, ON_DARK = '#111111', '#fefefe'


def picture_style() -> AbstractContextManager[None]:
    """Sets the style of figures created and saved inside it."""
    inked = (
        'axes.edgecolor',
        'axes.labelcolor',
        'text.color',
        'xtick.color',
        'ytick.color',
    )
    clear = ('axes.facecolor', 'savefig.facecolor')
    return mpl.rc_context(
        {
            **dict.fromkeys(inked, INK),
            **dict.fromkeys(clear, 'none'),
            'svg.hashsalt': 'torch_gsample',
        }
    )


def save(figure: Figure, path: Path) -> None:
    """Writes an SVG without a background; equal figures give equal files."""
    figure.savefig(path, bbox_inches='tight', metadata={'Date': None})
