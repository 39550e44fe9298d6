"""One Spark session for all tests, in this process."""

import pytest

from torch_gsample.spark import local_session


@pytest.fixture(scope='session')
def spark():
    # Tiny data: what starts fast beats what runs fast.
    session = local_session(
        master='local[2]',
        spark_driver_memory='1g',
        spark_driver_extraJavaOptions='-XX:TieredStopAtLevel=1',
        spark_sql_codegen_wholeStage='false',
        spark_sql_shuffle_partitions='4',
        spark_default_parallelism='4',
        spark_ui_showConsoleProgress='false',
        spark_task_maxFailures='4',
    )
    session.sparkContext.setLogLevel('OFF')
    yield session
    session.stop()
