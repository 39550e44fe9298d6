"""Starts Spark in this process, or reports missing dependencies."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_pyspark() -> None:
    """Checks that PySpark and pyarrow are installed.

    Raises:
        ImportError: If one is not installed, or PySpark is too old.
    """
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        raise ImportError(
            f'torch_gsample.spark: {error.name} is needed: `pip install '
            f"'torch_gsample[spark]'`"
        ) from error
    major, minor = pyspark.__version__.split('.')[:2]
    if (int(major), int(minor)) < (4, 1):
        raise ImportError(
            f'torch_gsample.spark: PySpark 4.1 or later is needed (got '
            f"{pyspark.__version__}): `pip install 'torch_gsample[spark]'`"
        )


def local_session(**conf: str) -> 'SparkSession':
    """Returns the running Spark session, or starts one in this process.

    It runs on all processors of this machine. On a cluster, create the session
    as usual (see ``docs/spark.md``): all functions use the session of their
    DataFrames.

    Args:
        **conf (str): Settings of a new session, with ``_`` for ``.``:
            ``spark_driver_memory='8g'``; ``master='local[2]'`` for fewer
            processors.

    Raises:
        ImportError: If PySpark, pyarrow or Java is not installed.
        TypeError: If a setting is not a string.

    Example:
        >>> local_session(spark_driver_memory='1g').range(3).count()
        3
    """
    for name, value in conf.items():
        if not isinstance(value, str):
            raise TypeError(
                f"local_session: '{name}' must be a string (got {value!r})"
            )
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    require_java()
    os.environ.setdefault('SPARK_LOCAL_IP', '127.0.0.1')
    # Workers run this process's Python, not the system's.
    os.environ.setdefault('PYSPARK_PYTHON', sys.executable)
    settings = {
        'spark.python.daemon.module': 'torch_gsample.spark.worker_daemon',
        'spark.ui.enabled': 'false',
        # Spark's default of 200 suits a cluster.
        'spark.sql.shuffle.partitions': str(4 * (os.cpu_count() or 1)),
        **_spelled(conf),
    }
    builder = SparkSession.builder.master(settings.pop('master', 'local[*]'))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def require_java() -> None:
    """Checks that a Java runtime is installed.

    Raises:
        ImportError: If not.
    """
    home = os.environ.get('JAVA_HOME')
    found = Path(home, 'bin', 'java').exists() if home else None
    if not (found or shutil.which('java')):
        raise ImportError(
            'torch_gsample.spark: Java is needed, and neither JAVA_HOME nor '
            'PATH leads to it: install a runtime of version 17 or later (on '
            'Debian: `apt install openjdk-17-jre-headless`)'
        )


def _spelled(conf: dict[str, str]) -> dict[str, str]:
    return {name.replace('_', '.'): value for name, value in conf.items()}
