"""DuckDB's errors as Python's, with the files that were read."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def duckdb_errors(
    name: str, memory_limit: int, files: str = ''
) -> Iterator[None]:
    """Translates errors of DuckDB.

    Args:
        name (str): The caller.
        memory_limit (int): The memory limit of DuckDB in bytes.
        files (str, optional): The files that it reads.

    Raises:
        MemoryError: If DuckDB needs more memory.
        OSError: If a file cannot be read or written.
        ValueError: If a file is damaged, or has other contents than expected.
    """
    import duckdb

    where = f'{name}: {files}: ' if files else f'{name}: '
    try:
        yield
    except duckdb.IOException as error:
        raise OSError(f'{where}{error}') from error
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(
            f"{where}'memory_limit' must suffice for DuckDB (it got "
            f'{memory_limit} bytes): {error}'
        ) from error
    except duckdb.Error as error:
        raise ValueError(f'{where}{error}') from error
