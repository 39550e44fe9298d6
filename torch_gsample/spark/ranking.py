"""Running sums inside groups, of which some may be huge.

A window over a group runs in one task. A group of more than so many rows is
first cut into bins that keep the order; each bin is summed by itself, and what
comes before it is added: two phases, in neither of which a task sees a whole
hub.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from torch_gsample.spark.frames import OWN

_SIZE, _LOW, _HIGH, _BIN = (OWN + n for n in ('size', 'low', 'high', 'bin'))


def huge_groups(
    frame: DataFrame, group: str, bin_by: str, largest: int
) -> DataFrame:
    """Returns the groups of more than ``largest`` rows.

    What is counted is partial before it is shuffled.

    Args:
        frame (DataFrame): The rows.
        group (str): The column that says of which group a row is.
        bin_by (str): A number that ascends in the order of rows.
        largest (int): Rows of a group that one task may sort.
    """
    sizes = frame.groupBy(group).agg(
        F.count(F.lit(1)).alias(_SIZE),
        F.min(bin_by).cast('double').alias(_LOW),
        F.max(bin_by).cast('double').alias(_HIGH),
    )
    return sizes.where(F.col(_SIZE) > largest)


def running_sum(
    frame: DataFrame,
    group: str,
    order: Sequence[str],
    value: Column,
    name: str,
    *,
    bin_by: str,
    huge: DataFrame | None,
    largest: int,
) -> DataFrame:
    """Adds the sum of ``value`` over the rows that come before in a group.

    Bins are a function of a row and of exact sizes. So a task that runs again
    puts every row where it was.

    Args:
        frame (DataFrame): The rows.
        group (str): See :func:`huge_groups`.
        order (List[str]): The columns that order rows, without ties.
        value (Column): What is summed, int64.
        name (str): The column that is added.
        bin_by (str): The first of ``order``, or what ascends with it.
        huge (DataFrame, optional): What :func:`huge_groups` returned;
            :obj:`None` if there are none.
        largest (int): See :func:`huge_groups`.
    """
    whole = Window.orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum(value).over(whole.partitionBy(group)), F.lit(0))
    if huge is None:
        return frame.withColumn(name, before)
    # Every step of this is monotone in `bin_by`, rounding included. What lies
    # outside of the group's range goes to a bin before or behind all others.
    part = (F.col(bin_by).cast('double') - F.col(_LOW)) / (
        F.col(_HIGH) - F.col(_LOW)
    )
    part = F.greatest(F.least(part, F.lit(2.0)), F.lit(-1.0))
    bins = F.ceil(F.col(_SIZE) / largest)
    binned = frame.join(F.broadcast(huge), group, 'left').withColumn(
        _BIN,
        F.when(F.col(_HIGH) > F.col(_LOW), F.floor(part * bins)).otherwise(0),
    )
    in_bin = F.coalesce(
        F.sum(value).over(whole.partitionBy(group, _BIN)), F.lit(0)
    )
    sums = (
        binned.where(F.col(_SIZE).isNotNull())
        .groupBy(group, _BIN)
        .agg(F.sum(value).alias(OWN + 'sum'))
        .select(
            group,
            _BIN,
            F.sum(OWN + 'sum')
            .over(
                Window.partitionBy(group)
                .orderBy(_BIN)
                .rowsBetween(Window.unboundedPreceding, -1)
            )
            .alias(OWN + 'offset'),
        )
    )
    offset = F.coalesce(F.col(OWN + 'offset'), F.lit(0))
    return (
        binned.withColumn(name, in_bin)
        .join(sums, [group, _BIN], 'left')
        .withColumn(name, F.col(name) + offset)
        .drop(_SIZE, _LOW, _HIGH, _BIN, OWN + 'offset')
    )
