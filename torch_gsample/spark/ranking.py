"""Running sums within groups of any size.

A window over a group runs in one task. Larger groups are first cut into
ordered bins. Each bin is summed separately, and the sums of earlier bins are
added: in neither phase does a task see a whole hub.
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

    Counts are aggregated per partition before the shuffle.

    Args:
        frame (DataFrame): The rows.
        group (str): The column with the group of a row.
        bin_by (str): A number that ascends in the order of rows.
        largest (int): Maximum rows of a group sorted by one task.
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
    """Adds the sum of ``value`` over the preceding rows of a group.

    Bins are a function of a row and of exact sizes, so a repeated task assigns
    the same bins.

    Args:
        frame (DataFrame): The rows.
        group (str): See :func:`huge_groups`.
        order (List[str]): The columns that order rows, without ties.
        value (Column): The summand, int64.
        name (str): The name of the new column.
        bin_by (str): The first of ``order``, or a column monotone in it.
        huge (DataFrame, optional): The result of :func:`huge_groups`;
            :obj:`None` if there are none.
        largest (int): See :func:`huge_groups`.
    """
    whole = Window.orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum(value).over(whole.partitionBy(group)), F.lit(0))
    if huge is None:
        return frame.withColumn(name, before)
    # Every step of this is monotone in `bin_by`, rounding included. Values
    # outside the group's range go to the first or last bin.
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
