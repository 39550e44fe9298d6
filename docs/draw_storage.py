"""Draws how a graph lies on disk, and how an epoch is prepared."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from picture_style import ON_DARK, ON_LIGHT, save

BLUE, YELLOW, RED, GREY = '#00798c', '#edae49', '#d1495b', '#dddddd'


def box(
    ax: Axes, x: float, y: float, size: float, color: str, text: str
) -> None:
    """Draws a box of height 0.8 around a text."""
    ax.add_patch(Rectangle((x + 0.02, y), size - 0.04, 0.8, facecolor=color))
    ax.text(
        x + size / 2,
        y + 0.4,
        text,
        ha='center',
        va='center',
        fontsize=8,
        color=ON_DARK if color in (BLUE, RED) else ON_LIGHT,
    )


def draw_chunk(ax: Axes) -> None:
    """Draws a file of chunks, and the parts of one of them."""
    for i in range(4):
        box(ax, 3 * i, 2, 3, YELLOW if i == 1 else GREY, f'chunk {i}')
    parts = [
        (1.4, RED, 'header\n64 bytes'),
        (2.2, BLUE, 'offsets\nnodes + 1'),
        (3.0, YELLOW, 'neighbours'),
        (1.6, YELLOW, 'edge ids'),
        (1.6, YELLOW, 'weights'),
        (1.3, YELLOW, 'times'),
        (0.9, GREY, 'zeros'),
    ]
    x = 0.0
    for size, color, text in parts:
        box(ax, x, 0, size, color, text)
        x += size
    for top, bottom in ((3, 0), (6, x)):
        ax.plot([top, bottom], [2, 0.8], color='#999999', lw=0.8)
    ax.set_title('edges-0.bin: chunks start at multiples of 4,096 bytes')


def draw_pipeline(ax: Axes) -> None:
    """Draws the work that overlaps."""
    for i in range(5):
        box(ax, 2 * i, 2, 1.9, BLUE, f'read chunk {i}')
        box(ax, 2 * i + 2, 1, 1.9, YELLOW, f'sample chunk {i}')
    box(ax, 0, 0, 11.9, GREY, 'train on the epoch before')
    ax.set_title('a hop of the next epoch')


def draw_storage(path: Path) -> None:
    """Draws the picture of ``docs/storage.md``."""
    axes = Figure(figsize=(9, 4.4)).subplots(2, 1)
    draw_chunk(axes[0])
    draw_pipeline(axes[1])
    for ax in axes:
        ax.set_xlim(-0.1, 12.1)
        ax.set_ylim(-0.1, 3)
        ax.set_axis_off()
    save(axes[0].figure, path)
