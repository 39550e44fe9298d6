"""The folder in which an inference goes on after a kill.

Arguments come in; a locked folder with their fingerprint goes out, and the
result gets its name when it is complete.
"""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from torch import nn

from torch_gsample.storage.chunk_writer import sync
from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.feature_write import give_name
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.inference.journal import Journal, sealed, unsealed

_MANIFEST, _JOURNAL = 'manifest.json', 'journal'
#: The version of what tiles compute and files hold.
_VERSION = 2
_PLAIN = bool, int, float, str, type(None)


def fingerprint_of_model(model: nn.Module) -> str:
    """Tells models apart by parameters, buffers and plain attributes."""
    out = hashlib.sha256()
    for name, module in model.named_modules():
        facts = {
            key: value
            for key, value in vars(module).items()
            if key[0] != '_' and _is_plain(value)
        }
        kind = getattr(type(module), 'base', type(module)).__qualname__
        out.update(repr((name, kind, sorted(facts.items()))).encode())
        out.update(module.extra_repr().encode())
    tensors = [*model.named_parameters(), *model.named_buffers()]
    for name, value in tensors:
        out.update(repr((name, value.dtype, value.shape)).encode())
        data = value.detach().contiguous().reshape(-1)
        if data.numel():
            out.update(data.view(torch.uint8).numpy().data)
    return out.hexdigest()


def fingerprint_of_graph(graph: Any) -> str:
    """Tells graphs apart: on disk by their checksums."""
    out = hashlib.sha256()
    if isinstance(graph, ChunkedGraph):
        out.update(graph.meta.dump().encode())
    else:
        out.update(repr((graph.node_types, graph.edge_types)).encode())
        out.update(repr(graph.num_nodes).encode())
        for csc in graph.columns:
            out.update(csc.indptr.long().numpy().data)
            out.update(csc.indices.contiguous().numpy().data)
    return out.hexdigest()


class WorkFolder:
    """A hidden folder next to the result, which one process has at a time.

    Args:
        out (Path): Where the result will be.
        facts (Dict[str, Any]): What must be equal for a process to go on
            where another one ended: names and values of JSON.
        restart (bool): Whether to remove what another one left.

    Raises:
        FileExistsError: If ``out`` exists.
        OSError: If the folder cannot be made.
        ValueError: If another process works in it, or one with other
            arguments left it.
    """

    def __init__(self, out: Path, facts: dict[str, Any], restart: bool):
        self.out, self.path = out, out.parent / f'.{out.name}.infer'
        self._facts = {'version': _VERSION, **facts}
        #: Whether the result has its name, and only the folder remains.
        self.done = False
        there = os.path.lexists(out)
        if there and not self.path.is_dir():
            self._refuse_out()
        out.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(exist_ok=True)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._open(there, restart)
        except BaseException:
            self.close()
            raise

    def _open(self, there: bool, restart: bool) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"infer: 'out' must not be computed by another process (got "
                f'{self.out}, {self.path} is locked)'
            ) from None
        manifest = self.path / _MANIFEST
        left = None
        if manifest.exists() and not (restart and not there):
            left = unsealed(manifest, 0, manifest.read_bytes())
        if there and (left != self._facts or restart):
            self._refuse_out()
        if left is not None and left != self._facts and not restart:
            wrong = [
                key
                for key, value in self._facts.items()
                if left.get(key) != value
            ]
            raise ValueError(
                f'infer: {self.path} was left by a call with other arguments '
                f'(different: {", ".join(wrong)}); set '
                "'restart=True' to remove it and start over"
            )
        if left is None or restart:
            self._clear()
            made = self.path / f'{_MANIFEST}.new'
            with open(made, 'wb') as file:
                file.write(sealed(self._facts))
                file.flush()
                os.fsync(file.fileno())
            os.rename(made, manifest)
            sync(self.path)
        removing = there and not (self.path / _JOURNAL).exists()
        self.journal = Journal(self.path / _JOURNAL)
        self.done = there and (removing or self._is_published())
        if there and not self.done:
            self._refuse_out()

    def _is_published(self) -> bool:
        """Whether the files of the result were linked or moved to ``out``."""
        names = self.journal.facts.get('final', {}).get('names', [])
        for name in names:
            path = self.path / name
            if path.exists():
                return self.out.is_file() and os.path.samefile(path, self.out)
        return bool(names) and not (self.path / 'out').exists()

    def _refuse_out(self) -> None:
        raise FileExistsError(
            f"infer: 'out' must not exist yet (got {self.out})"
        )

    def _clear(self) -> None:
        """Removes all that is in the folder."""
        for path in self.path.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def publish(self, files: dict[Any, Path]) -> None:
        """Gives the result its name.

        Args:
            files (Dict[Any, Path]): The complete file of each type.

        Raises:
            FileExistsError: If something has the name.
        """
        self.journal.add('final', names=[p.name for p in files.values()])
        if set(files) == {None}:
            give_name(files[None], self.out)
            return
        folder = self.path / 'out'
        folder.mkdir(exist_ok=True)
        for kind, path in files.items():
            if path.exists():  # not moved before a kill
                os.rename(path, folder / file_name(kind))
        sync(folder)
        if os.path.lexists(self.out):
            self._refuse_out()
        os.rename(folder, self.out)
        sync(self.out.parent)

    def result(self, kinds: list[Any]) -> Any:
        """Opens the result, for those types of nodes that it has."""
        if kinds == [None]:
            return FeatureFile(self.out)
        paths = {kind: self.out / file_name(kind) for kind in kinds}
        return {k: FeatureFile(p) for k, p in paths.items() if p.exists()}

    def remove(self) -> None:
        """Removes the folder, the manifest last."""
        for path in sorted(self.path.iterdir(), key=_order):
            path.unlink()
        os.rmdir(self.path)

    def remove_if_unused(self) -> None:
        """Removes the folder if nothing in it is worth to go on from."""
        facts = self.journal.facts.values()
        if not any('rows' in f or 'whole' in f for f in facts):
            self._clear()
            os.rmdir(self.path)

    def close(self) -> None:
        """Lets another process have the folder; once is enough."""
        if hasattr(self, 'journal'):
            self.journal.close()
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def file_name(kind: str) -> str:
    """Returns the name of the file of a type of nodes."""
    return f'{quote(kind, safe="")}.gsf'


def _order(path: Path) -> int:
    """Orders files to remove: the journal and the manifest are last."""
    return {_JOURNAL: 1, _MANIFEST: 2}.get(path.name, 0)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_plain(v) for v in value)
    return isinstance(value, _PLAIN)
