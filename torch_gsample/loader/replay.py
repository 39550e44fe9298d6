"""Workers sample for a trainable sampler, and the caller differentiates.

A worker gets the indices of a batch with the current parameters, and returns
its sample without gradients. The backward pass of a batch runs the program
again, with the same parameters and the same batch id, in the process whose
parameters get the gradients.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from torch_gsample.loader.numbering import OwnIndex
from torch_gsample.rng import BatchNumber
from torch_gsample.samplers.program.gradients import (
    parameters_of,
    same_modes,
    without_gradients,
)
from torch_gsample.samplers.program.sampler import ProgramSampler

#: Tolerances of values computed by different numbers of threads.
_RTOL, _ATOL = 1e-3, 1e-6
#: The tensors of a sample that identify the draws.
_DRAWN = 'node', 'row', 'col', 'edge', 'batch'


class RecordedIndex(OwnIndex):
    """The indices of a batch, and its parameters as bytes."""

    def __init__(
        self,
        indices: Sequence[int],
        number: BatchNumber,
        parameters: list[np.ndarray],
    ):
        super().__init__(indices, number)
        self.parameters = parameters

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.number, self.parameters)


@dataclass
class Drawn:
    """A worker's sample.

    Args:
        index (RecordedIndex): The batch.
        out (AttributedOutput or HeteroAttributedOutput): The sample.
        learned (List[Tuple]): The attributes that have gradients.
    """

    index: RecordedIndex
    out: Any
    learned: list[tuple[Any, ...]]

    @property
    def node(self) -> Any:
        """The nodes, under their name in a sample."""
        return self.out.node


class Replays:
    """Batches of a loader whose workers sample for a trainable sampler.

    Args:
        name (str): The loader, for errors.
        sampler (ProgramSampler): Its sampler.

    Raises:
        ValueError: If a parameter cannot be sent to workers.
    """

    def __init__(self, name: str, sampler: ProgramSampler):
        self._name, self._sampler = name, sampler
        for p in parameters_of(sampler):
            if not p.is_leaf or not p.is_cpu or p.layout != torch.strided:
                kind = 'a leaf' if p.is_leaf else 'a computed tensor'
                raise ValueError(
                    f"{name}: with 'num_workers', parameters of {sampler!r} "
                    'must be dense leaf tensors on the CPU (got '
                    f'{kind} of shape {list(p.shape)}, {p.layout} on '
                    f'{p.device})'
                )

    def hand_out(self, index: OwnIndex) -> RecordedIndex:
        """Adds the current parameters to the indices of a batch."""
        parameters = [_bytes_of(p) for p in parameters_of(self._sampler)]
        return RecordedIndex(index, index.number, parameters)

    def prepare(self) -> None:
        """Compiles the program before workers are forked."""
        with same_modes():
            self._sampler.prepare_workers()

    def draw(self, index: RecordedIndex, sample: Callable[..., Any]) -> Drawn:
        """Samples a batch with its parameters, in a worker.

        Args:
            index (RecordedIndex): The batch.
            sample (Callable): Samples the batch of an index.
        """
        own = parameters_of(self._sampler)
        held = self._holding(own, index.parameters)
        with same_modes(), held, without_gradients():
            out = sample(index)
        values = _values_of(out)
        learned = [key for key, v in values.items() if v.requires_grad]
        _set_values(out, {key: v.detach() for key, v in values.items()})
        return Drawn(index, out, learned)

    def attach(self, drawn: Drawn, sample: Callable[..., Any]) -> Any:
        """Returns a sample with gradients; ``sample`` as in ``draw``."""
        out, own = drawn.out, parameters_of(self._sampler)
        if drawn.learned:
            replay = _Replay(self, drawn, sample, own)
            values = _Differentiated.apply(replay, *own)
            _set_values(out, dict(zip(drawn.learned, values, strict=True)))
        return out

    @contextmanager
    def _holding(
        self, parameters: Sequence[Tensor], recorded: Sequence[np.ndarray]
    ) -> Iterator[None]:
        """Sets parameters to other values for a context.

        New tensors hold the values: spawned workers share the parameters'
        memory with the caller, and a graph of the caller may have saved it.
        """
        sizes = [p.numel() * p.element_size() for p in parameters]
        if sizes != [data.size for data in recorded]:
            raise RuntimeError(
                f'{self._name}: the parameters of {self._sampler!r} '
                'must be the same in all processes and during an '
                f'epoch (got sizes {sizes} for '
                f'{[data.size for data in recorded]} bytes)'
            )
        before = [p.data for p in parameters]
        try:
            for p, data in zip(parameters, recorded, strict=True):
                value = torch.from_numpy(data).view(p.dtype).view(p.shape)
                p.data = torch.empty_like(p).copy_(value).detach()
            yield
        finally:
            for p, held in zip(parameters, before, strict=True):
                p.data = held


class _Replay:
    """The program of a batch, to run again with the same parameters."""

    def __init__(
        self,
        replays: Replays,
        drawn: Drawn,
        sample: Callable[..., Any],
        parameters: list[Tensor],
    ):
        self._replays, self._sample = replays, sample
        self._index, self._learned = drawn.index, drawn.learned
        # The caller may change the sample.
        self._drawn = _tensors_of(drawn.out)
        values = _values_of(drawn.out)
        self.values = [values[key] for key in drawn.learned]
        self.parameters = parameters

    def gradients(self, grads: Sequence[Tensor | None]) -> list[Any]:
        """Returns the parameters' gradients from those of the values."""
        own = parameters_of(self._replays._sampler)
        if [id(p) for p in own] != [id(p) for p in self.parameters]:
            raise self._error('parameters have been replaced')
        # If sums of several threads differ too much, as the worker by one.
        for threads in sorted({torch.get_num_threads(), 1}, reverse=True):
            held = self._replays._holding(own, self._index.parameters)
            with same_modes(), _threads(threads), held:
                found = self._run()
                if found is None:
                    continue
                used = [i for i, g in enumerate(grads) if g is not None]
                return list(
                    torch.autograd.grad(
                        [found[i] for i in used],
                        own,
                        [grads[i] for i in used],
                        allow_unused=True,
                    )
                )
        raise self._error('another sample')

    def _run(self) -> list[Tensor] | None:
        """Returns the values with their graph, or None if samples differ."""
        out = self._sample(self._index)
        tensors, values = _tensors_of(out), _values_of(out)
        same = len(tensors) == len(self._drawn) and all(
            map(torch.equal, tensors, self._drawn)
        )
        if not same or not values.keys() >= set(self._learned):
            return None
        found = [values[key] for key in self._learned]
        close = all(
            v.requires_grad
            and torch.allclose(v, known, _RTOL, _ATOL, equal_nan=True)
            for v, known in zip(found, self.values, strict=True)
        )
        return found if close else None

    def _error(self, got: str) -> RuntimeError:
        sampler = self._replays._sampler
        return RuntimeError(
            f'{self._replays._name}: {sampler!r} must draw batch '
            f'{tuple(self._index.number)} again as its worker did (got '
            f'{got}): its program may depend on its arguments, on draws of '
            'matrices and on the parameters that it, its closure or its '
            'arguments hold, and on nothing else that changes; or set '
            "'num_workers' to 0"
        )


