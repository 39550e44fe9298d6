"""Reads the changelogs that Debian's packages install, for the bundled file.

`python tools/read_changelogs.py OUTPUT.npz [FOLDER]` reads all
`FOLDER/*/changelog*.gz` (`/usr/share/doc` if not given), one changelog of each
source package. Persons become numbers in the order of their first upload, and
nothing of the texts is kept but counts.
"""

import gzip
import re
import sys
from email.utils import parsedate_to_datetime
from pathlib import Path

import numpy as np

HEAD = re.compile(r'^([a-z0-9][a-z0-9+.-]*) \(([^()\s]+)\) ([^;]*);(.*)$')
TAIL = re.compile(r'^ -- .*<([^<>]*)>  (.*)$')
KINDS = {
    'nmu': 'non-maintainer upload',
    'team': 'team upload',
    'qa': 'qa upload',
}


def entries(text: str) -> list[tuple]:
    """Returns (source, person, seconds, urgency, changes, closes, kind)."""
    out: list[tuple] = []
    lines: list[str] = []
    head = None
    for line in text.splitlines():
        if match := HEAD.match(line):
            head, lines = match, []
        elif (match := TAIL.match(line)) and head is not None:
            try:
                time = int(parsedate_to_datetime(match[2]).timestamp())
            except ValueError:
                head = None
                continue
            body = '\n'.join(lines).lower()
            urgency = re.search(r'urgency=(\w+)', head[4])
            kind = [k for k, words in KINDS.items() if words in body]
            out.append(
                (
                    head[1],
                    match[1].lower(),
                    time,
                    urgency[1].lower() if urgency else 'low',
                    sum(x.startswith('  *') for x in lines),
                    len(re.findall(r'closes:\s*(?:bug)?#?\s?\d', body)),
                    kind[0] if kind else 'maintainer',
                )
            )
            head = None
        else:
            lines.append(line)
    return out


def main(output: str, folder: str = '/usr/share/doc') -> None:
    found: dict[str, list[tuple]] = {}
    for path in sorted(Path(folder).glob('*/changelog*.gz')):
        try:
            text = gzip.decompress(path.read_bytes()).decode(errors='replace')
        except OSError:
            continue
        rows = entries(text)
        if rows and len(rows) > len(found.get(rows[0][0], ())):
            found[rows[0][0]] = rows
    rows = sorted(
        {(source, *row[1:]) for source, of in found.items() for row in of},
        key=lambda row: (row[2], row),
    )
    names = sorted(found)
    persons: dict[str, int] = {}
    for row in rows:
        persons.setdefault(row[1], len(persons))
    index = {name: i for i, name in enumerate(names)}
    urgencies, kinds = (sorted({row[i] for row in rows}) for i in (3, 6))
    columns = list(zip(*rows, strict=True))
    np.savez_compressed(
        output,
        names=np.frombuffer('\n'.join(names).encode(), np.uint8),
        urgencies=np.frombuffer('\n'.join(urgencies).encode(), np.uint8),
        kinds=np.frombuffer('\n'.join(kinds).encode(), np.uint8),
        source=np.array([index[x] for x in columns[0]], np.int16),
        person=np.array([persons[x] for x in columns[1]], np.int16),
        time=np.array(columns[2], np.int64),
        urgency=np.array([urgencies.index(x) for x in columns[3]], np.int8),
        changes=np.array(columns[4], np.int16),
        closes=np.array(columns[5], np.int16),
        kind=np.array([kinds.index(x) for x in columns[6]], np.int8),
    )


if __name__ == '__main__':
    main(*sys.argv[1:])
