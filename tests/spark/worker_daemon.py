"""Forks the workers of the tests, with the package imported already."""

import torch_gsample.spark.frames  # noqa: F401
from pyspark.daemon import manager

if __name__ == '__main__':
    manager()
