"""Changes the classes of modules, and restores them.

A module of a fused model keeps its name, parameters and keys, but computes
by another class, which has one of several roles.
"""

import copy
import functools
import types
from typing import Any
from weakref import WeakKeyDictionary

from torch_geometric.nn import Sequential

from torch_gsample.loader.batch_edge_index import READERS

#: The methods of a model that compute blocks.
_METHODS = 'forward', 'encode'
#: The fused module of each that was made for ``torch.jit.script``, which takes
#: it out of its model, but remembers its id.
_scripted: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
#: The classes of modules by their role in a model; they register here.
ROLES: dict[str, Any] = {}


class Fused:
    """A module with a changed class, which copies and pickles keep."""

    #: Its role in a model: a key of :data:`ROLES`.
    role: str
    #: Its original class.
    original: type
    #: The class that computes it.
    base: type

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = self.role, self._replaced(), known_of(self)
        make, args, *rest = _as_base(self).__reduce_ex__(protocol)
        return _restore, (*parts, make, args), *rest

    def __setstate__(self, state: Any) -> None:
        # PyG's layers set a "propagate" of their own in the class.
        _as_base(self).__setstate__(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = copy.deepcopy(known_of(self), memo)
        base = _as_base(self)
        if hasattr(base, '__deepcopy__'):
            out = copy.deepcopy(base, memo)
        else:
            make, args, state, *_ = base.__reduce_ex__(4)
            # First: parts of a module may refer to it.
            memo[id(self)] = out = make(*copy.deepcopy(args, memo))
            out.__setstate__(copy.deepcopy(state, memo))
        original = self._replaced()
        if original is not None:
            original = _with_wrappers(type(self), original)
        return change_class(out, self.role, known, None, original)

    def __prepare_scriptable__(self) -> Any:
        """Returns what ``torch.jit.script`` compiles instead."""
        out = _unfused(self, {})
        _scripted[out] = self
        return out

    def _replaced(self) -> type | None:
        """The original class, if another class computes the module now."""
        return None if self.original is self.base else self.original


def known_of(module: Any) -> Any:
    """Returns the properties of a module in its role."""
    return module.__dict__[f'_gsample_{module.role}']


def change_class(
    module: Any,
    role: str,
    known: Any,
    base: type | None = None,
    original: type | None = None,
) -> Any:
    """Changes the class of a module to that of a part of a fused model.

    Args:
        module (torch.nn.Module): The module.
        role (str): ``'layer'``, ``'model'``, ``'norm'``, ``'cell'`` or
            ``'product'``.
        known (Any): Its properties.
        base (Type, optional): The class that computes it; default: its own.
        original (Type, optional): Its original class; default: its own.

    Returns:
        torch.nn.Module: The module.
    """
    original = type(module) if original is None else original
    known_base: Any = type(module) if base is None else base
    kind = ROLES[role]
    fields: dict[str, Any] = {
        '__module__': known_base.__module__,
        '__qualname__': known_base.__qualname__,
        '__doc__': known_base.__doc__,
        **{'role': role, 'original': original, 'base': known_base},
        f'{role}_class': original,  # also for modules with two roles
    }
    if role == 'model':
        for name in _METHODS:
            own = getattr(known_base, name, None)
            if isinstance(own, types.FunctionType):
                fields[name] = _with_signature(name, own)
                if name in vars(module) or issubclass(known_base, Sequential):
                    fields[name] = _OfInstances(name, fields[name])
        READERS.add(known)
    # Other threads may call the module as soon as its class has changed.
    module.__dict__[f'_gsample_{role}'] = known
    # One class per module, as some modules modify their class.
    module.__class__ = type(known_base.__name__, (kind, known_base), fields)
    return module


def restore_class(module: Any) -> None:
    """Restores the original class of a module."""
    while isinstance(module, Fused):
        known = module.__dict__.pop(f'_gsample_{module.role}')
        if module.role == 'model':
            READERS.discard(known)
        kind = type(module)
        module.__class__ = _with_wrappers(kind, kind.original)


def _unfused(module: Any, known: dict[int, Any]) -> Any:
    """Returns a module of the original classes, with the same parameters.

    Its parts are other objects, too: ``torch.jit.script`` replaces them.
    """
    if id(module) in known:
        return known[id(module)]
    kind: Any = type(module)
    while issubclass(kind, Fused):
        kind = _with_wrappers(kind, kind.original)
    known[id(module)] = out = object.__new__(kind)
    fields = {k: v for k, v in vars(module).items() if k[:8] != '_gsample'}
    object.__setattr__(out, '__dict__', fields)
    fields['_modules'] = {
        name: part if part is None else _unfused(part, known)
        for name, part in module._modules.items()
    }
    return out


def _with_signature(name: str, like: Any) -> Any:
    @functools.wraps(like)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._gsample_run(name, args, kwargs)

    return method


class _OfInstances:
    """A method of a class that goes before those of its instances.

    PyG's ``Sequential`` sets a ``forward`` of its own in each instance.

    Args:
        name (str): Its name.
        method (Callable): The method.
    """

    def __init__(self, name: str, method: Any):
        self._name, self._method = name, method

    def __get__(self, module: Any, owner: Any = None) -> Any:
        if module is None:
            return self._method
        return types.MethodType(self._method, module)

    def __set__(self, module: Any, value: Any) -> None:
        vars(module)[self._name] = value

    def __delete__(self, module: Any) -> None:
        del vars(module)[self._name]


def own_method(module: Any, name: str, of_class: Any) -> Any:
    """Returns a method of an instance, or else that of its class.

    Args:
        module (torch.nn.Module): The instance.
        name (str): The name of the method.
        of_class (Callable): The method of the class, bound.
    """
    own = vars(module).get(name, of_class)
    if own is not of_class and isinstance(own, types.MethodType):
        # A copy may have another's.
        return types.MethodType(own.__func__, module)
    return own


def _restore(
    role: str, original: type | None, known: Any, make: Any, args: Any
) -> Any:
    if role == 'layer' and not isinstance(known[0], tuple):  # of 0.2.0
        known = (known,)
    return change_class(make(*args), role, known, None, original)


def _as_base(module: Any) -> Any:
    """Returns a module of the base class with the same attributes.

    The module keeps its class: other threads may call it or copy it.
    """
    kind: Any = type(module)
    base: Any = object.__new__(_with_wrappers(kind, kind.base))
    object.__setattr__(base, '__dict__', vars(module))
    return base


def _with_wrappers(kind: type, inner: type) -> type:
    """Returns a class with the properties that others added to a fused one.

    A parametrization is a property of a class that torch derives.

    Args:
        kind (Type): A fused class, or one derived from it.
        inner (Type): The class to return instead of the fused one.
    """
    if 'role' in vars(kind):
        return inner
    base = _with_wrappers(kind.__bases__[0], inner)
    left = '__dict__', '__weakref__', '__getstate__'  # torch's raises
    fields = {k: v for k, v in vars(kind).items() if k not in left}
    return type(kind.__name__, (base,), fields)
