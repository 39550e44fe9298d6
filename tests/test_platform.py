"""Names that other systems lack are in few files of the extension."""

import re
from pathlib import Path

CSRC = Path(__file__).resolve().parent.parent / 'csrc'
#: Headers and names that macOS or Windows lacks: see
#: `make test-compile-other`.
OF_SYSTEMS = re.compile(
    r'<linux/|<sys/|<(sched|dlfcn|pthread|unistd|windows|io)\.h>'
    r'|\b(MADV|SYS)_\w+|\bRUSAGE_THREAD\b|\b_WIN32\b'
    r'|\b(pread|pwrite|dlsym|dlopen|aligned_alloc)\('
)
#: The header of differences, and files with a portable path of their own.
MAY_NAME_THEM = {
    'cpu/platform.h',
    'cpu/platform_windows.cpp',
    'storage/crc32c.cpp',
    'storage/io_uring.cpp',
}


def test_names_of_systems_are_in_few_files():
    folders = ('bind', 'core', 'cpu', 'storage')
    files = [file for name in folders for file in (CSRC / name).iterdir()]
    named = {
        str(file.relative_to(CSRC))
        for file in files
        if OF_SYSTEMS.search(re.sub(r'//.*', '', file.read_text()))
        and not file.stem.endswith('_cuda')
    }
    assert named == MAY_NAME_THEM
