"""Operations that a matrix on disk rejects, and their alternatives."""

from typing import Any, NoReturn

from torch_gsample.sparse_sample import SparseSample

#: Methods that need no layout, or call other methods.
_WORK = ('collective_sample', 'visit_count', 'random_walk_step')
_INSTEAD = {
    'individual_sample': "'A[:, nodes].individual_sample(...)'",
    'labor_sample': "'A[:, nodes].labor_sample(...)'",
    'coo': "'A[:, nodes].coo()'",
    'edge_id': "'A[:, nodes].edge_id'",
    'values': "'A[:, nodes].values()'",
    'value': "'A[:, nodes].value'",
    'csc': "'A[:, nodes].csc'",
    'csr': "'A[:, nodes].csr'",
}
_PROPERTIES = ('csc', 'csr', 'edge_id', 'value', '_stored', '_edge_id')


def refuse(kind: type) -> None:
    """Adds methods that name the alternative of each missing operation."""
    for name in _PROPERTIES:
        setattr(kind, name, property(_refusal(name)))
    for name in dir(SparseSample):
        made = name.startswith(('_', 'from_')) or name in _WORK
        if made and name not in ('__matmul__', '__rmatmul__', '_index'):
            continue
        given = getattr(SparseSample, name)
        if callable(given) and getattr(kind, name) is given:
            setattr(kind, name, _refusal(name))


def _refusal(name: str) -> Any:
    what = name.strip('_')
    instead = _INSTEAD.get(what, f"'A[:, nodes]', and then {what!r}")

    def refused(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            f'SparseSample: {what} of a matrix on disk would read all of its '
            f'edges into memory: use {instead}'
        )

    refused.__name__ = name
    return refused
