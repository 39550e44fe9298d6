"""The axes of pictures."""

from typing import Any

_COLORS = '#d1495b', '#edae49', '#00798c', '#66a182', '#2e4057', '#8d96a3'


def make_axes(name: str, ax: Any, figsize: tuple[float, float]) -> Any:
    """Checks the axes of a caller, or makes a figure with new ones.

    The figure is not known to pyplot: it opens no window, and goes with its
    last reference.

    Args:
        name (str): The function that draws.
        ax (matplotlib.axes.Axes, optional): The axes of the caller.
        figsize (Tuple[float, float]): Inches of a new figure.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If :obj:`ax` is something else.
    """
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"{name}: matplotlib is needed: `pip install 'torch_gsample[viz]'`"
        ) from error
    if ax is None:
        return Figure(figsize=figsize, layout='constrained').subplots()
    if not isinstance(ax, Axes):
        raise TypeError(
            f"{name}: 'ax' must be matplotlib's Axes (got {type(ax).__name__})"
        )
    return ax


def sample_colors(count: int) -> list[Any]:
    """Returns colours that are told apart: ours, or as many as are needed."""
    if count <= len(_COLORS):
        return list(_COLORS[:count])
    import matplotlib as mpl

    shades = mpl.colormaps['turbo']
    return [shades((i + 0.5) / count) for i in range(count)]
