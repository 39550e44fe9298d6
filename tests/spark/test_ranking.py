"""Running sums of huge groups are what one pass over each group gives."""

import itertools

import pyarrow as pa
from pyspark.sql import functions as F

from torch_gsample.spark.ranking import huge_groups, running_sum

LARGEST = 4


def test_sums_are_of_the_rows_before_in_the_group(spark):
    # Two groups of several bins, with the same keys, and a small one.
    rows = [(g, at, g + at) for g in (0, 1) for at in (0, 1, 2, 3, 5, 8, 13)]
    rows += [(2, at, 1) for at in range(LARGEST)]
    columns = dict(zip(('g', 'at', 'v'), zip(*rows, strict=True), strict=True))
    frame = spark.createDataFrame(pa.table(columns))
    huge = huge_groups(frame, 'g', 'at', LARGEST)
    sums = running_sum(
        frame,
        'g',
        ['at'],
        F.col('v'),
        'before',
        bin_by='at',
        huge=huge,
        largest=LARGEST,
    )
    expected = []
    for _, group in itertools.groupby(rows, lambda row: row[0]):
        group = list(group)
        before = itertools.accumulate((v for _, _, v in group), initial=0)
        expected += [(*r, b) for r, b in zip(group, before, strict=False)]
    assert [r.g for r in huge.sort('g').select('g').collect()] == [0, 1]
    found = sums.select('g', 'at', 'v', 'before').collect()
    assert sorted(tuple(row) for row in found) == expected
