"""Options that constructors share: each has its name and type here, once.

A constructor that passes options on takes them as ``**options:
Unpack[KeyOptions]``, say. Type checkers then refuse a wrong one, and
:func:`checked_names` does so when the program runs.
"""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast, get_args

import torch

from torch_gsample.placement import GraphPlacement

Direction: TypeAlias = Literal['forward', 'backward']
RngScope: TypeAlias = Literal['batch', 'epoch']
#: The time that bounds a hop, and the closed ends of its interval.
TimeBound: TypeAlias = Literal['seed', 'edge', 'batch']
TimeInclusive: TypeAlias = Literal['both', 'left', 'right', 'neither']
#: The order of the sampled edges of a node.
Order: TypeAlias = Literal['slot', 'random']
#: Whether seed edges are removed from a sample, or their reverse ones, too.
Exclusion: TypeAlias = bool | Literal['reverse']
#: Whether negatives are never edges, uniform over all pairs that are none, or
#: no edges yet.
TrueNegatives: TypeAlias = bool | Literal['uniform', 'unseen']


class KeyOptions(TypedDict, total=False):
    """Options of a :class:`KeyedSampler`."""

    seed: int | None
    rng_scope: RngScope


class LinkOptions(KeyOptions, total=False):
    """Options of all samplers in memory."""

    exclude_seed_edges: Exclusion
    true_negatives: TrueNegatives


class NeighborOptions(LinkOptions, total=False):
    """Options of a :class:`NeighborSampler` that PyG's does not have."""

    time_window: int | None
    time_bound: TimeBound
    time_inclusive: TimeInclusive
    index_dtype: torch.dtype | None
    num_threads: int | None
    order: Order
    device: torch.device | str
    graph_placement: GraphPlacement
    cache_bytes: int | None


class ForwardedOptions(NeighborOptions, total=False):
    """Options of a :class:`NeighborSampler` that PyG's loaders do not have."""

    share_memory: bool
    sample_direction: Direction


class CompileOptions(LinkOptions, total=False):
    """Options of all samplers that run a program."""

    compile: bool
    options: Mapping[str, Any] | None


class LayerOptions(CompileOptions, total=False):
    """Options of a :class:`PinSAGESampler`."""

    share_memory: bool


class WeightOptions(LayerOptions, total=False):
    """Options of samplers of weighted layers."""

    normalization: Literal['row', 'sym'] | None
    weight_attr: str | None


class ProgramOptions(LayerOptions, total=False):
    """Options of a :class:`ProgramSampler` whose program is chosen."""

    weight_attr: str | None
    own_edges: bool
    is_sorted: bool


class DiskOptions(KeyOptions, total=False):
    """Options of all samplers of a graph on disk."""

    use_weights: bool
    use_times: bool
    time_window: int | None
    num_threads: int | None
    order: Order


class WorkerOptions(TypedDict, total=False):
    """Options of :class:`torch.utils.data.DataLoader`: order and workers."""

    shuffle: bool | None
    num_workers: int
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    generator: torch.Generator | None
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str
    in_order: bool


#: Names of one thing in other libraries, for hints.
_SYNONYMS = (
    {'fanout', 'fanouts', 'num_neighbors', 'num_sampled', 'num_samples'},
    {'indices', 'nids', 'node_idx', 'input_nodes', 'nodes', 'seeds'},
    {'prob', 'probs', 'edge_weight', 'weight_attr'},
    {'random_seed', 'random_state', 'seed'},
)


def take(table: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Takes the options of a table out of others."""
    names = table.__annotations__.keys() & options.keys()
    return {name: options.pop(name) for name in names}


def check_known(owner: str, names: Iterable[str], known: list[str]) -> None:
    """Checks that arguments are known.

    Raises:
        TypeError: If one is not; it says which known one is the nearest.
    """
    for name in names:
        if name not in known:
            near = [
                other
                for group in _SYNONYMS
                for other in known
                if name in group and other in group
            ] or difflib.get_close_matches(name, known, n=1)
            hint = f' (did you mean {near[0]!r}?)' if near else ''
            raise TypeError(f'{owner}: unknown argument {name!r}{hint}')


Init = TypeVar('Init', bound=Callable[..., None])


def checked_names(init: Init) -> Init:
    """Decorates a constructor, so that it says what it takes.

    An unknown argument ends in an error with the nearest known name. The
    signature lists each option of ``**options: Unpack[...]``, where ``...`` is
    a default that the documentation has, for completion in a shell.

    Example:
        >>> class Sampler:
        ...     @checked_names
        ...     def __init__(self, seed: int = 0):
        ...         self.seed = seed
        >>> Sampler(sed=1)
        Traceback (most recent call last):
        TypeError: Sampler: unknown argument 'sed' (did you mean 'seed'?)
    """
    parameters: dict[str, inspect.Parameter] = {}
    signature = inspect.signature(init)
    for name, parameter in signature.parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            parameters[name] = parameter
            continue
        (table,) = get_args(parameter.annotation)
        for option, kind in table.__annotations__.items():
            parameters[option] = inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=...,
                annotation=kind,
            )

    @functools.wraps(init)
    def checked(self: object, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        check_known(name, kwargs, list(parameters)[1:])
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as error:  # missing, or too many
            raise TypeError(f'{name}: {error}') from None
        init(self, *args, **kwargs)

    changed: Any = checked
    changed.__signature__ = signature.replace(
        parameters=list(parameters.values())
    )
    return cast(Init, checked)
