"""Checks of the arguments of a :class:`NeighborSampler`."""

from typing import Any

_CHOICES = {
    'sample_direction': ('forward', 'backward'),
    'temporal_strategy': ('uniform', 'last'),
    'exclude_seed_edges': (False, True, 'reverse'),
}


def check_choices(*values: Any) -> None:
    """Checks arguments that have some values only, in the order above.

    Raises:
        ValueError: If one has another value.
    """
    for (name, choices), value in zip(_CHOICES.items(), values, strict=True):
        if value not in choices:
            raise ValueError(
                f"NeighborSampler: '{name}' must be one of {choices} "
                f'(got {value!r})'
            )


def check_count(name: str, value: int | None) -> None:
    """Checks a number of things that may be left out.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is negative.
    """
    if value is None:
        return
    if not isinstance(value, int):
        raise TypeError(
            f"NeighborSampler: '{name}' must be an integer (got {value!r})"
        )
    if value < 0:
        raise ValueError(
            f"NeighborSampler: '{name}' must not be negative (got {value})"
        )


def check_window(time_window: int | None, time_attr: Any) -> None:
    """Checks the width of a time window.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is negative, or there are no times.
    """
    check_count('time_window', time_window)
    if time_window is not None and time_attr is None:
        raise ValueError(
            f"NeighborSampler: 'time_window' needs 'time_attr' "
            f'(got {time_window})'
        )
