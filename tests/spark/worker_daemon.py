"""Forks the workers of the tests, with the package imported already."""

from pyspark.daemon import manager

import torch_gsample.spark.frames  # noqa: F401

if __name__ == '__main__':
    manager()
