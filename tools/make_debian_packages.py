r"""Makes the file of ``DebianPackages`` from Debian's archive indexes.

.. code-block:: sh

    python tools/make_debian_packages.py \
        Packages.xz Sources.xz debian_packages.npz

Indexes may be plain, ``.xz`` or ``.gz``. Malformed stanzas are skipped and
counted, and the same indexes give the same arrays. The bundled file was made
from Debian 12.15 ``main``, ``amd64``, Release dated 2026-07-11: ``Packages``
with sha256
515e692f2c4121c6fcec444ef100cc18f79a991910615f3a88c8b7becfc94d2f and
``Sources`` with sha256
92d75d23e1757f7a0a21ccb8612cd8a63c64d4020241a31b234b2a2be9653844.

**Nodes.** Packages of ``Packages``, the sources they are built from, and
debtags, each sorted by name. Where a name repeats, the first stanza of a
package and the last stanza of a source count.

**Edges.** Each name in a dependency field is an edge, whatever its version,
architecture or build profile; alternatives are all kept. A name that is no
package stands for every package that provides it, else it is dropped. Self
loops are dropped, and edges are sorted and unique.

**Features.** The commonest words of the one-line descriptions, by number of
packages, then by name; and four numbers, see ``DebianPackages``. A stop word
matters only if it is common enough to be among the words, so ``STOP_WORDS``
holds those that would be.

**Labels.** The section without its archive area (``contrib/net`` is ``net``).

**Split.** Sources are shuffled by ``numpy.random.default_rng(0)``; the first
half of them is for training, the next quarter for validation.
"""

import argparse
import gzip
import lzma
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

Stanza = dict[str, str]
Arrays = dict[str, np.ndarray]

NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9+.\-]*')
WORD = re.compile(r'[a-z][a-z0-9+#]+')
SIZE = re.compile(r'[0-9]{1,15}')
NUM_WORDS = 1000
STOP_WORDS = frozenset(
    WORD.findall(
        'all an and any are as at based be by can for from in into is it '
        'more new no not of on one or other that the to used using via which '
        'with you your'
    )
)
RELATIONS = (
    'depends',
    'pre-depends',
    'recommends',
    'suggests',
    'enhances',
    'breaks',
    'conflicts',
    'replaces',
)
BUILD_RELATIONS = (
    'build-depends',
    'build-depends-indep',
    'build-depends-arch',
)
PACKAGE_FIELDS = {
    *RELATIONS,
    'architecture',
    'description',
    'homepage',
    'installed-size',
    'package',
    'provides',
    'section',
    'size',
    'source',
    'tag',
}
SOURCE_FIELDS = {*BUILD_RELATIONS, 'package'}


def open_index(path: Path) -> IO[str]:
    """Opens an index, compressed or not, as its first bytes tell."""
    with path.open('rb') as f:
        head = f.read(6)
    if head == b'\xfd7zXZ\0':
        return lzma.open(path, 'rt', encoding='utf-8', errors='replace')
    if head[:2] == b'\x1f\x8b':
        return gzip.open(path, 'rt', encoding='utf-8', errors='replace')
    return path.open(encoding='utf-8', errors='replace')


def split_stanzas(lines: Iterable[str]) -> Iterator[list[str]]:
    stanza: list[str] = []
    for line in lines:
        line = line.rstrip('\n')
        if line.strip():
            stanza.append(line)
        elif stanza:
            yield stanza
            stanza = []
    if stanza:
        yield stanza


def parse_stanza(lines: list[str], fields: set[str]) -> Stanza:
    """Returns the wanted fields, named in lower case.

    Raises:
        ValueError: If a line is no field, or if a field repeats.
    """
    stanza: Stanza = {}
    seen: set[str] = set()
    key = ''
    for line in lines:
        if line[0] in ' \t':
            if not key:
                raise ValueError(f'continues no field: {line!r}')
            if key in stanza:
                stanza[key] += '\n' + line
            continue
        key, colon, value = line.partition(':')
        key = key.lower()
        if not colon or not key or key in seen:
            raise ValueError(f'no field, or a repeated one: {line!r}')
        seen.add(key)
        if key in fields:
            stanza[key] = value.strip()
    return stanza


def check_package(stanza: Stanza) -> None:
    """Raises :class:`ValueError` if what makes a node is missing or bad."""
    sizes = stanza.get('size', ''), stanza.get('installed-size', '0')
    names = stanza.get('package', ''), source_of(stanza)
    if not all(SIZE.fullmatch(size) for size in sizes):
        raise ValueError(f'no size: {sizes}')
    if not all(NAME.fullmatch(name) for name in names):
        raise ValueError(f'no name: {names}')
    if len(stanza.get('section', '').split()) > 1:
        raise ValueError(f'no section: {stanza["section"]!r}')


