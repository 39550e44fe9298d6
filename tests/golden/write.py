"""Writes the golden hashes: `python -m tests.golden.write`.

It shows which hashes differ, and writes only those that the command names:
`--add` is for new cases, `--change NAME` for one that changes or goes (or all
whose names begin so). A hash that changes is a sample of every user that
changes: it needs a reason, and a line in the changelog.
"""

import argparse
import json
import sys

from tests.golden.cases import HASHES, all_cases, expected, hash_of


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--add', action='store_true')
    parser.add_argument('--change', nargs='+', default=[], metavar='NAME')
    options = parser.parse_args(args)
    old = expected() if HASHES.exists() else {}
    new = {n: hash_of(n) for n in all_cases() if '@' not in n}
    out, refused = dict(old), 0
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        kind = 'changed' if name in old and name in new else 'new'
        kind = kind if name in new else 'gone'
        allowed = (kind == 'new' and options.add) or any(
            name.startswith(start) for start in options.change
        )
        print(f'{kind}: {name}{"" if allowed else " (not written)"}')
        refused += not allowed
        if allowed:
            out.pop(name, None)
            out |= {name: new[name]} if name in new else {}
    HASHES.write_text(json.dumps(out, indent=1, sort_keys=True) + '\n')
    return int(refused > 0)


if __name__ == '__main__':
    sys.exit(main())