class _Differentiated(torch.autograd.Function):
    """A worker's values, with gradients of the parameters."""

    @staticmethod
    def forward(ctx: Any, replay: _Replay, *parameters: Tensor) -> Any:
        ctx.replay = replay
        ctx.set_materialize_grads(False)
        return tuple(value.clone() for value in replay.values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return None, *ctx.replay.gradients(grads)


# Helpers #####################################################################


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    if count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _bytes_of(parameter: Tensor) -> np.ndarray:
    flat = parameter.detach().reshape(-1).contiguous()
    return flat.view(torch.uint8).numpy().copy()


def _values_of(out: Any) -> dict[tuple[Any, ...], Tensor]:
    """Returns the attributes of a sample by kind, type and name."""
    kinds = {'node': out.attributes.node, 'edge': out.attributes.edge}
    return {
        (kind, group, name): value
        for kind, groups in kinds.items()
        for group, values in groups.items()
        for name, value in values.items()
    }


def _set_values(out: Any, values: dict[tuple[Any, ...], Tensor]) -> None:
    for (kind, group, name), value in values.items():
        getattr(out.attributes, kind)[group][name] = value


def _tensors_of(out: Any) -> list[Tensor]:
    """Returns the tensors of the draws, in the order of types."""
    parts = [getattr(out, name) for name in _DRAWN]
    by_type = [
        part.values() if isinstance(part, dict) else [part] for part in parts
    ]
    return [x for values in by_type for x in values if x is not None]
