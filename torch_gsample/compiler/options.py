"""Compiler options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch.fx import GraphModule

from torch_gsample.compiler.pipeline import PASSES, Trace, run_pipeline

#: Values of ``layout``.
LAYOUTS = ('auto', 'csc', 'csr', 'coo', 'compact', 'full')


@dataclass(frozen=True)
class Options:
    """Options of the backend.

    Args:
        passes (List[str], optional): Names of the passes to run, in the order
            of the pipeline; default: all.
        dump (str, optional): Folder for the text of the program after each
            pass that changed it; default: that of ``GSAMPLE_DUMP``.
        layout (str or Dict[str, str], optional): ``'auto'`` measures which
            layout is fastest. ``'csc'``, ``'csr'``, ``'coo'``, ``'compact'``
            or ``'full'`` is used wherever possible, or for the operators in a
            dictionary: ``{'slice_cols[0]': 'compact'}``.
        strict (bool, optional): Whether to raise an error if a pass fails.
            Otherwise a warning names it, and the other passes run without it.
        super_batch (int or str): Maximum number of batches that run together,
            or ``'auto'``; see :func:`torch_gsample.super_batch`.
        memory_budget (int, optional): Memory of a super-batch in bytes.
    """

    passes: tuple[str, ...] | None = None
    dump: str | None = None
    layout: str | Mapping[str, str] = 'auto'
    strict: bool = False
    super_batch: int | str = 1
    memory_budget: int | None = None

    @classmethod
    def read(cls, options: Mapping[str, Any] | None) -> 'Options':
        """Reads ``torch.compile(..., options=...)``.

        Raises:
            TypeError: If an option has the wrong type.
            ValueError: If an option is unknown.
        """
        given = dict(options or {})
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(
                    f"gsample: 'options' must be in {known} (got {name!r})"
                )
        if given.get('passes') is not None:
            names = [p.name for p in PASSES]
            given['passes'] = tuple(given['passes'])
            for name in given['passes']:
                if name not in names:
                    raise ValueError(
                        f"gsample: 'passes' must be in {names} (got {name!r})"
                    )
        for name, kind in (('dump', (str, os.PathLike)), ('strict', bool)):
            value = given.get(name)
            if value is not None and not isinstance(value, kind):
                raise TypeError(
                    f"gsample: '{name}' has the wrong type (got {value!r})"
                )
        _check_super_batch(given)
        _check_layout(given.get('layout', 'auto'))
        given.setdefault('dump', os.environ.get('GSAMPLE_DUMP') or None)
        return cls(**given)

    def rewrite(self, module: GraphModule) -> Trace:
        """Runs the passes; see :func:`~.pipeline.run_pipeline`."""
        return run_pipeline(module, self.passes, self.layout, self.strict)


def _check_super_batch(given: Mapping[str, Any]) -> None:
    for name in ('super_batch', 'memory_budget'):
        value = given.get(name)
        if value is None or (name == 'super_batch' and value == 'auto'):
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(
                f"gsample: '{name}' must be an integer (got {value!r})"
            )
        if value < 1:
            raise ValueError(
                f"gsample: '{name}' must be positive (got {value})"
            )


def _check_layout(layout: Any) -> None:
    by_node = isinstance(layout, Mapping)
    for value in layout.values() if by_node else [layout]:
        if not isinstance(value, str):
            raise TypeError(
                "gsample: 'layout' must be a string or a dictionary of "
                f'strings (got {layout!r})'
            )
        if value not in LAYOUTS:
            raise ValueError(
                f"gsample: 'layout' must be in {list(LAYOUTS)} (got {value!r})"
            )
