"""Values of a program that samples several batches.

======================  ====================================================
constant                one value for all batches
vector over an axis     the concatenated rows of all batches
pointers over an axis   like vectors, with one more element than the axis
scalar                  one element for each batch
size of an axis         a number for each batch
numbers                 other numbers of each batch
weights                 read by operators of weighted draws only
======================  ====================================================

Integers that are positions in an axis are positions in the rows of *all*
batches while a program runs, so gathers, scatters and comparisons need not
consider batches. Results contain positions in their own batch.
"""

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import example, same_size
from torch_gsample.compiler.super_batch import segments
from torch_gsample.torch_private import schema_of
from torch_gsample.torch_private.dynamo import unknown_size


def args_of(node: Node) -> tuple[Any, ...]:
    """Returns the arguments of a node."""
    return node.args


class NoRule(Exception):
    """A node of a program has no rule; the message has the reason."""


@dataclass(eq=False)
class Axis:
    """A dimension along which batches are concatenated.

    Args:
        ptr (Node): int64 ``[B + 1]``, the start of each batch.
    """

    ptr: Node


@dataclass(frozen=True)
class Value:
    """A tensor of all batches.

    Args:
        node (Node): The node that computes it.
        axis (Axis, optional): The axis of batches; None for a constant.
        into (Axis, optional): The axis in which its integers are positions.
        kind (str, optional): ``'vector'``, ``'pointers'``, ``'ends'`` (all
            pointers but the first), ``'scalar'`` or ``'weights'``.
        counts (Axis, optional): The axis whose rows it counts: the number of
            rows that belong to each element.
    """

    node: Node
    axis: Any = None
    into: Axis | None = None
    kind: str = 'vector'
    counts: Axis | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all batches."""
        return self.axis is None


@dataclass(frozen=True)
class Size:
    """Number of rows of an axis in each batch, plus a constant."""

    axis: Axis
    more: int = 0


@dataclass(frozen=True)
class Numbers:
    """A number of each batch.

    Args:
        node (Node): The node that computes them.
    """

    node: Node


@dataclass(frozen=True)
class Parts:
    """Values of an operator with several results."""

    values: tuple['Value | Parts | None', ...]


class Rewrite:
    """A program during the rewrite, with the new values of its nodes.

    New nodes precede the node that is rewritten.

    Args:
        graph (Graph): The program.
        ptr (Node): The start of each batch's inputs.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.known: dict[Node, Any] = {}
        self.made: list[Node] = []
        #: The call id of each key.
        self.numbers: dict[Node, Node] = {}
        self._cache: dict[Any, Any] = {}
        self.first: Axis | None = None
        #: Operators that are called for each batch.
        self.each: list[str] = []
        #: Source axes of an axis with joined rows.
        self.joined: dict[Axis, tuple[Axis, ...]] = {}

    # Nodes.

    def call(
        self, target: Any, *args: Any, like: Any = None, **kwargs: Any
    ) -> Node:
        """Adds a call; ``like`` is an example of its result."""
        schema = schema_of(target)
        for argument in () if schema is None else schema.arguments:
            name, default = argument.name, argument.default_value
            if name in kwargs and kwargs[name] is default:
                del kwargs[name]  # the canonical form
        node = self.graph.call_function(target, args, kwargs)
        node.meta['example_value'] = like
        self.made.append(node)
        return node

    def copy(self, node: Node, changed: dict[Node, Any] | None = None) -> Node:
        """Adds a copy of a node's call, with rewritten operands."""
        changed = changed or {}

        def operand(n: Node) -> Any:
            return changed[n] if n in changed else self.operand(n)

        copied = self.graph.node_copy(node, operand)
        self.made.append(copied)
        return copied

    def operand(self, node: Node) -> Any:
        """Returns a node's new operand for operators without batches."""
        value = self.known[node]
        if isinstance(value, Size):
            return self.total(value)
        if not isinstance(value, Value):
            raise NoRule('it uses a part without a rule')
        return value.node

    def once(self, key: Any, make: Any) -> Any:
        """Returns the cached value of a key, or makes it."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    # Axes.

    @property
    def pointers(self) -> Node:
        """The start of each batch's seeds."""
        assert self.first is not None
        return self.first.ptr

    def pointer_like(self) -> Tensor:
        """Returns an example of starts of batches."""
        return example(self.pointers)

    def size_like(self) -> Any:
        """Returns an example of an unknown size."""
        return unknown_size(self.pointer_like())

    def total(self, size: Size) -> Node:
        """Returns the number of rows of all batches together."""
        node = self.once(
            ('total', size.axis),
            lambda: self.call(
                segments.total, size.axis.ptr, like=self.size_like()
            ),
        )
        if size.more == 0:
            return node
        return self.once(
            ('total', size.axis, size.more),
            lambda: self.call(
                operator.add, node, size.more, like=example(node) + size.more
            ),
        )

    def batch(self, axis: Axis) -> Node:
        """Returns the batch of each row of an axis."""
        return self.once(
            ('batch', axis),
            lambda: self.call(
                segments.batch_of, axis.ptr, like=self.vector_like(torch.int64)
            ),
        )

    def lengths(self, axis: Axis) -> Node:
        """Returns the number of rows of each batch, as a list."""
        return self.once(
            ('lengths', axis),
            lambda: self.call(segments.lengths, axis.ptr, like=None),
        )

    def vector_like(self, dtype: torch.dtype, *more: int) -> Tensor:
        """Returns an example of a vector of unknown size."""
        ptr = self.pointer_like()
        return ptr.new_empty((self.size_like(), *more), dtype=dtype)

    def axis(self, target: Any, *args: Any) -> Axis:
        """Creates an axis, by a function that returns starts of batches."""
        return Axis(self.call(target, *args, like=self.pointer_like()))

    def dense(self, size: Any) -> Axis:
        """Returns the axis of equally many rows per batch."""
        return self.once(
            ('dense', size),
            lambda: self.axis(segments.dense_ptr, self.pointers, size),
        )

    def has_dense(self, size: int) -> bool:
        """Whether batches have this number of rows of some value."""
        return ('dense', size) in self._cache

    def is_dense(self, axis: Axis, size: Any) -> bool:
        """Whether all batches have this number of rows of an axis."""
        return self._cache.get(('dense', size)) is axis

    def axis_of(self, size: Any) -> Axis | None:
        """Returns the axis whose number of rows is a symbolic size."""
        for node, value in self.known.items():
            is_vector = isinstance(value, Value) and value.kind == 'vector'
            if not is_vector or value.axis is None:
                continue
            if same_size(example(node).shape[0], size):
                return value.axis
        return None

    def of_pointers(self, indptr: Node, axis: Axis) -> Axis:
        """Returns the axis into which pointers over another one point."""
        return self.axis(segments.ptr_of_pointers, indptr, axis.ptr)

    def held(self, mask: Value) -> Axis:
        """Returns the axis of the rows selected by a mask."""
        assert mask.axis is not None
        ptr = mask.axis.ptr
        return self.once(
            ('held', mask.node),
            lambda: self.axis(segments.ptr_of_mask, mask.node, ptr),
        )

    # Values.

    def __getitem__(self, node: Any) -> Any:
        return self.known[node]

    def vector(self, node: Any) -> Value:
        """Returns a value that must be a vector over an axis."""
        value = self.known.get(node) if isinstance(node, Node) else None
        if (
            not isinstance(value, Value)
            or value.kind != 'vector'
            or value.is_constant
        ):
            raise NoRule(f'{node} is not a vector of all batches')
        return value

    def rows(self, node: Any) -> Value:
        """Returns a vector over an axis; a shared vector is repeated.

        The frontiers of types without seeds are shared vectors.
        """
        value = self.known.get(node) if isinstance(node, Node) else None
        if (
            not isinstance(value, Value)
            or not value.is_constant
            or value.kind != 'vector'
            or example(node).dim() != 1
        ):
            return self.vector(node)
        size = example(node).shape[0]
        if isinstance(size, int):
            axis = self.dense(size)
        else:
            axis = self.once(
                ('dense', str(size)), lambda: self._dense_like(value.node)
            )
        if isinstance(size, int) and size == 0:
            return Value(value.node, axis)
        like = self.vector_like(example(node).dtype)
        copies = self.once(
            ('tiled', value.node),
            lambda: self.call(segments.tile, value.node, axis.ptr, like=like),
        )
        return Value(copies, axis)

    def _dense_like(self, vector: Node) -> Axis:
        """Returns the axis of a constant's rows, repeated per batch."""
        size = self.call(
            torch.ops.aten.sym_size.int,
            vector,
            0,
            like=example(vector).shape[0],
        )
        return self.axis(segments.dense_ptr, self.pointers, size)

    def constant(self, node: Any) -> Any:
        """Returns an operand that is the same for all batches."""
        if isinstance(node, Node):
            value = self.known[node]
            if not isinstance(value, Value) or not value.is_constant:
                raise NoRule(f'{node} differs between batches')
            return value.node
        return node

    def local(self, value: Value) -> Node:
        """Returns integers as positions in their own batch."""
        into, axis = value.into, value.axis
        if into is None:
            return value.node
        assert axis is not None
        if value.kind != 'vector':
            raise NoRule('it uses pointers as numbers')
        return self.once(
            ('local', value.node, into),
            lambda: self.call(
                segments.localize,
                value.node,
                into.ptr,
                self.batch(axis),
                like=example(value.node),
            ),
        )

    def positions(self, value: Value, into: Axis) -> Node:
        """Returns integers as positions in the rows of all batches."""
        if value.into is into:
            return value.node
        assert value.axis is not None
        if value.kind != 'vector':
            raise NoRule('it uses pointers as positions')
        local, axis = self.local(value), value.axis
        return self.once(
            ('positions', local, into),
            lambda: self.call(
                segments.globalize,
                local,
                into.ptr,
                self.batch(axis),
                like=example(local),
            ),
        )