def check_source(stanza: Stanza) -> None:
    """Raises :class:`ValueError` if the stanza has no valid name."""
    if not NAME.fullmatch(stanza.get('package', '')):
        raise ValueError(f'no name: {stanza.get("package")!r}')


def source_of(package: Stanza) -> str:
    """Returns ``linux`` for a stanza with ``Source: linux (6.1.1)``."""
    return (package.get('source') or package.get('package', '')).split(' ')[0]


def read_index(
    path: Path, fields: set[str], check: Callable[[Stanza], None]
) -> list[Stanza]:
    """Returns the stanzas of an index and prints how many are malformed."""
    stanzas: list[Stanza] = []
    num_malformed = 0
    with open_index(path) as f:
        for lines in split_stanzas(f):
            try:
                stanza = parse_stanza(lines, fields)
                check(stanza)
            except ValueError:
                num_malformed += 1
            else:
                stanzas.append(stanza)
    print(f'{path.name}: {len(stanzas)} stanzas, {num_malformed} skipped')
    return stanzas


def read_packages(path: Path) -> dict[str, Stanza]:
    """Returns the first stanza of each package, sorted by name."""
    stanzas = read_index(path, PACKAGE_FIELDS, check_package)
    packages = {stanza['package']: stanza for stanza in reversed(stanzas)}
    return dict(sorted(packages.items()))


def read_sources(path: Path) -> dict[str, Stanza]:
    """Returns the last stanza of each source."""
    stanzas = read_index(path, SOURCE_FIELDS, check_source)
    return {stanza['package']: stanza for stanza in stanzas}


def related_names(value: str) -> Iterator[str]:
    """Yields ``a``, ``b``, ``c`` for ``a (>= 1) | b:any, c [amd64]``."""
    for clause in re.split('[,|]', value):
        if match := NAME.match(clause.strip()):
            yield match.group()


def sort_edges(edges: Iterable[tuple[int, int]]) -> np.ndarray:
    array = np.array(sorted(set(edges)), dtype=np.int32)
    return np.ascontiguousarray(array.reshape(-1, 2).T)


class Resolver:
    """Finds the nodes of the packages that a relation field names."""

    def __init__(self, packages: dict[str, Stanza]) -> None:
        self.index = {name: i for i, name in enumerate(packages)}
        self.providers: dict[str, set[int]] = defaultdict(set)
        for i, stanza in enumerate(packages.values()):
            for name in related_names(stanza.get('provides', '')):
                self.providers[name].add(i)

    def __call__(self, value: str) -> Iterator[int]:
        for name in related_names(value):
            if name in self.index:
                yield self.index[name]
            else:
                yield from self.providers.get(name, ())


def make_edges(
    packages: dict[str, Stanza],
    sources: dict[str, Stanza],
    source_index: dict[str, int],
    tag_index: dict[str, int],
) -> Arrays:
    resolve = Resolver(packages)
    edges: Arrays = {}
    for field in RELATIONS:
        edges[f'package__{field.replace("-", "_")}__package'] = sort_edges(
            (i, j)
            for i, stanza in enumerate(packages.values())
            for j in resolve(stanza.get(field, ''))
            if i != j
        )
    edges['source__builds__package'] = sort_edges(
        (source_index[source_of(stanza)], i)
        for i, stanza in enumerate(packages.values())
    )
    edges['source__build_depends__package'] = sort_edges(
        (source_index[name], j)
        for name, stanza in sources.items()
        if name in source_index
        for field in BUILD_RELATIONS
        for j in resolve(stanza.get(field, ''))
    )
    edges['package__has_tag__tag'] = sort_edges(
        (i, tag_index[tag])
        for i, stanza in enumerate(packages.values())
        for tag in tags_of(stanza)
    )
    return {f'edge/{name}': array for name, array in edges.items()}


def tags_of(package: Stanza) -> list[str]:
    tags = (tag.strip() for tag in package.get('tag', '').split(','))
    return [tag for tag in tags if re.fullmatch(r'\S+', tag)]


def section_of(package: Stanza) -> str:
    return package.get('section', '').rpartition('/')[2]


def words_of(package: Stanza) -> set[str]:
    """Returns the words of the one-line description."""
    line = package.get('description', '').split('\n')[0]
    return set(WORD.findall(line.lower())) - STOP_WORDS


