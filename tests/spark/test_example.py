"""The example runs in the session of the tests, at toy size."""

import sys

import pytest
import torch

from tests.examples.test_examples import TOY, load, results
from torch_gsample.datasets import DebianPackages


class FewPackages(DebianPackages):
    """The graph between some packages: Spark is slow to read all."""

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(0)
        data = super().__getitem__(index)
        order = torch.randperm(data.num_nodes, generator=generator)
        return data.subgraph(order[:4_000])


@pytest.fixture
def example(spark, monkeypatch):
    module = load('spark_to_pyg')
    monkeypatch.setattr(module, 'DebianPackages', FewPackages)
    monkeypatch.setattr(sys, 'argv', ['spark_to_pyg', *TOY])
    return module


def test_the_example_reports_its_quality_reproducibly(example, capsys):
    outs = []
    for _ in range(2):
        example.main()
        outs.append(results(capsys.readouterr().out))
    assert len(outs[0]) >= 3  # of an epoch, a baseline and the test
    assert outs[0] == outs[1]
