"""A random database with the tables of RelBench's `rel-f1`, in its place."""

import sys
import types

import numpy as np

#: Columns of each table: its key, foreign keys, numbers, texts; and its rows.
_TABLES = {
    'circuits': (
        'circuitId', {}, 'lat lng alt', 'circuitRef name location country', 12
    ),
    'drivers': (
        'driverId', {}, '', 'driverRef code forename surname nationality', 40
    ),
    'constructors': (
        'constructorId', {}, '', 'constructorRef name nationality', 10
    ),
    'races': ('raceId', {'circuitId': 'circuits'}, 'year round', 'name', 250),
    'results': (
        'resultId',
        {'raceId': 'races', 'driverId': 'drivers',
         'constructorId': 'constructors'},
        'number grid position positionOrder points laps milliseconds '
        'fastestLap rank statusId', '', 3000,
    ),
    'standings': (
        'driverStandingsId', {'raceId': 'races', 'driverId': 'drivers'},
        'points position wins', '', 3000,
    ),
    'constructor_results': (
        'constructorResultsId',
        {'raceId': 'races', 'constructorId': 'constructors'},
        'points', '', 1000,
    ),
    'constructor_standings': (
        'constructorStandingsId',
        {'raceId': 'races', 'constructorId': 'constructors'},
        'points position wins', '', 1000,
    ),
    'qualifying': (
        'qualifyId',
        {'raceId': 'races', 'driverId': 'drivers',
         'constructorId': 'constructors'},
        'number position', '', 1000,
    ),
}  # fmt: skip


def _formula_1():
    """Returns a RelBench data set with these tables."""
    import pandas as pd
    from relbench.base import Database, Dataset, Table

    class Formula1(Dataset):
        val_timestamp = pd.Timestamp('2005-01-01')
        test_timestamp = pd.Timestamp('2010-01-01')

        def make_db(self) -> Database:
            draw = np.random.default_rng(0)
            days = pd.date_range('1995-01-01', '2014-12-01', periods=250)
            out = {}
            for name, (key, others, numbers, texts, rows) in _TABLES.items():
                columns = {key: np.arange(rows)}
                for column, other in others.items():
                    columns[column] = draw.integers(
                        _TABLES[other][-1], size=rows
                    )
                for column in numbers.split():
                    columns[column] = draw.integers(1, 4, size=rows)
                for column in texts.split():
                    columns[column] = [f'{column} {i}' for i in range(rows)]
                race = columns.get('raceId') if others else None
                if race is not None:
                    columns['date'] = days[race]
                out[name] = Table(
                    df=pd.DataFrame(columns),
                    fkey_col_to_pkey_table=others,
                    pkey_col=key,
                    time_col=None if race is None else 'date',
                )
            return Database(out)

    return Formula1()


class _Embedding:
    """GloVe's 300 numbers for a text, but random ones."""

    def __init__(self, *args, **options):
        self._draw = np.random.default_rng(0)

    def encode(self, texts: list[str]) -> np.ndarray:
        return self._draw.standard_normal((len(texts), 300), np.float32)


def install() -> None:
    """Puts them in the place of RelBench's data and of a language model."""
    try:
        from relbench import datasets, tasks
        from relbench.tasks.f1 import DriverDNFTask
    except ImportError:
        return
    dataset = _formula_1()
    task = DriverDNFTask(dataset)
    datasets.get_dataset = lambda *args, **options: dataset
    tasks.get_task = lambda *args, **options: task
    module = types.ModuleType('sentence_transformers')
    module.SentenceTransformer = _Embedding
    sys.modules[module.__name__] = module
