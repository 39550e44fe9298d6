"""One Spark session for all tests, in this process."""

import pytest

from torch_gsample.spark import local_session

#: Tiny data: what starts fast beats what runs fast.
SETTINGS = {
    'spark_driver_memory': '1g',
    'spark_driver_extraJavaOptions': (
        '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
    ),
    'spark_sql_adaptive_enabled': 'false',
    'spark_sql_codegen_factoryMode': 'NO_CODEGEN',
    'spark_sql_codegen_wholeStage': 'false',
    'spark_sql_shuffle_partitions': '2',
    'spark_ui_showConsoleProgress': 'false',
}


@pytest.fixture(scope='session')
def spark():
    # Tasks may fail thrice.
    session = local_session(master='local[2,4]', **SETTINGS)
    session.sparkContext.setLogLevel('OFF')
    yield session
    session.stop()
