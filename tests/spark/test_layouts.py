"""Graphs in the layouts of LDBC's benchmarks are read."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from torch_gsample.spark import read_graphalytics, read_snb

KNOWS = ('person', 'knows', 'person')
LIVES = ('Person', 'isLocatedIn', 'City')


def test_graphalytics_is_read(spark, tmp_path):
    path = str(tmp_path / 'g')
    (tmp_path / 'g.v').write_text('3\n5\n90\n')
    (tmp_path / 'g.e').write_text('3 5 0.5\n5 90 2\n')
    vertices, edges = read_graphalytics(spark, path, weighted=True)
    assert {row.id for row in vertices.collect()} == {3, 5, 90}
    rows = {(3, 5, 0.5), (5, 90, 2.0)}
    assert {tuple(row) for row in edges.collect()} == rows
    _, both = read_graphalytics(spark, path, weighted=True, directed=False)
    assert {tuple(row) for row in both.collect()} == rows | {
        (b, a, w) for a, b, w in rows
    }
    (tmp_path / 'g.e').write_text('3 5\n5 x\n')
    _, bad = read_graphalytics(spark, path)
    with pytest.raises((PySparkException, Py4JJavaError), match='string: "x"'):
        bad.collect()
    (tmp_path / 'g.e').unlink()
    with pytest.raises(FileNotFoundError, match=r'g\.e'):
        read_graphalytics(spark, path)
    for options in ({'weighted': 1}, {'directed': 'no'}):
        with pytest.raises(TypeError, match='must be a bool'):
            read_graphalytics(spark, path, **options)
    with pytest.raises(TypeError, match="'path' must be a string"):
        read_graphalytics(spark, tmp_path)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_both_layouts_of_snb_are_read(spark, tmp_path):
    folder = tmp_path / 'dynamic'
    write(folder / 'person_0_0.csv', 'id|name|x.y\n7|"Ann|1\n9|Bob|2\n')
    write(
        folder / 'person_knows_person_0_0.csv',
        'Person.id|Person.id|creationDate\n7|9|2011\n',
    )
    head = 'creationDate|PersonId|CityId\n'
    write(folder / 'Person_isLocatedIn_City/part-0.csv', head + '1|7|100\n')
    write(folder / 'Person/part-0.csv', 'creationDate|id\n1|7\n')
    write(tmp_path / 'static/City/part-0.csv', 'id|name\n100|Ulm\n')
    vertices, edges = read_snb(spark, str(tmp_path), [KNOWS, LIVES])
    assert [*vertices] == ['person', 'Person', 'City']
    assert vertices['person'].columns == ['id', 'name', 'x_y']
    rows = {tuple(row) for row in vertices['person'].collect()}
    assert rows == {(7, '"Ann', '1'), (9, 'Bob', '2')}
    assert [tuple(r) for r in edges[KNOWS].collect()] == [(7, 9, '2011')]
    assert edges[LIVES].columns == ['src', 'dst', 'creationDate']
    assert [tuple(r) for r in edges[LIVES].collect()] == [(7, 100, '1')]


def test_other_tables_are_refused(spark, tmp_path):
    folder = tmp_path / 'dynamic'
    write(folder / 'person_0_0.csv', 'id|name\n7|Ann\n')
    with pytest.raises(FileNotFoundError, match='person_knows_person'):
        read_snb(spark, str(tmp_path), [KNOWS])
    write(folder / 'person_knows_person_0_0.csv', 'Person.id|since\n7|9\n')
    with pytest.raises(ValueError, match='must have 2 columns of ids'):
        read_snb(spark, str(tmp_path), [KNOWS])
    write(folder / 'person_knows_person_0_0.csv', 'a.id|b.id\n7|nine\n')
    _, edges = read_snb(spark, str(tmp_path), [KNOWS])
    with pytest.raises(PySparkException, match='nine'):
        edges[KNOWS].collect()
    for types in ('person', [('a', 'b')], [('a', '../b', 'c')]):
        with pytest.raises(TypeError, match="'edge_types' must"):
            read_snb(spark, str(tmp_path), types)
