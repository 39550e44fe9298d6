"""The example runs in the session of the tests, at toy size."""

from tests.examples.part import part_of_debian
from tests.examples.test_examples import results, run_here


def test_the_example_reports_its_quality_reproducibly(
    spark, monkeypatch, capsys
):
    outs = []
    for _ in range(2):
        with part_of_debian():
            run_here(monkeypatch, 'spark_to_pyg')
        outs.append(results(capsys.readouterr().out))
    assert len(outs[0]) >= 3  # of an epoch, a baseline and the test
    assert outs[0] == outs[1]
