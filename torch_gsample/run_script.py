"""Runs a script of PyG's with our samplers.

Processes that the script spawns run this module in its place, and so have
our samplers, too.
"""

import builtins
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType, SimpleNamespace, TracebackType
from typing import Any

from torch_gsample.patch import patch_pyg

#: Tells processes that the script starts which one it is.
_VARIABLES = {False: 'GSAMPLE_RUN_SCRIPT', True: 'GSAMPLE_RUN_MODULE'}
#: Tells them whether models are fused.
_FUSE = 'GSAMPLE_RUN_FUSE'


class _NoModuleError(ImportError):
    """There is no module to run."""


def run_script(
    script: str, args: Sequence[str], module: bool = False, fuse: bool = False
) -> int:
    """Runs a script as ``python`` would, with PyG patched.

    To the script itself, ``torch_geometric.typing.WITH_TORCH_SPARSE`` is
    true, as GraphSAINT's loaders do not need it here.

    Args:
        script (str): Its path (a folder's ``__main__.py`` is one, too), or
            the name of a module.
        args (Sequence[str]): Its arguments.
        module (bool, optional): Whether ``script`` names a module, as
            ``python -m`` takes it.
        fuse (bool, optional): Whether to fuse its models, too, as
            :func:`~torch_gsample.patch_pyg` does with ``layers=True``.

    Returns:
        int: The exit status: 1 after an error, which was reported as Python
        would have done it. ``sys.exit()`` of the script is not caught.

    Raises:
        FileNotFoundError: If there is no such script.
        ImportError: If there is no such module, or the installed version of
            PyG is too old.
    """
    path = script
    if os.path.isdir(path) and not module:
        path = os.path.join(path, '__main__.py')
    if not module and not os.path.exists(path):
        raise FileNotFoundError(f'run: no such script {path!r}')
    before = sys.argv, sys.path[:], sys.modules['__main__'], dict(os.environ)
    folder = os.getcwd() if module else os.path.dirname(path)
    sys.path.insert(0, os.path.abspath(folder))
    sys.argv = ['-m' if module else script, *args]
    for key, name in _VARIABLES.items():
        os.environ.pop(name, None)
        if key == module:
            os.environ[name] = script if module else os.path.abspath(path)
    os.environ[_FUSE] = '1' if fuse else ''
    try:
        with patch_pyg(layers=fuse):
            return _run(path, module)
    finally:
        sys.argv, sys.path[:], sys.modules['__main__'], environment = before
        for name in (*_VARIABLES.values(), _FUSE):
            os.environ.pop(name, None)
            if name in environment:
                os.environ[name] = environment[name]


def _run(path: str, module: bool) -> int:
    try:
        main, code = _load_module(path) if module else _load(path)
        if module:
            sys.argv[0] = str(main.__file__)
        sys.modules['__main__'] = main
        exec(code, vars(main))
    except _NoModuleError:
        raise  # an argument is wrong, not the script
    except Exception as error:
        _report(error)
        return 1
    return 0


def _load(path: str, name: str = '__main__') -> tuple[ModuleType, CodeType]:
    with open(path, 'rb') as file:
        code = compile(file.read(), path, 'exec', dont_inherit=True)
    return _module(name, path, None), code


def _load_module(
    name: str, run_name: str = '__main__'
) -> tuple[ModuleType, CodeType]:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f'{name}.__main__')
    loader: Any = None if spec is None else spec.loader
    if spec is None or not hasattr(loader, 'get_code'):
        raise _NoModuleError(f'run: no such module {name!r} to run')
    main = _module(run_name, str(spec.origin), spec.parent)
    return main, loader.get_code(spec.name)


def _module(name: str, path: str, package: str | None) -> ModuleType:
    main = ModuleType(name)
    main.__file__, main.__package__ = path, package
    # Whoever starts a process to go on with the script runs what this names.
    main.__spec__ = ModuleSpec('torch_gsample.run_script', None)
    vars(main)['__builtins__'] = vars(builtins) | {'__import__': _import}
    return main


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    """Imports for a script, whose question about torch-sparse is answered."""
    module = builtins.__import__(name, *args, **kwargs)
    if module.__name__ == 'torch_geometric.typing':
        return SimpleNamespace(**vars(module) | {'WITH_TORCH_SPARSE': True})
    return module


def _report(error: BaseException) -> None:
    """Prints what Python would print, without the frames of this file."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = _of_script(link.__traceback__)
        link = link.__cause__ or link.__context__
    sys.excepthook(type(error), error, error.__traceback__)


def _of_script(frames: TracebackType | None) -> TracebackType | None:
    kept = []
    while frames is not None:
        if frames.tb_frame.f_code.co_filename != __file__:
            kept.append(frames)
        frames = frames.tb_next
    for frame, inner in zip(kept, [*kept[1:], None], strict=False):
        frame.tb_next = inner
    return kept[0] if kept else None


def _run_again(name: str) -> dict[str, Any]:
    """Runs the script of the process that started this one.

    Returns:
        Dict[str, Any]: Its global names.
    """
    path, module = (os.environ.get(key, '') for key in _VARIABLES.values())
    if not path and not module:
        raise RuntimeError(
            f'run: {" or ".join(_VARIABLES.values())} must say which script '
            'to run; use `gsample run`'
        )
    patch_pyg(layers=bool(os.environ.get(_FUSE)))
    main, code = _load(path, name) if path else _load_module(module, name)
    sys.argv[0] = str(main.__file__)
    sys.modules[name] = main
    exec(code, vars(main))
    return vars(main)


if __name__ in ('__main__', '__mp_main__'):
    globals().update(_run_again(__name__))
