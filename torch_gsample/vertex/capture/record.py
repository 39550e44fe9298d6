"""Records the operators of a call of ``propagate``."""

import inspect
import linecache
import math
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from torch import Tensor

from torch_gsample.torch_private import (
    PLAIN_RESULTS,
    TorchDispatchMode,
    tree_leaves,
    tree_map,
    wrapper_tensor,
)
from torch_gsample.vertex.capture.dropout import drawn
from torch_gsample.vertex.capture.nodes import (
    EDGE,
    PARAMETER,
    VERTEX,
    Node,
    NotCaptured,
)
from torch_gsample.vertex.capture.rules import record

#: Code whose lines are not the user's: torch, this, and what PyG's layers
#: call for scattering and softmax.
_SKIPPED = tuple(
    f'{Path(str(path)).parent}{os.sep}'
    for path in (torch.__file__, __file__, torch_geometric.utils.__file__)
)
_FILLS = {
    **{name: 0.0 for name in ('zeros', 'new_zeros', 'zeros_like')},
    **{name: 1.0 for name in ('ones', 'new_ones', 'ones_like')},
    'empty_like': math.nan,  # before random numbers overwrite it
}
_FULL = {'full': 1, 'new_full': 2, 'full_like': 1}
#: Operators that reveal values to Python.
_READS = frozenset(
    {
        *('_local_scalar_dense', 'is_nonzero', 'item', 'equal', 'nonzero'),
        *('_unique2', 'unique_consecutive', 'unique_dim', 'masked_select'),
    }
)


class Traced(Tensor):
    """A tensor in a capture, with a shape but no values.

    Args:
        node (Node): Its node.
        device (torch.device): The reported device.
    """

    __torch_function__ = PLAIN_RESULTS  # type: ignore[assignment]
    node: Node
    #: Whether another tensor shares its memory.
    has_alias: bool

    @staticmethod
    def __new__(cls, node: Node, device: torch.device) -> 'Traced':
        made = wrapper_tensor(cls, node.shape, node.dtype, device)
        made.node, made.has_alias = node, False
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f'Traced({self.node.op}, {list(self.node.shape)})'

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Rejects operators after the end of the capture."""
        raise NotCaptured('a value is used after the call that computes it')


class Constant:
    """A tensor that a message creates; equal if its bytes are.

    Args:
        tensor (torch.Tensor): The tensor.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __repr__(self) -> str:
        data = self.tensor.cpu().contiguous().view(torch.uint8)
        digest = sha256(data.numpy().tobytes()).hexdigest()
        return f'Constant({digest[:16]})'


