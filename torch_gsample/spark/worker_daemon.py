"""Forks the Python workers of Spark, with the package imported already.

A worker that must import torch and this package by itself takes seconds to
start. :func:`local_session` runs this in place of Spark's own daemon.
"""

import gc

from pyspark.daemon import manager

import torch_gsample.spark.stored_batches  # noqa: F401

if __name__ == '__main__':
    # A worker collects garbage after each task: what was imported is none.
    gc.freeze()
    manager()
