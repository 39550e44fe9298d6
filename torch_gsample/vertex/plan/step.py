"""The steps of a plan."""

from dataclasses import dataclass

from torch_gsample.codegen.expression import Expression


@dataclass(frozen=True)
class Computed:
    """An aggregate that an earlier unit passes to a later one."""

    root: Expression


@dataclass(frozen=True)
class Step:
    """A step that computes a value, by a unit or by torch operators.

    Args:
        root (Expression): The value, as an expression of known operands.
        number (int): Number of the step.
        operands (Tuple[int, ...]): Its inputs.
        kind (str): Its graph type.
        unit (int, optional): The unit that computes it.
        place (int): Index among the unit's outputs.
    """

    root: Expression
    number: int
    operands: tuple[int, ...]
    kind: str
    unit: int | None = None
    place: int = 0