class Recorder(TorchDispatchMode):
    """Records each operator of a capture.

    Args:
        device (torch.device): The device of the call's tensors.
        sources (int): The number of sources in the capture.
        destinations (int): The number of destinations.
        edges (int): The number of edges.
        target (int): The row of ``edge_index`` with destinations.
    """

    def __init__(
        self,
        device: torch.device,
        sources: int,
        destinations: int,
        edges: int,
        target: int,
    ):
        super().__init__()
        self.device, self.target = device, target
        self.sources, self.destinations = sources, destinations
        self.edges = edges
        #: Constant tensors created in the capture, by their ids.
        self._constants: dict[int, Tensor] = {}

    def tensor(self, node: Node) -> Traced:
        """Returns the traced tensor of a node."""
        return Traced(node, self.device)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Records an operator."""
        kwargs = kwargs or {}
        leaves = tree_leaves([args, kwargs])
        name = func.overloadpacket.__name__
        traced = [x for x in leaves if isinstance(x, Traced)]
        if name in _FILLS or name in _FULL:
            return self._fill(name, func, args, kwargs)
        if not traced:
            out = func(*args, **kwargs)
            self._note(name, func, leaves, tree_leaves(out))
            return out
        where = location()
        if self._constants:
            args, kwargs = tree_map(self._constant, (args, kwargs))
            leaves = tree_leaves([args, kwargs])
        if name in _READS:
            raise NotCaptured(f'torch.{name} reads values', where)
        if func.namespace != 'aten':
            raise NotCaptured(f'{func} is not an operator of torch', where)
        if func is torch.ops.aten.bernoulli_.float:
            return self._mask(args[0], *args[1:], **kwargs)
        if _is_random(name, func):
            raise NotCaptured(f'torch.{name} is random', where)
        self._check(leaves, name, where)
        if name.endswith('_') and not name.endswith('__'):
            return self._in_place(name, func, args, kwargs, where)
        if 'out' in kwargs:
            raise NotCaptured(f"torch.{name} has an 'out'", where)
        out = self._recorded(func, args, kwargs, where)
        made = tree_map(self._traced, out)
        if func.is_view:
            for x in (*traced, *tree_leaves(made)):
                x.has_alias = True
        return tuple(made) if isinstance(made, list) else made

    def _traced(self, x: Any) -> Any:
        return self.tensor(x) if isinstance(x, Node) else x

    def _mask(self, target: Traced, p: float = 0.5, **_: Any) -> Traced:
        """Fills a tensor with draws, for dropout."""
        node = target.node
        if node.op != 'fill' or target.has_alias:
            raise NotCaptured('torch.bernoulli_ is random', location())
        target.node = drawn(self, node, p, location())
        return target

    def _note(
        self, name: str, func: Any, given: list[Any], made: list[Any]
    ) -> None:
        """Notes results that depend on no tensor but constants."""
        of_constants = not _is_random(name, func) and all(
            id(x) in self._constants for x in given if isinstance(x, Tensor)
        )
        for x in made:
            if not isinstance(x, Tensor):
                continue
            if of_constants or name == 'lift_fresh':
                self._constants[id(x)] = x
            else:
                self._constants.pop(id(x), None)

    def _constant(self, x: Any) -> Any:
        sizes = self.sources, self.destinations, self.edges
        if id(x) not in self._constants or set(sizes) & set(x.shape):
            return x
        number = x.item() if x.dim() == 0 else Constant(x.clone())
        op = 'constant' if x.dim() else 'fill'
        shape = tuple(x.shape)
        return self.tensor(
            Node(op, PARAMETER, shape, x.dtype, None, (number,))
        )

    def _check(self, leaves: list[Any], name: str, where: str) -> None:
        for x in leaves:
            if isinstance(x, Tensor) and not isinstance(x, Traced):
                raise NotCaptured(
                    f'torch.{name} reads a tensor that is neither an argument '
                    f'nor a parameter of the layer',
                    where,
                )
        if not torch.is_grad_enabled() and _in_function():
            raise NotCaptured(
                'the gradient of a torch.autograd.Function is unknown', where
            )

    def _recorded(self, func: Any, args: Any, kwargs: Any, where: str) -> Any:
        args, kwargs = tree_map(_node_of, (args, kwargs))
        out = record(self, func, args, kwargs, where)
        if torch.is_grad_enabled():
            return out
        if isinstance(out, list):
            return [_detached(node) for node in out]
        return _detached(out)

    def _in_place(
        self, name: str, func: Any, args: Any, kwargs: Any, where: str
    ) -> Any:
        target = args[0]
        packet = getattr(torch.ops.aten, name[:-1], None)
        overload = getattr(packet, str(func).rsplit('.', 1)[1], None)
        if overload is None or not isinstance(target, Traced):
            raise NotCaptured(f'torch.{name} is in place', where)
        if target.has_alias:
            raise NotCaptured(f'torch.{name} changes a shared tensor', where)
        out = self._recorded(overload, args, kwargs, where)
        if out.shape != target.node.shape or out.dtype != target.node.dtype:
            raise NotCaptured(f'torch.{name} changes a shape', where)
        if not torch.is_grad_enabled():
            out = self._with_gradient(out, target.node, where)
        target.node = out
        return target

    def _with_gradient(self, value: Node, of: Node, where: str) -> Node:
        """Returns a value with the gradient of another.

        Without autograd, an operator in place changes only the value. Here it
        is ``value + (of - of.detach())``, whose second term is 0 if finite.
        """
        if not of.dtype.is_floating_point:
            return value

        def call(func: Any, *args: Any) -> Node:
            out: Node = record(self, func, args, {}, where)
            return out

        aten = torch.ops.aten
        zero = call(aten.sub.Tensor, of, _detached(of))
        is_finite = call(aten.eq.Tensor, zero, zero)
        zero = call(aten.where.ScalarOther, is_finite, zero, 0.0)
        return call(aten.add.Tensor, value, zero)

    def _fill(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """Returns a constant tensor."""
        given = [x for x in args if isinstance(x, Traced)]
        value = _FILLS.get(name)
        if value is None:
            place = _FULL[name]
            value = args[place] if len(args) > place else kwargs['fill_value']
        if given and name.endswith('_like'):
            shape, dtype = tuple(given[0].shape), given[0].dtype
        else:
            size = args[1] if given else args[0]
            size = kwargs.get('size', size)
            shape = tuple(size)
            dtype = given[0].dtype if given else torch.get_default_dtype()
        dtype = kwargs.get('dtype') or dtype
        rows = [
            i
            for i, n in enumerate(shape)
            if n in (self.sources, self.destinations, self.edges)
        ]
        if not rows and not given:
            out = func(*args, **kwargs)
            self._note(name, func, [], [out])
            return out
        where = location()
        if len(rows) > 1 or not isinstance(value, (bool, int, float)):
            raise NotCaptured(f'torch.{name} of shape {list(shape)}', where)
        kind, row = PARAMETER, None
        if rows:
            row = rows[0]
            kind = EDGE if shape[row] == self.edges else VERTEX
        node = Node('fill', kind, shape, dtype, row, (value,), where=where)
        return self.tensor(node)


def _is_random(name: str, func: Any) -> bool:
    seeded = torch.Tag.nondeterministic_seeded in func.tags
    return seeded and name != 'native_dropout'


def _node_of(x: Any) -> Any:
    return x.node if isinstance(x, Traced) else x


def _detached(node: Node) -> Node:
    if not node.dtype.is_floating_point or node.op == 'fill':
        return node
    return Node(
        *('detach', node.kind, node.shape, node.dtype, node.row, (node,)),
        func=torch.ops.aten.detach.default,
        where=node.where,
    )


def _in_function() -> bool:
    frame: Any = inspect.currentframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if path.endswith(('autograd/function.py', 'custom_function.py')):
            return True
        frame = frame.f_back
    return False


def location() -> str:
    """Returns the running line of the layer."""
    frame: Any = inspect.currentframe()
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_SKIPPED):
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            return f'{code.co_name}: line {frame.f_lineno}, {text!r}'
        frame = frame.f_back
    return ''
