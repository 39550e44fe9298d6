"""The style of the documentation's pictures, for light and dark pages."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

#: The colour of lines and texts, readable on white and on black.
INK = '#7a7a7a'
#: The colours of texts in filled boxes.
ON_LIGHT, ON_DARK = '#111111', '#fefefe'
#: The colours of bars that are compared, seen on white and on black.
BARS = '#00798c', '#d1495b', '#8a63d2', '#c06c1f', '#5b8c2a'

#: Parameters of matplotlib: lines and texts in ``INK``, no background.
INK_EVERYWHERE = {
    **dict.fromkeys(
        (
            'axes.edgecolor',
            'axes.labelcolor',
            'text.color',
            'xtick.color',
            'ytick.color',
        ),
        INK,
    ),
    **dict.fromkeys(
        ('axes.facecolor', 'figure.facecolor', 'savefig.facecolor'), 'none'
    ),
    'svg.hashsalt': 'torch_gsample',
}


def picture_style() -> AbstractContextManager[None]:
    """Sets the style of figures created and saved inside it."""
    return mpl.rc_context(INK_EVERYWHERE)


def save(figure: Figure, path: Path) -> None:
    """Writes an SVG without a background; equal figures give equal files."""
    figure.savefig(path, bbox_inches='tight', metadata={'Date': None})


def scrape_svg(block: Any, *args: Any, **kwargs: Any) -> str:
    """Saves the figures of a program of the gallery."""
    from sphinx_gallery.scrapers import matplotlib_scraper

    return matplotlib_scraper(block, *args, format='svg', **kwargs)


def start_program(*_: Any) -> None:
    """Sets the style in which a program of the gallery starts."""
    mpl.rcParams.update(mpl.rcParamsDefault)
    mpl.rcParams.update({**INK_EVERYWHERE, 'savefig.bbox': 'tight'})