def make_words(packages: Iterable[Stanza]) -> tuple[list[str], Arrays]:
    """Returns the commonest words and which package has which of them."""
    words = [words_of(stanza) for stanza in packages]
    count = Counter(word for row in words for word in row)
    vocab = sorted(count, key=lambda word: (-count[word], word))[:NUM_WORDS]
    index = {word: i for i, word in enumerate(vocab)}
    rows = [
        sorted(index[word] for word in row & index.keys()) for row in words
    ]
    indptr = np.cumsum([0] + [len(row) for row in rows], dtype=np.int32)
    indices = np.array([i for row in rows for i in row], dtype=np.uint16)
    return vocab, {'x/package/indptr': indptr, 'x/package/indices': indices}


def make_numbers(packages: Iterable[Stanza]) -> np.ndarray:
    numbers = [
        (
            np.log1p(int(stanza.get('installed-size', '0'))),
            np.log1p(int(stanza['size'])),
            stanza.get('architecture') == 'all',
            'homepage' in stanza,
        )
        for stanza in packages
    ]
    return np.array(numbers, dtype=np.float16)


def make_labels(packages: Iterable[Stanza]) -> tuple[list[str], np.ndarray]:
    """Returns the sections and each package's number among them, else -1."""
    sections = [section_of(stanza) for stanza in packages]
    classes = sorted(set(sections) - {''})
    index = {name: i for i, name in enumerate(classes)}
    y = np.array([index.get(name, -1) for name in sections])
    fits = y.min() >= 0 and y.max() < 256
    return classes, y.astype(np.uint8 if fits else np.int16)


def make_split(builds: np.ndarray, num_sources: int) -> np.ndarray:
    """Returns 0, 1 or 2 for each package, equal for those of one source."""
    order = np.random.default_rng(0).permutation(num_sources)
    num_train, num_val = num_sources // 2, num_sources // 4
    of_source = np.full(num_sources, 2, dtype=np.uint8)
    of_source[order[:num_train]] = 0
    of_source[order[num_train : num_train + num_val]] = 1
    split = np.empty(builds.shape[1], dtype=np.uint8)
    split[builds[1]] = of_source[builds[0]]
    return split


def encode_names(names: Iterable[str]) -> np.ndarray:
    return np.frombuffer('\n'.join(names).encode(), dtype=np.uint8)


def make_graph(
    packages: dict[str, Stanza], sources: dict[str, Stanza]
) -> Arrays:
    """Returns the arrays of the file, in the order in which they lie in it."""
    stanzas = packages.values()
    source_names = sorted({source_of(stanza) for stanza in stanzas})
    tag_names = sorted({tag for stanza in stanzas for tag in tags_of(stanza)})
    edges = make_edges(
        packages,
        sources,
        {name: i for i, name in enumerate(source_names)},
        {name: i for i, name in enumerate(tag_names)},
    )
    vocab, words = make_words(stanzas)
    classes, y = make_labels(stanzas)
    builds = edges['edge/source__builds__package']
    counts = [len(packages), len(source_names), len(tag_names)]
    return {
        **edges,
        'name/package': encode_names(packages),
        'name/source': encode_names(source_names),
        'name/tag': encode_names(tag_names),
        'class_names': encode_names(classes),
        'vocab': encode_names(vocab),
        'num_nodes': np.array(counts, dtype=np.int64),
        'node_types': encode_names(['package', 'source', 'tag']),
        **words,
        'x/package/num': make_numbers(stanzas),
        'y/package': y,
        'split/package': make_split(builds, len(source_names)),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog='make_debian_packages',
        description="Makes the graph of Debian's packages from its indexes.",
    )
    parser.add_argument('packages', type=Path, help='the index Packages')
    parser.add_argument('sources', type=Path, help='the index Sources')
    parser.add_argument('out', type=Path, help='the file to write (.npz)')
    args = parser.parse_args(argv)

    try:
        packages = read_packages(args.packages)
        sources = read_sources(args.sources)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        parser.error(f'cannot read the indexes: {error}')
    if not packages:
        parser.error(f"'packages' has no valid stanza (got {args.packages})")

    graph: dict[str, Any] = make_graph(packages, sources)
    with args.out.open('wb') as out:
        np.savez_compressed(out, **graph)
    for name, array in graph.items():
        if name.startswith('edge/'):
            print(f'{name}: {array.shape[1]}')


if __name__ == '__main__':
    main()
