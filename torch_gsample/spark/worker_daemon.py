"""Forks Spark's Python workers with the package already imported.

A worker that imports torch and this package itself takes seconds to start.
:func:`local_session` uses this daemon instead of Spark's.
"""

import gc

from pyspark.daemon import manager

import torch_gsample.spark.stored_batches  # noqa: F401

if __name__ == '__main__':
    # A worker collects garbage after each task; imported objects are exempt.
    gc.freeze()
    manager()
