"""The list of the segments of a graph on disk, ``segments.json``.

It is replaced atomically once a segment is complete. An empty file ``listed``
in each listed segment reveals a lost or outdated list.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from torch_gsample.storage.chunk_writer import sync
from torch_gsample.storage.format import (
    MAX_COUNT,
    GraphMeta,
    is_sealed,
    malformed,
    seal,
)
from torch_gsample.storage.meta import are_file_checksums
from torch_gsample.storage.new_file import write_new

SEGMENTS = 'segments.json'
#: Marks a segment that ``segments.json`` lists.
LISTED = 'listed'
_FORMAT = 'gsample segments'
_FIELDS = {
    'num_nodes', 'num_edges', 'edge_checksums', 'time_checksums'
}  # fmt: skip


def segment_name(number: int) -> str:
    """Returns the folder name of a segment; the first one is 1."""
    return f'segment-{number}'


def read_list(path: Path, meta: GraphMeta) -> list[dict[str, Any]]:
    """Returns the entries of all segments, in order.

    Raises:
        OSError: If the list cannot be read.
        ValueError: If it is damaged, or does not list all segments.
    """
    entries = _read_entries(path, meta)
    last = _last_listed(path)
    if last > len(entries):  # appended meanwhile
        entries = _read_entries(path, meta)
    if last > len(entries):
        malformed(
            path / SEGMENTS,
            0,
            f'it must list {last} segments (got {len(entries)}): it was '
            'deleted, or replaced by an earlier version',
        )
    return entries


def _last_listed(path: Path) -> int:
    """Returns the number of the last segment that was listed."""
    names = (file.parent.name for file in path.glob(f'segment-*/{LISTED}'))
    numbers = (name.removeprefix('segment-') for name in names)
    return max((int(n) for n in numbers if n.isdecimal()), default=0)


def _read_entries(path: Path, meta: GraphMeta) -> list[dict[str, Any]]:
    """Reads ``segments.json``, if it exists."""
    file = path / SEGMENTS
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return []
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        malformed(file, 0, f'it is no JSON text ({error})')
    if not is_sealed(text) or not isinstance(fields, dict):
        malformed(file, 0, 'its checksum is wrong')
    want = _FORMAT, 1, f'{meta.generation:016x}'
    got = tuple(fields.get(k) for k in ('format', 'version', 'generation'))
    entries = fields.get('segments')
    if got != want or not isinstance(entries, list):
        malformed(file, 0, f'it must be of {want} (got {got})')
    before: list[Any] = list(meta.num_nodes)
    for entry in entries:
        _check_entry(file, meta, entry, before)
        before = entry['num_nodes']
    return entries


def _check_entry(
    file: Path, meta: GraphMeta, entry: Any, before: list[int]
) -> None:
    valid = isinstance(entry, dict) and set(entry) - {'files'} == _FIELDS
    valid = valid and are_file_checksums(entry.get('files', {}))
    lists = [entry[name] for name in _FIELDS] if valid else []
    valid = valid and all(
        isinstance(of, list)
        and all(type(x) is int and 0 <= x < MAX_COUNT for x in of)
        for of in lists
    )
    counts = len(before), len(meta.relations)
    valid = valid and counts == (
        len(entry['num_nodes']),
        len(entry['num_edges']),
    )
    valid = valid and counts[::-1] == (
        len(entry['edge_checksums']),
        len(entry['time_checksums']),
    )
    if not valid or any(
        new < old for new, old in zip(entry['num_nodes'], before, strict=True)
    ):
        malformed(
            file,
            0,
            f'a segment must have {sorted(_FIELDS)}: counts that do not fall '
            'and checksums',
        )


def publish(
    path: Path, meta: GraphMeta, entries: list[dict[str, Any]]
) -> None:
    """Makes the segments visible to readers."""
    text = seal(
        {
            'format': _FORMAT,
            'version': 1,
            'generation': f'{meta.generation:016x}',
            'segments': entries,
        }
    )
    made = path / f'.{SEGMENTS}'
    write_new(made, text)
    sync(made)
    sync(path)  # the folder of the segment was renamed
    os.replace(made, path / SEGMENTS)
    sync(path)


def mark_listed(path: Path, count: int) -> None:
    """Marks listed segments, also those of a writer killed before it did."""
    with contextlib.suppress(OSError):  # the segment is complete without it
        for number in range(1, count + 1):
            file = path / segment_name(number) / LISTED
            if not file.exists():
                file.touch()
                sync(file.parent)
