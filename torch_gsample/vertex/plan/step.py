"""The steps of a plan."""

from dataclasses import dataclass

from torch_gsample.codegen.expression import Expression


@dataclass(frozen=True)
class Computed:
    """An aggregate that an earlier unit gives to a later one."""

    root: Expression


@dataclass(frozen=True)
class Step:
    """How a value comes to be: by a unit, or by operators of torch.

    Args:
        root (Expression): The value, of operands that are known then.
        number (int): Of the step.
        operands (Tuple[int, ...]): What it reads.
        kind (str): Its graph type.
        unit (int, optional): The unit that computes it.
        place (int): Which of its outputs it is.
    """

    root: Expression
    number: int
    operands: tuple[int, ...]
    kind: str
    unit: int | None = None
    place: int = 0
