"""Adds the built documentation to a site with a folder for each version.

    python docs/versions.py SITE

``build/docs`` becomes ``SITE/<version>``. ``SITE/versions.json`` lists the
versions, newest first, for the menu of all pages, and ``SITE/index.html``
leads to the latest release.
"""

import contextlib
import json
import re
import shutil
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

BUILT = Path(__file__).resolve().parent.parent / 'build' / 'docs'


def version_of(site: Path) -> str:
    """Returns the version that the pages of a site name.

    Raises:
        ValueError: If they name none.
    """
    options = site / '_static' / 'documentation_options.js'
    found = re.search(r"VERSION: '([^']+)'", options.read_text())
    if found is None:
        raise ValueError(f'versions: {options} must name a VERSION')
    return found[1]


def versions_in(site: Path) -> dict[str, Version]:
    """Returns the versions that a site has folders of, newest first."""
    found = {}
    for folder in site.iterdir():
        with contextlib.suppress(InvalidVersion):
            if (folder / 'index.html').exists():
                found[folder.name] = Version(folder.name)
    return dict(sorted(found.items(), key=lambda item: item[1], reverse=True))


def add_version(site: Path, built: Path = BUILT) -> None:
    """Adds a version to a site, or replaces it."""
    target = site / version_of(built)
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(built, target)
    versions = versions_in(site)
    releases = [name for name, v in versions.items() if not v.is_prerelease]
    latest = (releases or list(versions))[0]
    entries = [
        {'version': name, 'url': f'{name}/', 'preferred': name == latest}
        for name in versions
    ]
    (site / 'versions.json').write_text(json.dumps(entries, indent=2) + '\n')
    (site / 'index.html').write_text(
        f'<meta http-equiv="refresh" content="0; url={latest}/index.html">\n'
    )


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    add_version(Path(sys.argv[1]))
