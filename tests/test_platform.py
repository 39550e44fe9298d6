"""What only Linux has is named in few files of the extension."""

import re
from pathlib import Path

CSRC = Path(__file__).resolve().parent.parent / 'csrc'
#: Headers and names that macOS lacks: see `make test-compile-other`.
LINUX_ONLY = re.compile(
    r'<linux/|<sched\.h>|<sys/(syscall|auxv)\.h>|\bMADV_(HUGEPAGE|COLLAPSE)\b'
    r'|\bRUSAGE_THREAD\b|\bSYS_\w+'
)
#: The header of differences, and files with a portable path of their own.
MAY_NAME_THEM = {
    'cpu/platform.h',
    'storage/crc32c.cpp',
    'storage/io_uring.cpp',
}


def test_linux_only_names_are_in_few_files():
    folders = ('bind', 'core', 'cpu', 'storage')
    files = [file for name in folders for file in (CSRC / name).iterdir()]
    named = {
        str(file.relative_to(CSRC))
        for file in files
        if LINUX_ONLY.search(re.sub(r'//.*', '', file.read_text()))
        and not file.stem.endswith('_cuda')
    }
    assert named == MAY_NAME_THEM
